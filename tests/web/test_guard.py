"""The fence around the desk: every probe of part W that needs no browser, against the real server."""

import re
import socket
import subprocess
import sys
import time
from http.cookies import SimpleCookie
from pathlib import Path

import pytest

from reticent.web import guard
from reticent.web.guard import HEADERS
from reticent.web.session import PAUSE, Sessions
from tests.web.house import LONG, MARK, fill, start

PAGES = [
    "/",
    "/releases",
    *(f"/plans/town.toml{end}" for end in ("", "/survey", "/codebook", "/missing", "/budget", "/confirm")),
]
CHANGES = [
    f"/plans/town.toml/{end}" for end in ("look", "rehearsal", "ledger", "approve", "release", "resume")
] + ["/plans", "/logout"]
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def test_it_listens_on_loopback_alone(desk):  # covers W01
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = [parts[1] for parts in lines if parts[3] == "0A" and parts[1].endswith(f":{desk.port:04X}")]
    assert listening == [f"0100007F:{desk.port:04X}"]
    other = socket.socket()
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    with pytest.raises(OSError):
        other.bind(("127.0.0.1", desk.port))
    other.close()


def test_the_token_works_once_and_becomes_a_cookie_that_scripts_cannot_read(tmp_path):  # covers W02
    running = start(fill(tmp_path))
    try:
        assert running.send("GET", "/login?token=" + "x" * 43).status == 403
        assert running.send("GET", f"/?token={running.token}").status == 401
        assert (
            running.send("HEAD", f"/login?token={running.token}").status == 405
        )  # a look does not use it up
        got = running.send("GET", f"/login?token={running.token}")
        cookie = got.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=strict" in cookie and "domain" not in cookie
        assert running.send("GET", f"/login?token={running.token}").status == 403
        assert got.headers["location"] == "/" and got.headers["referrer-policy"] == "no-referrer"
        running.cookie = got.headers["set-cookie"].partition(";")[0]
        assert running.get("/").status == 200
        assert (
            running.token not in running.get("/").text
            and running.cookie.partition("=")[2] not in running.get("/").text
        )
    finally:
        running.stop()


@pytest.mark.parametrize("path", PAGES)
def test_without_a_session_nothing_is_shown(desk, path):  # covers W02
    for cookie in ("", f"reticent-desk-{desk.port}=", f"reticent-desk-{desk.port}=" + "x" * 43, 'a="'):
        got = desk.send("GET", path, headers={"Cookie": cookie})
        assert got.status == 401 and "town" not in got.text


BESIDE = {
    "odd values": '{ours}; j={{"a": 1, "b": [2]}}; u="2|1:0|5:abc=="',
    "names that are none": 'a b=1; a@b=2; [x]=3; {{"j": 1}}=4; =5; lone; {ours}',
    "an open quote": 'q="open; {ours}',
    "words of a cookie's own": "path; expires=Thu, 01 Jan; {ours}; domain=x",
    "nothing between": ";;a=,;{ours};",
    "letters beyond ASCII": "x=\u00fc; {ours}",
    "our name, of somebody else, before": "{name}=forged; {ours}",
    "our name, of somebody else, behind": "{ours}; {name}=; {name}=forged",
    "the desk of another port": "reticent-desk-1=forged; {ours}",
}


@pytest.mark.parametrize("kind", BESIDE)
def test_the_cookie_is_found_among_those_of_other_servers(desk, kind):  # covers W02
    """Cookies know no ports: whatever else listens on this address may have set some, and the browser sends all in one header."""
    name = desk.cookie.partition("=")[0]
    held = BESIDE[kind].format(ours=desk.cookie, name=name)
    assert desk.send("GET", "/", headers={"Cookie": held}).status == 200
    without = BESIDE[kind].format(ours=f"{name}=x", name=name)
    assert desk.send("GET", "/", headers={"Cookie": without}).status == 401


def test_the_naive_reader_of_cookies_locks_the_curator_out():
    """The naive twin, from the library: one odd name and it has read nothing; of two alike it knows the last."""
    ours = "reticent-desk-1=right"
    lost = [
        kind
        for kind, held in BESIDE.items()
        if (found := SimpleCookie(held.format(ours=ours, name="reticent-desk-1")).get("reticent-desk-1"))
        is None
        or found.value != "right"
    ]
    assert len(lost) >= 4


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "192.168.1.7:{port}",
        "127.0.0.1.evil.example:{port}",
        "",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:1",
        "0.0.0.0:{port}",
        "127.0.0.2:{port}",
        "127.0.0.1:{port}@evil.example",
        "LOCALHOST:{port}x",
    ],
)
def test_another_host_is_misdirected(desk, host):  # covers W03
    got = desk.get("/", Host=host.format(port=desk.port))
    assert got.status == 421 and "town" not in got.text and "evil" not in got.text


