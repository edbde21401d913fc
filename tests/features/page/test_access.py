"""Who may read the page, tried with raw sockets: Host, method, token, headers, size, and connections."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rejoinder.errors import InvalidSql, Unsupported
from rejoinder.store.objects.object_store import open_store
from rejoinder.web.access import Access, access_of
from rejoinder.web.server import MOST_LISTENERS, serving
from tests.features.page.page_kit import free_port, served, shop


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    folder = tmp_path_factory.mktemp("page")
    shop(folder)
    with served(folder) as access:
        yield access


def sent(access: Access, request: str) -> tuple[int, str, str]:
    """Send bytes and return the status, the headers and the body."""
    with socket.create_connection(("127.0.0.1", access.port), timeout=20) as connection:
        connection.sendall(request.encode("latin-1"))
        data = b""
        while more := connection.recv(1 << 16):
            data += more
    head, _, body = data.decode("utf-8", "replace").partition("\r\n\r\n")
    return int(head.split(" ")[1]), head.lower(), body


def asked(
    access: Access, target: str, *lines: str, method: str = "GET", host: str | None = None
) -> tuple[int, str, str]:
    host = f"127.0.0.1:{access.port}" if host is None else host
    headers = "".join(f"{line}\r\n" for line in lines)
    return sent(access, f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n")


def bearer(access: Access) -> str:
    return f"Authorization: Bearer {access.token}"


def test_the_token_opens_the_page(access: Access) -> None:
    status, head, body = asked(access, "/", bearer(access))
    assert status == 200 and "rejoinder" in body.lower()
    policy = next(line for line in head.split("\r\n") if line.startswith("content-security-policy"))
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert "x-content-type-options: nosniff" in head and "cache-control: no-store" in head and "server:" not in head


def test_the_token_in_the_address_becomes_a_cookie(access: Access) -> None:
    status, head, _ = asked(access, f"/?token={access.token}")
    cookie = next(line for line in head.split("\r\n") if line.startswith("set-cookie"))
    assert status == 303 and "httponly" in cookie and "samesite=strict" in cookie and "location: /" in head
    assert asked(access, "/", f"Cookie: a=b; {access.cookie}={access.token}")[0] == 200


@pytest.mark.parametrize(
    "line", ["", "Authorization: Bearer wrong", "Authorization: Basic dTpw", "Cookie: rejoinder=x"]
)
@pytest.mark.parametrize(
    "target", ["/", "/metrics", "/part/status", "/events", "/static/page.js", "/part/query?sql=SHOW+VIEWS"]
)
def test_nothing_is_shown_without_the_token(access: Access, target: str, line: str) -> None:
    status, _, body = asked(access, target, *([line] if line else []))
    assert status == 401 and "sales" not in body and access.token not in body


def test_a_wrong_token_in_the_address(access: Access) -> None:
    assert asked(access, "/?token=wrong")[0] == 401
    assert asked(access, "/?token=")[0] == 401
    assert asked(access, f"/?token=wrong&token={access.token}")[0] == 401


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil.example:80",
        "127.0.0.1.:{port}",
        "",
        "x@127.0.0.1:{port}",
    ],
)
def test_only_exact_hosts(access: Access, host: str) -> None:
    assert asked(access, "/", bearer(access), host=host.format(port=access.port))[0] in (400, 421)


def test_two_hosts_or_none(access: Access) -> None:
    own = f"127.0.0.1:{access.port}"
    assert asked(access, "/", bearer(access), "Host: evil.example")[0] in (400, 421)
    assert sent(access, f"GET / HTTP/1.0\r\n{bearer(access)}\r\n\r\n")[0] in (400, 421)
    assert asked(access, "/", bearer(access), host=f"localhost:{access.port}")[0] == 200
    assert asked(access, f"http://evil.example/?x={own}", bearer(access), host="evil.example")[0] == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"])
def test_only_get_and_head(access: Access, method: str) -> None:
    status, head, _ = asked(access, "/", bearer(access), method=method)
    assert status == 405 and "allow: get, head" in head


def test_head_has_no_body(access: Access) -> None:
    status, head, body = asked(access, "/", bearer(access), method="HEAD")
    assert status == 200 and body == "" and "content-length" in head


@pytest.mark.parametrize(
    "target", ["/static/../server.py", "/static/%2e%2e%2fserver.py", "/static/page.html", "/etc/passwd", "//x"]
)
def test_no_other_file(access: Access, target: str) -> None:
    status, _, body = asked(access, target, bearer(access))
    assert status == 404 and "import" not in body


@pytest.mark.parametrize(
    "target",
    [
        "/part/view",
        "/part/view?name=sales&epoch=-1",
        "/part/view?name=sales&epoch=1e9",
        "/part/view?name=sales&epoch=99999",
        "/part/view?name=%3Cscript%3E",
        "/part/node?key=%00",
        "/part/query?sql=DROP+VIEW+sales",
        "/part/query?sql=%3Cscript%3E",
    ],
)
def test_bad_requests_are_explained(access: Access, target: str) -> None:
    status, _, body = asked(access, target, bearer(access))
    assert status in (400, 404) and 'class="error"' in body and "Hint" in body and "<script" not in body
    assert "Traceback" not in body


def test_a_long_address_is_refused(access: Access) -> None:
    status, _, body = asked(access, "/part/query?sql=" + "x" * 30_000, bearer(access))
    assert status == 400 and "characters" in body
    with suppress(ConnectionError, IndexError):  # the server may close the connection before it is read
        assert sent(access, "GET /" + "x" * 200_000)[0] == 400
    assert asked(access, "/metrics", bearer(access))[0] == 200


def test_garbage_does_not_stop_the_page(access: Access) -> None:
    for data in ("\x00\xff\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/1.1\r\nHost : x\r\n\r\n"):
        assert sent(access, data)[0] == 400
    assert asked(access, "/metrics", bearer(access))[0] == 200


def test_the_number_of_followers_is_bounded(access: Access) -> None:
    request = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{access.port}\r\n{bearer(access)}\r\n\r\n"
    open_ones = []
    try:
        for _ in range(MOST_LISTENERS):
            connection = socket.create_connection(("127.0.0.1", access.port), timeout=20)
            connection.sendall(request.encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
            open_ones.append(connection)
        assert asked(access, "/events", bearer(access))[0] == 503
        assert asked(access, "/metrics", bearer(access))[0] == 200, "the page itself goes on"
    finally:
        for connection in open_ones:
            connection.close()


def test_other_machines_need_a_token_and_an_address() -> None:
    with pytest.raises(Unsupported, match="readable from other machines"):
        access_of("0.0.0.0", 1, None)
    with pytest.raises(InvalidSql, match="characters"):
        access_of("0.0.0.0", 1, "short")
    with pytest.raises(InvalidSql, match="letters"):
        access_of(None, 1, "a token; Path=/ of words")
    assert access_of("10.0.0.1", 80, "a" * 16).hosts == {"10.0.0.1:80"}
    assert access_of("::1", 80, None).url.startswith("http://[::1]:80/?token=")
    assert access_of(None, 1, None).token != access_of(None, 1, None).token
    assert access_of(None, 1, "a" * 16, ("my.host",)).hosts >= {"my.host:1", "127.0.0.1:1", "localhost:1", "[::1]:1"}
    assert "a" * 16 not in repr(access_of(None, 1, "a" * 16))


def test_two_pages_on_one_port(tmp_path: Path, access: Access) -> None:
    shop(tmp_path, 1)
    other = access_of(None, access.port, None)
    with pytest.raises(Unsupported, match=f"port {access.port}"), serving(open_store(str(tmp_path / "state")), other):
        pass
    with served(tmp_path) as own:
        assert own.port != access.port and asked(own, "/metrics", bearer(own))[0] == 200


def test_a_page_of_no_state_says_so(tmp_path: Path) -> None:
    own = access_of(None, free_port(), None)
    with serving(open_store(str(tmp_path / "nothing")), own):
        status, _, body = asked(own, "/", bearer(own))
    assert status == 404 and "there is no state" in body
