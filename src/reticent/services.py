"""PostgreSQL servers by libpq's service file: rows and ledgers name a service, and nothing else.

Host, user and password come from no plan, whose author may be hostile, and from no argument, which the process list shows.
What libpq says of a failure may name them, so it is dropped where it arises.
"""

from contextlib import suppress
from ipaddress import ip_address
from typing import Any

from reticent.errors import ReticentError

SERVICE = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}"
UNREACHED = (
    "the server cannot be reached by this service; check pg_service.conf and .pgpass with psql service=NAME"
)


def connected(service: str, *, refused: type[ReticentError], field: str) -> Any:
    """A connection to a service; `refused` is the error where there is none."""
    found = None
    try:
        import psycopg  # an extra
    except ModuleNotFoundError:
        raise refused("needs psycopg; install reticent[postgres]", field=field) from None
    with suppress(psycopg.Error, OSError):
        found = psycopg.connect(service=service, application_name="reticent", connect_timeout=30)
    if found is None:
        raise refused(UNREACHED, field=field)
    return found


def check_transport(info: Any, *, refused: type[ReticentError], field: str) -> None:
    """Over a network, only with a certificate that names the host, whatever is said of GSS encryption.

    What counts is the address that was reached, which `hostaddr` can set apart from the name of the host.
    """
    if not _is_local(info.host, info.hostaddr) and info.get_parameters().get("sslmode") != "verify-full":
        raise refused("is elsewhere on a network; set sslmode=verify-full in the service", field=field)


def _is_local(host: str, address: str) -> bool:
    """Whether a server was reached by a socket, which has no address, or over loopback."""
    if not address:
        return host.startswith(("/", "@"))
    with suppress(ValueError):
        return ip_address(address.partition("%")[0]).is_loopback
    return False