def test_its_own_names_are_answered(desk):  # covers W03
    assert desk.get("/", Host=f"localhost:{desk.port}").status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://127.0.0.1:{port}.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "cross-site"},
        {},
    ],
)
def test_a_post_from_elsewhere_is_refused(desk, headers):  # covers W04
    given = {name: value.format(port=desk.port) for name, value in headers.items()}
    body = f"word={desk.word()}&text=x".encode()
    got = desk.send("POST", "/plans/town.toml/look", body, {"Cookie": desk.cookie, **FORM, **given})
    assert got.status == 403


def naive_is_same_origin(headers: dict[str, str]) -> bool:
    """The naive twin: a header that is not there is no reason to refuse."""
    return headers.get("origin", "http://127.0.0.1").startswith("http://127.0.0.1")


def test_the_naive_check_lets_two_of_them_in():
    assert naive_is_same_origin({}) and naive_is_same_origin({"origin": "http://127.0.0.1.evil.example"})
    ours = {"host": "127.0.0.1:8000"}
    assert not guard._is_same_origin(ours)
    assert not guard._is_same_origin({**ours, "origin": "http://127.0.0.1:8000.evil.example"})


@pytest.mark.parametrize("path", CHANGES)
def test_a_form_without_the_word_of_the_session_is_refused(desk, path):  # covers W04
    for word in ("", "x" * 43):
        body = f"word={word}".encode()
        got = desk.send("POST", path, body, {"Cookie": desk.cookie, "Origin": desk.origin, **FORM})
        assert got.status == 403


@pytest.mark.parametrize("path", CHANGES)
def test_what_changes_something_is_no_get(desk, path):  # covers W04
    if path in ("/plans",):
        assert desk.get(path).status in (404, 405)
    else:
        assert desk.get(path).status == 405


@pytest.mark.parametrize(
    "method", ["TRACE", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "PROPFIND", "BREW"]
)
def test_other_methods_are_refused_and_grant_nothing(desk, method):  # covers W05 W16
    got = desk.send(
        method,
        "/",
        headers={
            "Cookie": desk.cookie,
            "Origin": "http://evil.example",
            "Access-Control-Request-Method": "POST",
            "X-HTTP-Method-Override": "POST",
        },
    )
    assert got.status == 405 and not [name for name in got.headers if name.startswith("access-control")]


def test_a_method_override_overrides_nothing(desk):  # covers W04
    got = desk.get("/plans/town.toml/release", **{"X-HTTP-Method-Override": "POST"})
    assert got.status == 405


def test_there_is_no_websocket(desk):  # covers W05
    got = desk.get(
        "/",
        Upgrade="websocket",
        Connection="Upgrade",
        **{"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="},
    )
    assert got.status != 101


@pytest.mark.parametrize("path", [*PAGES, "/static/desk.css", "/static/desk.js", "/nothing", "/login"])
def test_the_headers_are_on_every_answer(desk, path):  # covers W06
    got = desk.get(path)
    assert {name: got.headers.get(name) for name in HEADERS} == HEADERS
    policy = got.headers["content-security-policy"]
    assert "unsafe" not in policy and "frame-ancestors 'none'" in policy and "*" not in policy
    assert "server" not in got.headers


def test_refusals_have_them_too(desk):  # covers W06
    for got in (desk.send("GET", "/"), desk.get("/", Host="evil.example"), desk.send("PUT", "/")):
        assert (
            got.headers["x-content-type-options"] == "nosniff" and got.headers["cache-control"] == "no-store"
        )


@pytest.mark.parametrize("path", PAGES)
def test_pages_name_nothing_elsewhere_and_hold_no_inline_script_or_style(desk, path):  # covers W06 W07
    text = desk.get(path).text
    assert not re.findall(r"(?:src|href|action)=\"(?!/|#)", text)
    assert not re.search(r"<script(?! src=)|\sstyle=|<style|\son[a-z]+=\"", text)
    assert "//" not in text.replace("://", "")


@pytest.mark.parametrize("path", PAGES)
def test_a_label_is_text_wherever_it_stands(desk, path):  # covers W14
    text = desk.get(path).text
    assert "<img" not in text
    if path.endswith(("survey", "codebook")):
        assert "&lt;img" in text


