"""A fake provider's replies over HTTP."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias
from urllib.parse import quote, unquote, urlsplit

import attrs

from rxdelta.core import InvalidValueError, described
from rxdelta.core.events import MessageFinish, StreamError
from rxdelta.providers import Endpoint, WireFormat, endpoint, endpoints, format_at
from rxdelta.recording import RecordedError
from rxdelta.testing.http import HOST, Connection, Refused, Server
from rxdelta.testing.script import FakeRequest, Script

if TYPE_CHECKING:
    from types import TracebackType


Take: TypeAlias = Callable[[FakeRequest], Callable[[], "Script"]]
"""Takes the next reply for a request. What it returns gives the reply."""

_UNPROXIED: Final = f"{HOST},localhost"


@attrs.define
class _Routes:
    """Which format a request is of.

    Attributes:
        default: The format of paths that don't name one first.
        url: Where the server listens.
    """

    default: str | None
    url: str = ""

    def base_url(self, wire_format: str) -> str:
        base = endpoint(wire_format).base
        prefix = "" if wire_format == self.default else "/" + quote(wire_format, safe="")
        return f"{self.url}{prefix}{base}"

    def find(self, path: str) -> tuple[str, Endpoint] | None:
        """The format of a request with this path, and its endpoint."""
        # A format's own path may begin with its name, too: then the whole path is the one that was meant.
        for name, below in (self._named(path), (self.default, path)):
            if name is not None:
                one = endpoint(name)
                if not one.paths or below.endswith(tuple(one.paths)):
                    return name, one
        guessed = format_at(path)
        return None if guessed is None else (guessed, endpoint(guessed))

    def look_up(self, path: str) -> Mapping[str, Any] | None:
        """The answer to a request that takes no reply."""
        known = endpoints()
        name, below = self._named(path)
        if below == "/":
            return {"fake_provider": {one: self.base_url(one) for one in known}}
        first = [] if name is None else [known[name]]
        others = [known[one] for one in ("openai-chat", *known) if one in known]
        return next(
            (found for one in (*first, *others) for end, found in one.lookups.items() if below.endswith(end)),
            None,
        )

    def error_of(self, path: str, error: StreamError, status: int) -> Mapping[str, Any]:
        """The body of an answer with an error, in the form of the format of this path."""
        found = self.find(path)
        name = self._named(path)[0] or "openai-chat"
        return (endpoint(name) if found is None else found[1]).error(error, status)

    def _named(self, path: str) -> tuple[str | None, str]:
        """The format that a path names first, else the server's own, and the rest of the path."""
        first, _, rest = path.removeprefix("/").partition("/")
        name = unquote(first)
        return (name, f"/{rest}") if name in endpoints() else (self.default, path)


class FakeServer:
    """The replies of a fake provider over HTTP, at 127.0.0.1. Made by `FakeProvider.serve`, and a context manager.

    Attributes:
        url: Where the server listens, such as `http://127.0.0.1:49152`.

    Example:
        >>> from rxdelta.testing import FakeProvider
        >>> with FakeProvider("Hi").serve() as server:
        ...     print(server.base_url("openai-chat").removeprefix(server.url))
        ...     print(server.environment["OPENAI_API_KEY"])
        /openai-chat/v1
        fake
    """

    def __init__(self, give: Take, wire_format: str | None, port: int) -> None:
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
            raise InvalidValueError.of([("port", port, "must be a whole number from 0 to 65535")])
        if wire_format is not None:
            endpoint(wire_format)
        self._routes = _Routes(wire_format)

        class Answers(_Answers):
            routes = self._routes
            take = staticmethod(give)

        self._server = Server(port, Answers)
        self.url = self._routes.url = f"http://{HOST}:{self._server.server_address[1]}"

    def base_url(self, wire_format: WireFormat | str) -> str:
        """What a client of this format takes as its base URL.

        All of OpenAI's endpoints are below the base URL of each of them.

        Raises:
            InvalidValueError: The format has no endpoint.
            UnknownWireFormatError: There is no such format; the error lists those there are.
        """
        return self._routes.base_url(wire_format)

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which the official clients find the server, with keys that mean nothing.

        With them the program under test stays as it is, also in another process: `env=os.environ | server.environment`.
        `NO_PROXY` names this machine beside what it names in this process.
        """
        found: dict[str, str] = {}
        for name, one in endpoints().items():
            url = self.base_url(name)
            found |= {variable: value.replace("{url}", url) for variable, value in one.environment.items()}
        known = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
        unproxied = known if known == "*" else ",".join(filter(None, [known, _UNPROXIED]))
        return found | {"NO_PROXY": unproxied, "no_proxy": unproxied}

    def close(self) -> None:
        """End the server, its pauses and its connections at once. A reply's function has 5 seconds to end."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if error is None and self._server.failures:
            raise self._server.failures[0]


