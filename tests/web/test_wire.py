"""What comes over the wire: requests of odd shape, slow and crowding senders, and processes of other users, by plain sockets."""

import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path

import pytest

from reticent.web import peer
from reticent.web.guard import HEADERS
from reticent.web.peer import is_own_process
from tests.web.house import LONG, Running, fill, open_ledger, start

FORM = "Content-Type: application/x-www-form-urlencoded\r\n"
PATIENCE = """
import signal, reticent.web.guard as g, reticent.web.serve as s
long = g.PATIENCE
def short(*_):
    g.PATIENCE = s.PATIENCE = 1.0
def usual(*_):
    g.PATIENCE = s.PATIENCE = long
signal.signal(signal.SIGUSR1, short)
signal.signal(signal.SIGUSR2, usual)
"""
"""Patience is short between two signals, for senders that are slow on purpose; who is honest has all of it, however busy the machine."""


def heads(desk: Running) -> str:
    return f"Host: {desk.host}\r\nCookie: {desk.cookie}\r\nOrigin: {desk.origin}\r\n"


def sent(desk: Running, text: str, wait: float = LONG) -> bytes:
    """All that comes back, until the other end closes or says nothing for a while."""
    got = b""
    with socket.create_connection(("127.0.0.1", desk.port), timeout=wait) as raw:
        raw.sendall(text.encode("latin-1"))
        try:
            while part := raw.recv(65536):
                got += part
                if is_whole(got):
                    raw.settimeout(0.2)  # for what should not come after it
        except OSError:
            pass
    return got


def is_whole(got: bytes) -> bool:
    """Whether an answer is there, to the last byte that it announces."""
    head, _, body = got.partition(b"\r\n\r\n")
    size = re.search(rb"content-length: ([0-9]+)", head.lower())
    return bool(size) and len(body) >= int(size[1])