def test_what_is_missing_stands_behind_a_click_and_shows_no_cell(desk):  # covers W08
    before, after = desk.get("/plans/town.toml/missing"), desk.post("/plans/town.toml/missing", {})
    assert "%" not in before.text and "CONFIDENTIAL" in after.text and "20.0 %" in after.text
    assert after.status == 200 and after.headers["cache-control"] == "no-store"
    for path in (*PAGES, "/plans/town.toml/missing"):
        assert MARK not in desk.get(path).text
    assert MARK not in after.text


@pytest.mark.parametrize(
    "kind", ["multipart/form-data; boundary=x", "application/json", "text/plain", "", "application/xml"]
)
def test_uploads_and_other_bodies_are_not_taken(desk, kind):  # covers W09
    headers = {"Cookie": desk.cookie, "Origin": desk.origin, "Content-Type": kind}
    assert desk.send("POST", "/plans/town.toml/look", b"{}", headers).status == 415


def test_a_large_body_is_refused_at_once_or_cut(desk):  # covers W09 W13
    announced = {"Cookie": desk.cookie, "Origin": desk.origin, **FORM, "Content-Length": str(10**9)}
    assert desk.send("POST", "/plans/town.toml/look", b"", announced).status == 413
    with socket.create_connection(("127.0.0.1", desk.port), timeout=LONG) as raw:
        head = (
            f"POST /plans HTTP/1.1\r\nHost: {desk.host}\r\nOrigin: {desk.origin}\r\nCookie: {desk.cookie}\r\n"
        )
        raw.sendall(
            f"{head}Content-Type: {FORM['Content-Type']}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        chunk = b"10000\r\n" + b"a" * 65536 + b"\r\n"
        answer = b""
        try:
            for _ in range(200):
                raw.sendall(chunk)
            answer = raw.recv(100)
        except OSError:
            answer = answer or raw.recv(100)
        assert b" 413 " in answer
    assert desk.get("/").status == 200


TRICKS = [
    "../town.csv",
    "..%2ftown.csv",
    "%2e%2e%2ftown.csv",
    "%252e%252e%252ftown.csv",
    "..\\town.csv",
    "..%5ctown.csv",
]
TRICKS += [
    "town.toml%00",
    "%00",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "town.csv",
    "town.codebook.toml",
    "town.ledger.db",
    ".",
]


@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize(
    "door",
    ["/plans/{}", "/static/{}", "/releases/town.ledger.db/{}", "/releases/town.ledger.db/town-1/{}", "/{}"],
)
def test_no_path_leads_out(desk, trick, door):  # covers W10 W11
    got = desk.get(door.format(trick.replace("\\", "%5c") if "\\" in trick else trick))
    assert got.status in (404, 405) and "root:" not in got.text
    assert "passwd" not in got.text and "age,job" not in got.text and "%2e" not in got.text


def test_errors_are_a_line_and_repeat_nothing(desk):  # covers W12
    for path in ("/plans/none-such.toml", "/zzmark", "/releases/zzmark/zzmark"):
        got = desk.get(path)
        assert (
            got.status == 404
            and "zzmark" not in got.text
            and "Traceback" not in got.text
            and "/tmp" not in got.text
        )


def test_no_environment_turns_debugging_on(tmp_path):  # covers W12
    loud = {"DEBUG": "1", "STARLETTE_DEBUG": "true", "UVICORN_LOG_LEVEL": "debug", "WEB_CONCURRENCY": "4"}
    running = start(fill(tmp_path), environment=loud)
    running.login()
    got = running.get("/nothing/at/all")
    assert got.status == 404 and "Traceback" not in got.text
    running.process.send_signal(2)
    out, err = running.process.communicate(timeout=LONG)
    assert err == "" and running.cookie.partition("=")[2] not in out


def test_sizes_of_the_head_are_limited(desk):  # covers W13
    assert desk.get("/" + "a" * 9000).status == 414
    assert desk.get("/", **{f"X-{n}": "y" for n in range(500)}).status == 431
    assert desk.get("/", X="y" * 65_500).status == 431
    with socket.create_connection(("127.0.0.1", desk.port), timeout=LONG) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * 200_000)
        assert b" 400 " in raw.recv(200)
    assert desk.get("/").status == 200


