"""A proxy between a curator and a server: it records what is committed, and cuts a connection where a test says so."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.engine.conformance.server import CURATOR, PORT, Server

COMMIT, WRITE = b"COMMIT\0", b"COPY reticent.entry"
PASS, CUT, DEAF = "pass", "cut", "deaf"


class Proxy:
    """Listens on a socket of its own, as the service `NAME`. `act` sees every message of a client by its number.

    What it answers becomes of the message: PASS; CUT ends the connection before the server sees it; DEAF lets the server
    see it, waits for its answer, and ends the connection before the client does.
    """

    def __init__(self, server: Server, folder: Path, name: str) -> None:
        self.place = f"postgres:{name}/survey"
        self.act: Callable[[int, bytes], str] = lambda _number, _data: PASS
        self.log: list[Any] = []
        self.count = 0
        self._target = str(server.folder / f".s.PGSQL.{PORT}")
        folder.mkdir()
        server.serve(name, {**server.service(CURATOR), "host": str(folder)})
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / f".s.PGSQL.{PORT}"))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                there = socket.socket(socket.AF_UNIX)
                there.connect(self._target)
                lost = threading.Event()
                threading.Thread(target=self._there, args=(client, there, lost), daemon=True).start()
                threading.Thread(target=self._back, args=(client, there, lost), daemon=True).start()

    def _there(self, client: socket.socket, there: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(2**20):
                number, self.count = self.count, self.count + 1
                if WRITE in data:
                    self.log.append("written")
                fate = self.act(number, data)
                if fate == CUT:
                    break
                if fate == DEAF:
                    lost.set()
                there.sendall(data)
        if not lost.is_set():
            _end(client, there)

    def _back(self, client: socket.socket, there: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while data := there.recv(2**20):
                if COMMIT in data:
                    self.log.append("committed")
                if lost.is_set():
                    break
                client.sendall(data)
        _end(client, there)


def _end(*ends: socket.socket) -> None:
    for each in ends:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
