"""Whose process is at the other end of a connection: cookies know no ports, so the system is asked.

Another user's server on this machine is sent our cookie by the browser, and could come back with it. The system lists for
every socket who made it, in one table for each family of addresses: a process may call 127.0.0.1 by a socket of either.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTENS = "0A"
MAPPED = "0000000000000000" + ("FFFF0000" if sys.byteorder == "little" else "0000FFFF")
"""How the second table begins an address of the first."""

Row = tuple[str, str, str, int, int]


def is_own_process(client: Any, server: Any) -> bool:
    """Whether the other end of a connection belongs to the user who runs the desk, or to the system's administrator.

    A socket that nobody holds any more is listed as the administrator's, and without an inode: it is nobody's. Where the
    system keeps no such tables, as on systems other than Linux, or lists not even our own socket, the cookie alone decides.

    **Parameters**

    - `client`: address and port of the other end.
    - `server`: address and port of ours.
    """
    if not client or not server:
        return True
    here, there = (_written(*each[:2]) for each in (server, client))
    rows = list(_rows(f":{server[1]:04X}"))
    if not any(local == here and state == LISTENS for local, _, state, *_ in rows):
        return True
    ends = ((there, here), (MAPPED + there, MAPPED + here))
    owners = [owner for local, remote, _, owner, inode in rows if (local, remote) in ends and inode]
    return bool(owners) and all(owner in (0, os.getuid()) for owner in owners)


def _rows(port: str) -> Iterator[Row]:
    """Of every socket at our port, or calling it: its two ends, its state, who made it, and its inode."""
    for table in TABLES:
        try:
            lines = table.read_text(encoding="ascii", errors="replace").splitlines()[1:]
        except OSError:
            continue
        for parts in (line.split() for line in lines if port in line):
            yield parts[1], parts[2], parts[3], int(parts[7]), int(parts[9])


def _written(host: str, port: int) -> str:
    """An IPv4 address as the tables have it: one number, in the order of this machine's bytes."""
    try:
        numbers = bytes(int(part) for part in host.split("."))
    except ValueError:
        return ""
    return f"{int.from_bytes(numbers, sys.byteorder):08X}:{port:04X}"
