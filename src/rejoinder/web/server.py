"""The server of the page: routes, events for new commits, and its start in this thread or in the background."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from rejoinder.engine.engine import Engine
from rejoinder.errors import InvalidSql, LimitReached, NotCommitted, RejoinderError, UnknownName, Unsupported
from rejoinder.state.reading.changelog_reader import timeline_of
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.web.access import Access, Guard
from rejoinder.web.flow_status import FlowStatus, status_of
from rejoinder.web.metrics import CONTENT_TYPE, metrics_text
from rejoinder.web.panels.markup import Markup, join, tag
from rejoinder.web.panels.node_panel import node_panel
from rejoinder.web.panels.page import page
from rejoinder.web.panels.query_panel import query_panel
from rejoinder.web.panels.row_panels import view_panel
from rejoinder.web.panels.status_panels import error_panel, panels
from rejoinder.web.state_reader import StateReader
from rejoinder.web.view_history import view_at

POLL_SECONDS = 1.0
MOST_LISTENERS = 16
LONGEST_QUERY = 20_000
STATIC = Path(__file__).parent / "static"
TYPES = {"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"}


class Site:
    """The routes of the page of one state. Answers are computed in threads; the state is read by one at a time."""

    def __init__(self, store: ObjectStore) -> None:
        self.reader = StateReader(store)
        self._listeners = 0
        self._status: FlowStatus | None = None
        self.is_stopping = False

    def application(self) -> Starlette:
        """Return the routes as an ASGI application."""
        routes: dict[str, Callable[[Request], Response]] = {
            "/": self._page,
            "/part/status": self._panels,
            "/part/node": self._node,
            "/part/view": self._view,
            "/part/query": self._query,
            "/metrics": self._metrics,
            "/static/{name}": self._static,
        }
        listed = [Route(path, _threaded(answer), methods=["GET", "HEAD"]) for path, answer in routes.items()]
        return Starlette(routes=[*listed, Route("/events", self._events, methods=["GET"])])

    def status(self) -> FlowStatus:
        """Return the status of the newest commit. It is computed once per commit."""

        def read(engine: Engine) -> FlowStatus:
            manifest = engine.version.manifest
            if self._status is None or manifest is None or self._status.version != manifest.version:
                self._status = status_of(engine, self.reader.oldest_retained())
            return self._status

        return self.reader.read(read)

    def _page(self, _: Request) -> Response:
        try:
            return _html(page(panels(self.status())))
        except RejoinderError as error:
            return _html(page({"graph": _error(error)}), _code(error))

    def _panels(self, _: Request) -> Response:
        return _html(join(tag("section", content, id=name) for name, content in panels(self.status()).items()))

    def _node(self, request: Request) -> Response:
        key, status = _text(request, "key"), self.status()
        return _html(self.reader.read(lambda engine: node_panel(engine, status, key)))

    def _view(self, request: Request) -> Response:
        name, epoch, against = _text(request, "name"), _number(request, "epoch"), _number(request, "against")

        def read(engine: Engine) -> Markup:
            assert engine.version.manifest is not None, "the state has a commit"
            times = timeline_of(engine.version.manifest).times(engine.store)
            return view_panel(view_at(engine, name, epoch, against), times)

        return _html(self.reader.read(read))

    def _query(self, request: Request) -> Response:
        statement = _text(request, "sql")
        if len(statement) > LONGEST_QUERY:
            raise LimitReached(
                f"the statement has {len(statement):,} characters", hint=f"at most {LONGEST_QUERY:,} are allowed"
            )
        return _html(self.reader.read(lambda engine: query_panel(engine, statement)))

    def _metrics(self, _: Request) -> Response:
        return Response(metrics_text(self.status()), media_type=CONTENT_TYPE)

    def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in TYPES:
            return PlainTextResponse("there is no such file\n", 404)
        return Response((STATIC / name).read_bytes(), headers={"content-type": TYPES[name]})

    async def _events(self, request: Request) -> Response:
        if self._listeners >= MOST_LISTENERS:
            return PlainTextResponse("too many pages are open\n", 503)
        return StreamingResponse(self._commits(request), media_type="text/event-stream")

    async def _commits(self, request: Request) -> AsyncIterator[str]:
        """Yield an event for each new commit, and one if the state cannot be read; a comment every few seconds."""
        self._listeners += 1
        try:
            last, turn = "", 0
            while not self.is_stopping and not await request.is_disconnected():
                try:
                    event = f"event: commit\ndata: {await run_in_threadpool(self.reader.refresh)}\n\n"
                except RejoinderError as error:
                    event = f"event: trouble\ndata: {error.code}\n\n"
                turn += 1
                if event != last:
                    last = event
                    yield event
                elif turn % 10 == 0:
                    yield ": waiting\n\n"
                await asyncio.sleep(POLL_SECONDS)
        finally:
            self._listeners -= 1


@contextlib.contextmanager
def serving(store: ObjectStore, access: Access) -> Iterator[Site]:
    """Serve the page in the background until the block ends. Raises `Unsupported` if the port is taken."""
    site, listening = Site(store), bound_socket(access)
    server = _server(site, access)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="rejoinder-ui", daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.is_stopping = server.should_exit = True
        thread.join(timeout=10)
        listening.close()


def bound_socket(access: Access) -> socket.socket:
    """Return a socket that listens at the address. Raises `Unsupported` if it cannot."""
    family = socket.AF_INET6 if ":" in access.address else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((access.address, access.port))
        listening.listen(64)
    except OSError as error:
        listening.close()
        raise Unsupported(
            f"the page cannot use port {access.port} of {access.address}",
            detail=error.strerror or str(error),
            hint="another page may use it: choose another one with --port",
        ) from None
    return listening


def _server(site: Site, access: Access) -> uvicorn.Server:
    config = uvicorn.Config(
        Guard(site.application(), access),
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        limit_concurrency=64,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=64 << 10,
        http="h11",
        ws="none",
        lifespan="off",
        proxy_headers=False,
    )
    return uvicorn.Server(config)


def _threaded(answer: Callable[[Request], Response]) -> Callable[[Request], object]:
    """Answer in a thread. Errors of Rejoinder become a panel; their values are never shown."""

    async def respond(request: Request) -> Response:
        try:
            return await run_in_threadpool(answer, request)
        except RejoinderError as error:
            return _html(_error(error), _code(error))

    return respond


def _error(error: RejoinderError) -> Markup:
    return error_panel(error.fact, error.detail, error.hint, error.code)


def _code(error: RejoinderError) -> int:
    return 404 if isinstance(error, UnknownName | NotCommitted) else 400


def _html(content: Markup, code: int = 200) -> Response:
    return Response(content, code, media_type="text/html")


def _text(request: Request, name: str) -> str:
    value = request.query_params.get(name, "")
    if not value.strip():
        raise InvalidSql(f"`{name}` is empty", hint="choose a part of the graph, or write a statement")
    return value


def _number(request: Request, name: str) -> int | None:
    value = request.query_params.get(name, "")
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and len(value) < 16):
        raise InvalidSql(f"`{name}` is not an epoch", hint="epochs are numbers from 0")
    return int(value)
