"""The fence around the desk: what is refused before a page sees it, and the headers on every answer (W03 to W06, W13, W16).

In this order: crowding, sizes, Host, method, where it comes from, session, path, body. A refusal is a status and one line;
nothing of the request is repeated in it. Whose process it is was asked when the connection was made (`peer.py`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from reticent.web.session import Sessions

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LONGEST_URL, MOST_HEADERS, LARGEST_HEAD = 8 * 1024, 100, 64 * 1024
LARGEST_BODY, MOST_FIELDS, PATIENCE = 3 * 2**20, 2_000, 30.0
MOST_CONNECTIONS = 32
FORM = "application/x-www-form-urlencoded"
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
OPEN = ("/login", "/again")
"""What may be asked for without a session beside `/static/`: the door, and another key to it, told on the terminal alone."""
HIDDEN = (b"%2f", b"%5c", b"%00")
"""A slash, a backslash and a NUL as nobody of ours writes them in a path (W11)."""
ONCE = (
    "host",
    "origin",
    "content-length",
    "content-type",
    "cookie",
    "transfer-encoding",
    "sec-fetch-site",
    "sec-fetch-mode",
    "sec-fetch-dest",
)
"""Headers that decide something."""

REFUSALS = {
    400: "this request cannot be read",
    403: "this request does not come from the desk's own page",
    404: "there is no such page",
    405: "this is not done that way",
    408: "the request took too long to arrive",
    413: "this is too large",
    414: "this address is too long",
    415: "only the desk's own forms are taken",
    421: "the desk answers to its own address alone",
    431: "there are too many headers",
    503: "there are too many connections; try again",
}
DOOR = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Closed · reticent</title><link rel="stylesheet" href="/static/desk.css"><link rel="icon" href="/static/icon.svg"></head>
<body><main><h1>The desk is closed</h1>
<p class="problem" role="alert">There is no session, or it has ended: use the last link on the terminal where the desk was started.</p>
<form method="post" action="/again"><button>Show a new link on the terminal</button></form></main></body></html>
"""


class Guard:
    """ASGI middleware that lets through what the desk's own pages ask for, and nothing else.

    **Parameters**

    - `app`: what is guarded.
    - `sessions`: who may come in.
    - `port`: where the desk listens.
    - `crowd`: how many connections there are.
    """

    def __init__(self, app: App, sessions: Sessions, port: int, crowd: Callable[[], int] = lambda: 1) -> None:
        self._app, self._sessions, self._crowd = app, sessions, crowd
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self.cookie = f"reticent-desk-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        # A websocket gets no answer: there is none here, whoever asks (W05).

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        guarded = _with_headers(send)
        status = self._refusal(scope)
        body = b""
        if not status and scope["method"] == "POST":
            status, body = await _body(receive)
        if status:
            await _refuse(status, guarded)
            return
        scope["desk.form"], scope["desk.cookie"] = _form(body), self.cookie
        await self._app(scope, _given(body), guarded)

    def _refusal(self, scope: Scope) -> int:
        """The status with which a request is refused from its head alone; 0 where it is not."""
        headers = _headers(scope)
        return _too_much(scope, self._crowd()) or (400 if headers is None else self._stranger(scope, headers))

    def _stranger(self, scope: Scope, headers: Mapping[str, str]) -> int:
        """The status for who is not the desk's own page in the curator's browser."""
        method, path = scope["method"], scope["path"]
        if headers.get("host", "") not in self._hosts:
            return 421
        if method not in ("GET", "HEAD", "POST") or (method == "HEAD" and path in OPEN):
            return 405  # a look at the link must not use it up
        if not (_is_same_origin(headers) if method == "POST" else _is_invited(headers)):
            return 403
        if method == "POST" and headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
            return 415
        given = _cookies(headers, self.cookie)
        scope["desk.known"] = any(self._sessions.knows(each) for each in given)
        if not scope["desk.known"] and path not in OPEN and not path.startswith("/static/"):
            return 401
        raw = (scope.get("raw_path") or b"").lower()
        return 404 if any(each in raw for each in HIDDEN) else 0


def _too_much(scope: Scope, crowd: int) -> int:
    """The status for what is too many, too long or too large (W13)."""
    if crowd > MOST_CONNECTIONS:
        return 503
    if len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"") > LONGEST_URL:
        return 414
    held = scope["headers"]
    if len(held) > MOST_HEADERS or sum(len(name) + len(value) for name, value in held) > LARGEST_HEAD:
        return 431
    announced = [value for name, value in held if name.lower() == b"content-length"]
    return 413 if any(not each.isdigit() or int(each[:20]) > LARGEST_BODY for each in announced) else 0


def _headers(scope: Scope) -> dict[str, str] | None:
    """By name; None where one that decides something is given twice, or two that tell the length of a body otherwise."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in found and key in ONCE:
            return None
        found[key] = value.decode("latin-1")
    return None if {"content-length", "transfer-encoding"} <= found.keys() else found


def _is_invited(headers: Mapping[str, str]) -> bool:
    """A page, or part of one, is asked for by the desk or by the curator, who may follow a link to it; by no page elsewhere.

    Pages of other ports of this machine count as the same site, and browsers send them our cookie.
    """
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return True
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")


def _is_same_origin(headers: Mapping[str, str]) -> bool:
    """A post says where it comes from, one way or both, and it is this very page (W04).

    Where pages send no referrer, as ours, browsers write `null` for the origin of a form: then the other word decides,
    which no page can write itself.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if site is not None and site != "same-origin":
        return False
    return origin == f"http://{headers['host']}" or (site == "same-origin" and origin in (None, "null"))


def _cookies(headers: Mapping[str, str], name: str) -> list[str]:
    """Every value under a name, among whatever other servers of this address have set.

    Cookies know no ports. Those of others may have any shape, and one of them may bear our name, for a path of its own:
    the browser sends that one first, and it must not hide ours.
    """
    pairs = (each.strip().partition("=") for each in headers.get("cookie", "").split(";"))
    return [value for key, _, value in pairs if key == name][:MOST_FIELDS]


async def _body(receive: Receive) -> tuple[int, bytes]:
    """The body of a post, cut off where it is too large or too slow (W13)."""
    try:
        return await asyncio.wait_for(_gather(receive), PATIENCE)
    except TimeoutError:
        return 408, b""


async def _gather(receive: Receive) -> tuple[int, bytes]:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return 400, b""
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LARGEST_BODY:
            return 413, b""
        if not message.get("more_body"):
            return 0, b"".join(parts)


def _form(body: bytes) -> dict[str, list[str]]:
    """The fields of a form, each with all its values. What is no form has none."""
    found: dict[str, list[str]] = {}
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"
        )
    except (UnicodeDecodeError, ValueError):
        return found
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def _given(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _with_headers(send: Send) -> Send:
    """The same on every answer, refusals included."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [
                (name, value) for name, value in message["headers"] if name.decode().lower() not in HEADERS
            ]
            ours = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*own, *ours]}
        await send(message)

    return guarded


async def _refuse(status: int, send: Send) -> None:
    kind, text = ("text/html", DOOR) if status == 401 else ("text/plain", REFUSALS[status] + "\n")
    headers = [
        (b"content-type", f"{kind}; charset=utf-8".encode()),
        (b"content-length", str(len(text.encode())).encode()),
    ]
    close = [(b"connection", b"close")] if status in (400, 408, 413, 414, 431, 503) else []
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *close]})
    await send({"type": "http.response.body", "body": text.encode()})
