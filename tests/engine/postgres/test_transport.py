"""A server on a network proves its name by a certificate; which one is local is said by the address that was reached."""

from types import SimpleNamespace
from typing import Any

import pytest

from reticent.errors import LedgerError, SourceError
from reticent.services import check_transport

ELSEWHERE = [
    ("db.example.org", "192.0.2.7"),
    ("localhost", "192.0.2.7"),  # `hostaddr` in the service: the name is one, the server another
    ("/var/run/postgresql", "192.0.2.7"),
    ("db.example.org", ""),
    ("", ""),
    ("db.example.org", "fe80::1%eth0"),
]
NEAR = [
    ("/var/run/postgresql", ""),
    ("@abstract", ""),
    ("localhost", "::1"),
    ("db.example.org", "127.0.0.53"),
]


def reached(host: str, address: str, words: dict[str, str]) -> Any:
    """What psycopg says of a connection: of its parameters those that are not the defaults."""
    return SimpleNamespace(host=host, hostaddr=address, get_parameters=lambda: words)


@pytest.mark.parametrize(("host", "address"), ELSEWHERE)
@pytest.mark.parametrize(
    "words",
    [
        {},
        {"sslmode": "require"},
        {"sslmode": "verify-ca"},
        {"gssencmode": "prefer"},
        {"gssencmode": "disable"},
    ],
)
@pytest.mark.parametrize("refused", [SourceError, LedgerError])
def test_a_server_elsewhere_proves_its_name(host: str, address: str, words: dict[str, str], refused: Any):
    """Rows and ledgers alike. To speak of GSS encryption is not to have it."""
    with pytest.raises(refused, match="sslmode=verify-full"):
        check_transport(reached(host, address, words), refused=refused, field="source")
    proven = reached(host, address, words | {"sslmode": "verify-full"})
    check_transport(proven, refused=refused, field="source")


@pytest.mark.parametrize(("host", "address"), NEAR)
def test_a_socket_and_loopback_need_no_certificate(host: str, address: str):
    check_transport(reached(host, address, {}), refused=SourceError, field="source")