SHAPES = {
    "two lengths": "Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    "a length and chunks": "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and a length": "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "chunks twice": "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "another coding": "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "no coding": "Transfer-Encoding: identity\r\n\r\nabc",
    "a signed length": "Content-Length: +5\r\n\r\nabcde",
    "a length below nothing": "Content-Length: -1\r\n\r\n",
    "a length in hexadecimals": "Content-Length: 0x5\r\n\r\nabcde",
    "a length that is no ASCII": "Content-Length: \xb2\r\n\r\nab",
    "an endless length": f"Content-Length: {'9' * 5000}\r\n\r\nab",
    "a chunk that is none": "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a blank before the colon": "Content-Length : 5\r\n\r\nabcde",
    "a NUL": "X: a\0b\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_body_of_which_two_could_think_otherwise_is_refused_whole(desk, shape):  # covers W16
    """And nothing that is hidden behind it is heard as a request of its own."""
    hidden = f"GET /releases HTTP/1.1\r\n{heads(desk)}\r\n"
    got = sent(desk, f"POST /plans/town.toml/look HTTP/1.1\r\n{heads(desk)}{FORM}{SHAPES[shape]}{hidden}")
    assert got.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 ")) and got.count(b"HTTP/1.1 ") == 1
    assert b"Releases" not in got


@pytest.mark.parametrize(
    "text",
    [
        "GET\r\n\r\n",
        "BREW coffee\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        "GET /\xe9 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    ],
)
def test_what_is_no_request_is_answered_with_the_same_headers(desk, text):  # covers W06 W16
    head, _, body = sent(desk, text).decode().partition("\r\n\r\n")
    lines = dict(line.split(": ", 1) for line in head.split("\r\n")[1:])
    assert head.startswith("HTTP/1.1 400 ") and body == "this request cannot be read\n"
    assert {name: lines.get(name) for name in HEADERS} == HEADERS
    assert desk.get("/").status == 200


@pytest.mark.parametrize(
    "target", ["http://evil.example/", "{origin}/", "*", "/plans/town.toml%2fsurvey", "/login/"]
)
def test_a_target_that_is_no_path_of_ours_leads_nowhere(desk, target):  # covers W11
    got = sent(desk, f"GET {target.format(origin=desk.origin)} HTTP/1.1\r\n{heads(desk)}\r\n")
    assert got.startswith(b"HTTP/1.1 404 ") and b"\r\nlocation" not in got and b"evil" not in got


def test_a_request_that_stops_in_the_middle_says_nothing_on_the_terminal(town):  # covers W12 W16
    """Not a traceback of the server's either."""
    desk = start(town)
    desk.login()
    for text in (
        f"POST /plans HTTP/1.1\r\n{heads(desk)}{FORM}Content-Length: 500\r\n\r\nabc",
        f"GET /plans/town.toml HTTP/1.1\r\n{heads(desk)}\r\n",
        f"GET / HTTP/1.1\r\n{heads(desk)}\r\n\x01\x02\r\n\r\n",
        f"POST /plans HTTP/1.1\r\n{heads(desk)}{FORM}Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\nzz\r\n",
    ):
        with socket.create_connection(("127.0.0.1", desk.port), timeout=LONG) as raw:
            raw.sendall(text.encode("latin-1"))
    assert desk.get("/").status == 200
    desk.process.send_signal(2)
    out, err = desk.process.communicate(timeout=LONG)
    assert err == "" and out.count("\n") == 1  # what to do with the link


def test_a_slow_sender_is_let_go(tmp_path):  # covers W13 W16
    """A head that never ends, a body that never comes, a byte at a time, many of them; and who never takes the answer."""
    folder = fill(tmp_path)
    open_ledger(folder)
    text = (folder / "town.toml").read_text()
    (folder / "town.toml").write_text(text + "# " + "'" * 900_000 + "\n")  # on the page five bytes each
    desk = start(folder, before=PATIENCE)
    desk.login()
    desk.process.send_signal(signal.SIGUSR1)
    body = f"POST /plans HTTP/1.1\r\n{heads(desk)}{FORM}Content-Length: 10\r\n\r\nab"
    for text in ("GET / HTTP/1.1\r\n", body, ""):
        got = sent(desk, text)
        assert got == b"" or b" 408 " in got
    slow = [socket.create_connection(("127.0.0.1", desk.port), timeout=LONG) for _ in range(10)]
    assert all_let_go(slow, f"GET / HTTP/1.1\r\n{heads(desk)}X: ")
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        deaf.connect(("127.0.0.1", desk.port))
        deaf.sendall(f"GET /plans/town.toml HTTP/1.1\r\n{heads(desk)}\r\n".encode())
        assert in_time(lambda: connections(desk) == 0)
    desk.process.send_signal(signal.SIGUSR2)
    assert in_time(lambda: answers(desk))
    desk.stop()


def in_time(came: Callable[[], bool]) -> bool:
    """Whether something comes to be true."""
    end = time.monotonic() + LONG
    while not came():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def all_let_go(senders: list[socket.socket], text: str) -> bool:
    """Whether the desk ends every connection of those who send a byte of a head that has no end, ten a second."""
    letters, left = chain(text, repeat("a")), list(senders)

    def gone() -> bool:
        char = next(letters).encode()
        left[:] = [each for each in left if is_taken(each, char)]
        return not left

    return in_time(gone)


def is_taken(sender: socket.socket, data: bytes) -> bool:
    """Whether a connection is still there to take this."""
    try:
        sender.sendall(data)
    except OSError:
        return False
    return True


def connections(desk: Running) -> int:
    """How many sockets the desk holds beside the one it listens on."""
    links = Path(f"/proc/{desk.process.pid}/fd").iterdir()
    held = {os.readlink(each).removeprefix("socket:[").rstrip("]") for each in links if os.path.lexists(each)}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[9] in held and row[3] == "01" and row[1].endswith(f":{desk.port:04X}") for row in rows)


