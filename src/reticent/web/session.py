"""Who may use the desk: whoever has the token that was printed on the terminal, once; then their cookie, until they rest.

The token is taken in a URL at login and nowhere else, and works once. It becomes a cookie that scripts cannot read and that
other sites cannot send. A session that was idle for half an hour ends, and a new token is printed (W02, W17).
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from hmac import compare_digest
from threading import Lock
from time import monotonic

IDLE = 30 * 60.0
SIZE = 32
PAUSE = 2.0
"""Seconds between two links that are asked for: the terminal is nobody's to fill."""


@dataclass(slots=True)
class Sessions:
    """At most one session at a time, and the token that opens the next.

    **Parameters**

    - `tell`: is told each new token; the first one, too.
    - `clock`: seconds that only grow.
    - `idle`: after how many seconds without a request the session ends.
    """

    tell: Callable[[str], None]
    clock: Callable[[], float] = monotonic
    idle: float = IDLE
    _token: str = field(default="", repr=False)
    _cookie: str = field(default="", repr=False)
    _word: str = field(default="", repr=False)
    _seen: float = 0.0
    _told: float = float("-inf")
    _lock: Lock = field(default_factory=Lock, repr=False)

    def __post_init__(self) -> None:
        self._renew()

    @property
    def word(self) -> str:
        """The word that every form of this session carries, against posts from elsewhere."""
        return self._word

    def login(self, token: str) -> str | None:
        """The cookie for a token, which is used up by that; None where it is another."""
        with self._lock:
            if not self._token or not _same(token, self._token):
                return None
            self._token = ""
            self._cookie, self._word = secrets.token_urlsafe(SIZE), secrets.token_urlsafe(SIZE)
            self._seen = self.clock()
            return self._cookie

    def knows(self, cookie: str) -> bool:
        """Whether a cookie is that of the session, which lives on by being used."""
        with self._lock:
            known = bool(self._cookie) and _same(cookie, self._cookie)
            if known and self.clock() - self._seen > self.idle:
                self._forget()
                return False
            self._seen = self.clock() if known else self._seen
            return known

    def is_from_form(self, word: str) -> bool:
        """Whether a post carries the word of this session's forms."""
        return bool(self._word) and _same(word, self._word)

    def logout(self) -> None:
        """End the session."""
        with self._lock:
            self._forget()

    def again(self) -> None:
        """Tell another token, for somebody whose browser has lost its cookie. The session that there is lives on until it is used."""
        with self._lock:
            if self.clock() - self._told >= PAUSE:
                self._renew()

    def _forget(self) -> None:
        self._cookie = self._word = ""
        self._renew()

    def _renew(self) -> None:
        self._token, self._told = secrets.token_urlsafe(SIZE), self.clock()
        self.tell(self._token)


def _same(given: str, kept: str) -> bool:
    """In a time that does not depend on where they differ."""
    return compare_digest(given.encode("utf-8", "replace"), kept.encode())