def test_headers_that_decide_may_stand_once(desk):  # covers W03 W16
    with socket.create_connection(("127.0.0.1", desk.port), timeout=LONG) as raw:
        raw.sendall(f"GET / HTTP/1.1\r\nHost: {desk.host}\r\nHost: evil.example\r\n\r\n".encode())
        assert b" 400 " in raw.recv(200)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"%",
        b"a" * 5000,
        b"=&=&;",
        b"word=%00",
        b"text=" + b"[" * 5000,
        b"&".join([b"a=1"] * 3000),
    ],
)
def test_broken_forms_break_nothing(desk, body):  # covers W16
    headers = {"Cookie": desk.cookie, "Origin": desk.origin, **FORM}
    assert desk.send("POST", "/plans/town.toml/look", body, headers).status == 403
    whole = f"word={desk.word()}&".encode() + body
    assert desk.send("POST", "/plans/town.toml/look", whole, headers).status in (200, 403, 422)
    assert desk.get("/").status == 200


@pytest.mark.parametrize(
    "text",
    ["[" * 5000, "a = nan", "x = 1e999999", "\x00", "[release]\nid = 5", "format = 'x'", "a.b" * 9000, ""],
)
def test_a_text_that_is_no_plan_is_refused_in_words(desk, text):  # covers W14 W16
    got = desk.post("/plans/town.toml/look", {"text": text})
    assert got.status == 200 and 'role="alert"' in got.text and "Traceback" not in got.text


def test_it_stops_with_the_terminal(tmp_path):  # covers W17
    import signal

    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        running = start(fill(tmp_path))
        running.stop(sign)
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", running.port), timeout=2)


def test_who_is_in_needs_no_second_token(desk):  # covers W02
    got = desk.get("/login?token=whatever")
    assert got.status == 303 and got.headers["location"] == "/" and "set-cookie" not in got.headers


def test_leaving_ends_the_session_and_the_browser_forgets_its_pages(town):  # covers W08 W17
    running = start(town)
    running.login()
    got = running.post("/logout", {})
    assert got.status == 200 and running.get("/").status == 401
    assert got.headers["clear-site-data"] == '"cache"' and "max-age=0" in got.headers["set-cookie"].lower()
    running.process.send_signal(2)
    out, err = running.process.communicate(timeout=LONG)
    assert out.count("/login?token=") == 1 and running.token not in out and err == ""  # another one


def test_a_lost_cookie_is_no_lost_desk(town):  # covers W02
    """A browser that was closed has no session; its button has another link told on the terminal, and there alone."""
    running = start(town)
    running.login()
    shut = running.send("GET", "/")
    assert shut.status == 401 and 'action="/again"' in shut.text and "town" not in shut.text
    own = {"Origin": running.origin, **FORM}
    for headers in ({**own, "Origin": "http://evil.example"}, {**own, "Sec-Fetch-Site": "same-site"}, FORM):
        assert running.send("POST", "/again", headers=headers).status == 403
    assert running.send("GET", "/again").status == 405
    time.sleep(2.1)
    began = time.monotonic()
    asked = [running.send("POST", "/again", headers=own) for _ in range(20)]
    most = 1 + int((time.monotonic() - began) / PAUSE)  # one in each pause, however slow the machine
    assert {each.status for each in asked} == {200} and "token" not in asked[0].text
    assert running.get("/").status == 200  # until the other link is used
    running.process.send_signal(2)
    out, _ = running.process.communicate(timeout=LONG)
    assert 1 <= out.count("/login?token=") <= most


GETS = [
    ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, 200),
    ({"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200),
    ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200),
    ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403),
    ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403),
    ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}, 403),
    ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, 403),
]


@pytest.mark.parametrize(("headers", "status"), GETS)
def test_no_page_elsewhere_has_ours_as_a_part(desk, headers, status):  # covers W05
    """Pages of other ports of this machine are sent the cookie: they may link to the desk, and no more."""
    assert desk.get("/", **headers).status == status


def test_an_idle_session_ends_and_a_new_way_in_is_told():  # covers W02 W17
    told, now = [], [0.0]
    sessions = Sessions(tell=told.append, clock=lambda: now[0])
    cookie = sessions.login(told[0])
    now[0] = 29 * 60
    assert sessions.knows(cookie)
    now[0] += 29 * 60
    assert sessions.knows(cookie)
    now[0] += 31 * 60
    assert not sessions.knows(cookie) and len(told) == 2
    assert not sessions.knows(cookie) and len(told) == 2
    assert sessions.login(told[0]) is None and sessions.login(told[1]) is not None


def test_without_the_parts_the_command_says_what_to_install():
    code = "import sys; sys.modules['uvicorn'] = None; from reticent.cli import main; sys.argv = ['reticent', 'serve']; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=LONG
    )
    assert done.returncode == 2 and "reticent[web]" in done.stderr and done.stdout == ""
