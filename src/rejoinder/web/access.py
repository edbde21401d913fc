"""Who may read the page: token, Host, method, and the number of requests at a time. Wraps an ASGI application.

The page is read-only, so only GET and HEAD exist. A request must name a host from an exact list; so a foreign site
cannot reach the page under a name of its own that resolves to this machine. It must present the token: once in the
address, which sets a cookie, or as `Authorization: Bearer`.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qs

from rejoinder.errors import InvalidSql, Unsupported
from rejoinder.host.entropy import token as random_token

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SHORTEST_TOKEN = 16
MOST_REQUESTS = 32
HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


@dataclass(frozen=True)
class Access:
    """The address of the page, its token, and the names by which it may be called."""

    address: str
    port: int
    token: str = field(repr=False)
    names: frozenset[str]

    @property
    def url(self) -> str:
        """The address to open, with the token."""
        return f"http://{_bracketed(self.address)}:{self.port}/?token={self.token}"

    @property
    def hosts(self) -> frozenset[str]:
        """The accepted values of the Host header."""
        return frozenset(f"{_bracketed(name)}:{self.port}" for name in self.names)

    @property
    def cookie(self) -> str:
        """The name of the cookie. Cookies of a host are shared by its ports, so the port is part of the name."""
        return f"rejoinder-{self.port}"


def access_of(address: str | None, port: int, token: str | None, names: tuple[str, ...] = ()) -> Access:
    """Return who may read the page. Raises `Unsupported` for another address than this machine without a token."""
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise InvalidSql(
            f"the token has {len(token)} characters",
            hint=f"use at least {SHORTEST_TOKEN}, such as `openssl rand -hex 16`",
        )
    if token is not None and not (token.isascii() and token.isalnum()):
        raise InvalidSql("the token has other characters than letters and digits", hint="use `openssl rand -hex 16`")
    bound = address or "127.0.0.1"
    if is_loopback(bound):
        return Access(bound, port, token or random_token(16), frozenset({*LOOPBACK, bound, *names}))
    if token is None:
        raise Unsupported(
            f"the page would be readable from other machines at {bound}",
            detail="another address than this machine needs a token of your own",
            hint="give --token (or REJOINDER_UI_TOKEN), or leave --address out and use an SSH tunnel",
        )
    return Access(bound, port, token, frozenset({bound, *names}))


def is_loopback(address: str) -> bool:
    """Return whether an address is of this machine only."""
    try:
        return address == "localhost" or ip_address(address).is_loopback
    except ValueError:
        return False


class Guard:
    """Lets requests through that may read the page. Others get 400, 401, 405, 421 or 503 and learn nothing."""

    def __init__(self, application: Application, access: Access) -> None:
        self.application = application
        self.access = access
        self._open = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.application(scope, receive, send)
            return
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0].lower() not in self.access.hosts:
            await _refuse(send, 421, "this name of the page is not allowed")
        elif scope["method"] not in ("GET", "HEAD"):
            await _refuse(send, 405, "the page is read-only: GET and HEAD", (b"allow", b"GET, HEAD"))
        elif _given_in_query(scope) is not None:
            await self._sign_in(scope, send)
        elif not self._is_known(headers):
            await _refuse(
                send, 401, "open the page by the address that `rejoinder ui` prints", (b"www-authenticate", b"Bearer")
            )
        elif self._open >= MOST_REQUESTS:
            await _refuse(send, 503, "too many requests at a time", (b"retry-after", b"1"))
        else:
            self._open += 1
            try:
                await self.application(scope, receive, _with_headers(send, scope["method"] == "HEAD"))
            finally:
                self._open -= 1

    async def _sign_in(self, scope: Message, send: Send) -> None:
        """Exchange the token in the address for a cookie, so that it does not stay in the address."""
        if not self._is_token(_given_in_query(scope)):
            await _refuse(send, 401, "the token is wrong: open the address that `rejoinder ui` prints")
            return
        cookie = f"{self.access.cookie}={self.access.token}; Path=/; HttpOnly; SameSite=Strict"
        extra = ((b"location", b"/"), (b"set-cookie", cookie.encode()), (b"content-length", b"0"))
        await send({"type": "http.response.start", "status": 303, "headers": [*HEADERS, *extra]})
        await send({"type": "http.response.body", "body": b""})

    def _is_known(self, headers: list[tuple[bytes, bytes]]) -> bool:
        for name, value in headers:
            text = value.decode("latin-1")
            if name == b"authorization" and text.lower().startswith("bearer ") and self._is_token(text[7:].strip()):
                return True
            if name == b"cookie" and self._is_token(_cookie(text, self.access.cookie)):
                return True
        return False

    def _is_token(self, given: str | None) -> bool:
        return given is not None and hmac.compare_digest(given.encode(), self.access.token.encode())


def _given_in_query(scope: Message) -> str | None:
    values = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=20).get("token")
    return None if values is None else values[0]


def _cookie(text: str, name: str) -> str | None:
    try:
        morsel = SimpleCookie(text).get(name)
    except CookieError:
        return None
    return None if morsel is None else morsel.value


def _with_headers(send: Send, is_head: bool) -> Send:
    """Add the headers of every answer, and leave out the body of an answer to HEAD."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [(name, value) for name, value in message["headers"] if name != b"cache-control"]
            message = {**message, "headers": [*own, *HEADERS]}
        elif is_head:
            message = {**message, "body": b""}
        await send(message)

    return sent


async def _refuse(send: Send, status: int, text: str, *extra: tuple[bytes, bytes]) -> None:
    body = f"{text}\n".encode()
    headers = [
        *HEADERS,
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
        *extra,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