class _Answers(Connection):
    """What a client gets."""

    routes: _Routes
    take: Take

    @property
    def _path(self) -> str:
        try:
            return urlsplit(self.path).path
        except ValueError:  # it is no URL
            return self.path

    def do_POST(self) -> None:  # noqa: N802  # the base class's name
        try:
            self.check_sender()
            found = self.routes.find(self._path)
            if found is None:
                raise Refused(
                    404, f"the fake provider serves nothing at {self._path!r}; see {self.routes.url}"
                )
            body = self.read_object()
        except Refused as error:
            self._refuse(error)
            return
        name, served = found
        headers = {key.lower(): value for key, value in self.headers.items()}
        request = FakeRequest(wire_format=name, path=self._path, body=body, headers=headers)
        try:
            self._reply(request, served)
        except OSError:
            self.cut()
            if not self.listener.is_closing:
                request.closed.set()
        except InvalidValueError as error:
            self._say(served, StreamError(str(error)), 400)
        except Exception as error:  # of an installed format, or a fault of ours
            self._fail(error, served, "the fake provider failed")

    def do_GET(self) -> None:  # noqa: N802
        try:
            self.check_sender()
            found = self.routes.look_up(self._path)
            if found is None:
                raise Refused(404, f"the fake provider has nothing at {self._path!r}; see {self.routes.url}")
            self.answer(200, found)
        except Refused as error:
            self._refuse(error)

    do_HEAD = do_GET  # noqa: N815

    def do_OPTIONS(self) -> None:  # noqa: N802
        """Answer what a browser asks before a page may send JSON."""
        try:
            self.check_sender()
        except Refused as error:
            self._refuse(error)
            return
        self.send_response(204)
        self.send_header("Access-Control-Allow-Methods", "GET, HEAD, POST")
        wanted = self.headers.get("access-control-request-headers")
        if wanted is not None:
            self.send_header("Access-Control-Allow-Headers", wanted)
        self.end_headers()

    def _refuse(self, error: Refused) -> None:
        said = self.routes.error_of(self._path, StreamError(str(error)), error.status)
        self.refuse(error.status, said)

    def _break(self, served: Endpoint, error: Exception) -> None:
        """Answer with the HTTP error that an SDK's exception was made of, or with nothing."""
        status: object = getattr(error, "status_code", None)
        if not isinstance(status, int) or not 400 <= status <= 599:
            self.cut()
            return
        known = error.headers if isinstance(error, RecordedError) else {}
        # Every answer has a date. A recording may be anybody's: nothing in it begins another header.
        headers = {name: value for name, value in known.items() if name != "date" and _is_header(name, value)}
        self.answer(status, served.error(StreamError(str(error)), status), headers)

    def _say(self, served: Endpoint, error: StreamError, status: int) -> None:
        self.answer(status, served.error(error, status))

    def _reply(self, request: FakeRequest, served: Endpoint) -> None:
        """Give the next reply.

        Raises:
            InvalidValueError: No reply is left, or the format can't carry this one.
            OSError: The client has gone away.
        """
        streams = served.streams(request.path, request.body)
        if not streams and served.whole is None:
            wrong = f"a fake provider can only stream {request.wire_format}: ask it for a stream"
            raise InvalidValueError(wrong, field="stream")
        script = self._ask(self.take(request), served)
        if script is None:
            return
        first = script.first
        if isinstance(first, (Exception, StreamError)):
            self._give_whole(script, served, [])
        elif streams:
            self._stream(script, script.written(request.wire_format), served)
        else:
            written = attrs.evolve(script, recorded=None).written(request.wire_format)
            self._give_whole(script, served, [one for one in written if isinstance(one, dict)])

    def _ask(self, give: Callable[[], Script], served: Endpoint) -> Script | None:
        """The reply; `None` if the function that it is has failed, which `serve()` raises in the test when it is left."""
        try:
            return give()
        except BaseException as error:  # of pytest, too
            self._fail(error, served, "the function that is the fake provider's reply failed")
            return None

    def _fail(self, error: BaseException, served: Endpoint, what: str) -> None:
        """Tell the client of an error that isn't its own, and later the test."""
        self.listener.failures.append(error)
        self._say(served, StreamError(f"{what}: {described(error)}"), 500)

    def _give_whole(self, script: Script, served: Endpoint, chunks: list[dict[str, Any]]) -> None:
        """Give the reply in one body, or the error that it ends with."""
        for item in script.items:
            if isinstance(item, (int, float)):
                self.wait(item)
            elif isinstance(item, StreamError):
                self._say(served, item, served.status(item))
                return
            elif isinstance(item, Exception):
                self._break(served, item)
                return
        if not any(isinstance(event, MessageFinish) for event in script.events):
            self.cut()
        elif served.whole is not None:
            body = served.whole(chunks)
            self.wait(0)
            self.answer(200, body)

    def _stream(self, script: Script, written: list[Any], served: Endpoint) -> None:
        items = [served.frame(item) if isinstance(item, dict) else item for item in written]
        self.begin(served.headers)
        for item in items:
            if isinstance(item, Exception):
                self.cut()
                return
            if isinstance(item, (int, float)):
                self.wait(item)
            else:
                self.wait(0)
                self.send(item)
        if served.last and any(isinstance(event, (MessageFinish, StreamError)) for event in script.events):
            self.send(served.last)
        self.end()


def _is_header(name: str, value: str) -> bool:
    return f"{name}{value}".isascii() and f"{name}{value}".isprintable()