def test_many_connections_are_turned_away_and_the_next_is_answered(town):  # covers W13
    """From 33 on with a word, from 129 on without one; so no crowd takes all descriptors."""
    desk = start(town)
    desk.login()
    held = [socket.create_connection(("127.0.0.1", desk.port), timeout=LONG) for _ in range(40)]
    assert desk.get("/").status == 503
    held += [socket.create_connection(("127.0.0.1", desk.port), timeout=LONG) for _ in range(200)]
    assert in_time(lambda: connections(desk) <= 130)
    for each in held:
        each.close()
    assert in_time(lambda: answers(desk))
    desk.stop()


def answers(desk: Running) -> bool:
    """Whether a request is answered; while the crowd is still being closed it may be turned away without a word."""
    try:
        return desk.get("/").status == 200
    except ConnectionError:
        return False


def heard_as(user: int, desk: Running, family: int, host: str) -> bytes:
    """What another user's process hears that has got hold of the cookie."""
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            with socket.socket(family) as raw:
                raw.settimeout(LONG)
                raw.connect((host, desk.port))
                raw.sendall(f"GET / HTTP/1.1\r\n{heads(desk)}\r\n".encode())
                os.write(write, raw.recv(40))
        except OSError:
            pass
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as end:
        return end.read()


@pytest.mark.skipif(
    os.name != "posix" or os.getuid() != 0, reason="only the administrator can be somebody else"
)
def test_another_users_process_hears_nothing_by_either_family_of_addresses(desk):  # covers W02
    """Cookies know no ports, so a cookie that another user's server was sent must not open the desk."""
    ways = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::ffff:127.0.0.1"))
    assert [heard_as(65534, desk, *way) for way in ways] == [b"", b""]
    assert [heard_as(0, desk, *way)[:12] for way in ways] == [b"HTTP/1.1 200"] * 2


LINE = "  1: {}:{:04X} {}:1F90 {} 00000000:00000000 00:00000000 00000000 {} 0 {} 1\n"


def naive_is_own(client: tuple[str, int], table: Path, user: int) -> bool:
    """The naive twin: one table, and whoever is not in it is welcome; uid 0 is always the administrator."""
    rows = [line.split() for line in table.read_text().splitlines()[1:]]
    found = [int(row[7]) for row in rows if row[1].endswith(f":{client[1]:04X}")]
    return not found or found[0] in (0, user)


@pytest.mark.skipif(
    sys.byteorder != "little", reason="the tables are written in the order of the machine's bytes"
)
def test_whose_socket_it_is(monkeypatch, tmp_path):
    """By the tables of the system: ours, another's, the administrator's, another's by the other family, and nobody's."""
    v4, v6 = "0100007F", "0000000000000000FFFF00000100007F"
    tables = [tmp_path / "tcp", tmp_path / "tcp6"]
    tables[0].write_text(
        "head\n"
        + f"  0: {v4}:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 9 1\n"
        + LINE.format(v4, 40000, v4, "01", 1000, 11)
        + LINE.format(v4, 40001, v4, "01", 1001, 12)
        + LINE.format(v4, 40002, v4, "01", 0, 13)
        + LINE.format(v4, 40004, v4, "05", 0, 0)
    )
    tables[1].write_text("head\n" + LINE.format(v6, 40003, v6, "01", 1001, 14))
    monkeypatch.setattr(peer, "TABLES", tables)
    monkeypatch.setattr("os.getuid", lambda: 1000)
    clients = [("127.0.0.1", port) for port in (40000, 40001, 40002, 40003, 40004, 40005)]
    seen = [is_own_process(client, ("127.0.0.1", 8080)) for client in clients]
    assert seen == [True, False, True, False, False, False]
    assert [naive_is_own(client, tables[0], 1000) for client in clients] == [
        True,
        False,
        True,
        True,
        True,
        True,
    ]
    monkeypatch.setattr(peer, "TABLES", [tmp_path / "none"])
    assert is_own_process(
        clients[1], ("127.0.0.1", 8080)
    )  # where the system does not say, the cookie decides
