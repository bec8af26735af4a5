"""A PostgreSQL server of the tests' own: made in a temporary folder, reached by a socket, gone at the end.

It is started where Debian's binaries are; `why_not` says what is missing. As root it runs as the user postgres, since no
server runs as root.
"""

import atexit
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reticent.privacy.ledger.postgres import TABLE

PORT = "54399"
BOSS, READER, CURATOR = "boss", "reader", "curator"


def binaries() -> Path | None:
    """The newest server's binaries."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


def why_not() -> str:
    """Why no server can be started here; empty where one can."""
    if find_spec("psycopg") is None:
        return "psycopg is not installed"
    if binaries() is None:
        return "no PostgreSQL server is installed"
    if os.getuid() == 0 and not _user():
        return "there is no user postgres to run a server as"
    try:
        server()
    except (subprocess.SubprocessError, OSError):
        return "the server did not start"
    return ""


def _user() -> str:
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return ""


class Server:
    """A running server. `reader` may read tables of the schema `people`, `curator` add to ledgers, and nothing else."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="reticent-pg-"))
        if os.getuid() == 0:
            shutil.chown(self.folder, _user())
        os.chmod(self.folder, 0o755)
        self._do(
            "initdb", "-D", str(self.data), "-U", BOSS, "--auth=trust", "-E", "UTF8", "--no-locale", "-N"
        )
        self.start()
        self.run(
            f"CREATE ROLE {READER} LOGIN; CREATE SCHEMA people; GRANT USAGE ON SCHEMA people TO {READER};"
            f"ALTER DEFAULT PRIVILEGES IN SCHEMA people GRANT SELECT ON TABLES TO {READER};"
            f"CREATE ROLE {CURATOR} LOGIN; {TABLE} GRANT USAGE ON SCHEMA reticent TO {CURATOR};"
            f"GRANT SELECT, INSERT ON reticent.entry TO {CURATOR}"
        )
        self.serve("tests", self.service(READER))
        self.serve("ledgers", self.service(CURATOR))
        os.environ["PGSERVICEFILE"] = str(self.folder / "pg_service.conf")

    def serve(self, name: str, words: Mapping[str, str]) -> None:
        """One more service in the file that libpq reads."""
        with open(self.folder / "pg_service.conf", "a") as file:
            file.write("\n".join([f"[{name}]", *(f"{key}={value}" for key, value in words.items()), ""]))

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def service(self, user: str) -> dict[str, str]:
        return {"host": str(self.folder), "port": PORT, "user": user, "dbname": "postgres"}

    def connect(self, user: str = READER, **more: Any) -> Any:
        import psycopg

        return psycopg.connect(**self.service(user), **more)

    def run(self, statement: str, values: Sequence[Any] | None = None) -> None:
        with self.connect(BOSS, autocommit=True) as connection:
            connection.execute(statement, values)

    def start(self) -> None:
        options = (
            f"-c listen_addresses= -c unix_socket_directories={self.folder} -p {PORT} -c log_statement=all"
        )
        self._do("pg_ctl", "-D", str(self.data), "-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        self._do("pg_ctl", "-D", str(self.data), "-m", "immediate", "-w", "stop")

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _do(self, name: str, *arguments: str) -> None:
        folder = binaries()
        assert folder is not None
        command = [str(folder / name), *arguments]
        given: dict[str, Any] = (
            {"user": _user(), "group": _user(), "extra_groups": []} if os.getuid() == 0 else {}
        )
        with open(self.folder / "said", "ab") as said:
            subprocess.run(
                command,
                check=True,
                stdout=said,
                stderr=said,
                stdin=subprocess.DEVNULL,
                cwd="/",
                timeout=120,
                **given,
            )


@cache
def server() -> Server:
    """The one server of this process."""
    made = Server()
    atexit.register(made.close)
    return made
