"""Start the desk: listen on loopback alone, print the way in, and stop with the terminal (W01, W13, W17)."""

import logging
import os
import socket
from pathlib import Path
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from reticent.errors import PlanError, ResourceError
from reticent.privacy.ledger import ApproverKey
from reticent.web.app import make_app
from reticent.web.desk import Desk
from reticent.web.guard import HEADERS, LARGEST_HEAD, MOST_CONNECTIONS, PATIENCE, REFUSALS, Guard
from reticent.web.peer import is_own_process
from reticent.web.session import Sessions

HOST = "127.0.0.1"
MOST_HELD = 4 * MOST_CONNECTIONS
"""Connections that are not even heard: those between get a refusal."""


class PatientProtocol(H11Protocol):  # type: ignore[misc]
    """HTTP with the curator's own processes alone, whose requests arrive, and whose answers are taken, within `PATIENCE` seconds."""

    def connection_made(self, transport: Any) -> None:
        self.timers: dict[str, Any] = {}
        super().connection_made(transport)
        if len(self.connections) > MOST_HELD or not is_own_process(self.client, self.server):
            self.transport.abort()
        self._arm("arrives")

    def data_received(self, data: bytes) -> None:
        if "arrives" not in self.timers:
            self._arm("arrives")
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._disarm("arrives")

    def pause_writing(self) -> None:
        super().pause_writing()
        self._arm("is taken")

    def resume_writing(self) -> None:
        super().resume_writing()
        self._disarm("is taken")

    def connection_lost(self, exc: Exception | None) -> None:
        for each in list(self.timers):
            self._disarm(each)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP gets the same headers as everything else, or no answer where one has begun."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        text = f"{REFUSALS[400]}\n".encode()
        heads = {**HEADERS, "content-type": "text/plain; charset=utf-8", "content-length": len(text)}
        lines = [f"{name}: {value}\r\n" for name, value in {**heads, "connection": "close"}.items()]
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + "".join(lines).encode() + b"\r\n" + text)
        self.transport.close()

    def _arm(self, what: str) -> None:
        self._disarm(what)
        self.timers[what] = self.loop.call_later(PATIENCE, self.transport.abort)

    def _disarm(self, what: str) -> None:
        timer = self.timers.pop(what, None)
        if timer is not None:
            timer.cancel()


def listen(port: int) -> socket.socket:
    """A socket on loopback; port 0 is any that is free."""
    try:
        found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if os.name == "posix":  # elsewhere it would let others share the port
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((HOST, port))
        found.listen(MOST_CONNECTIONS)  # before the address is told
    except OSError:
        raise ResourceError(f"port {port} is taken or not allowed; choose another", field="--port") from None
    found.set_inheritable(False)
    return found


def serve(folder: Path, *, port: int = 0, key: ApproverKey | None = None) -> None:
    """Serve the desk for the plans in a folder until it is interrupted.

    **Parameters**

    - `folder`: where plans, codebooks, rows and ledgers are.
    - `port`: where to listen on loopback; 0 is any that is free.
    - `key`: with which approvals are signed that are given at this desk.
    """
    if not folder.is_dir():
        raise PlanError("is not a folder; give the one that holds the plans", field="FOLDER")
    held = listen(port)
    number = held.getsockname()[1]
    sessions = Sessions(tell=lambda token: print(f"http://{HOST}:{number}/login?token={token}", flush=True))
    print("Open this address in a browser on this machine; it works once. Ctrl-C stops the desk.", flush=True)
    logging.getLogger("asyncio").setLevel(
        logging.CRITICAL + 1
    )  # a broken connection is no news, a traceback none either
    app = make_app(Desk(folder.resolve(), key=key), sessions)
    config = uvicorn.Config(
        Guard(app, sessions, number, lambda: len(server.server_state.connections)),
        http=PatientProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    try:
        server.run(sockets=[held])
    except KeyboardInterrupt:
        pass  # how a desk is closed
    finally:
        held.close()
