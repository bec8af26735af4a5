"""Sign-off: a charge waits until so many people have approved it, each with a signature by a key of their own.

Who may approve, and how many must, is an entry of the ledger and never changes. An approval names the ledger, the release,
the digest of its plan and the amount: another plan, or the same one at another price, is not approved by it. Keys are
Ed25519 (RFC 8032); the private one stays in its owner's file.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reticent.errors import LedgerError, PlanError
from reticent.files import check_new, is_printable, read_toml, write_new
from reticent.privacy.ledger.entries import canonical, decimal_text, exact, words

MOST_APPROVERS = 100
HOW = "pip install 'reticent[sign]'"
_PUBLIC, _SIGNATURE = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{128}")


class MissingPartError(LedgerError):
    """Signatures cannot be read here; nothing is wrong with the ledger."""


def _part() -> Any:
    """The cryptographic part, an extra: only ledgers with sign-off need it."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingPartError(
            f"its charges are signed, and reading signatures needs one more part; install it with {HOW}",
            field="ledger",
        ) from None
    return ed25519


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One person's word for one charge, signed.

    **Fields**

    - `release`: the id of the release.
    - `plan`: the digest of its plan.
    - `amount`: what it charges, a decimal as text.
    - `by`: who approves, by the name that the ledger knows.
    - `signature`: over the ledger, the release, the plan and the amount; hexadecimal.
    """

    release: str
    plan: str
    amount: str
    by: str
    signature: str = field(repr=False)

    def __post_init__(self) -> None:
        for name in ("release", "plan", "by"):
            words(getattr(self, name), field=f"approval.{name}")
        exact(self.amount, field="approval.amount")
        if not isinstance(self.signature, str) or _SIGNATURE.fullmatch(self.signature) is None:
            raise PlanError("is 128 hexadecimal digits.", field="approval.signature")

    @classmethod
    def read(cls, found: object) -> "Approval":
        """From plain values, such as those of an entry or of a line that somebody sent."""
        names = ("release", "plan", "amount", "by", "signature")
        if not isinstance(found, Mapping) or not all(isinstance(found.get(each), str) for each in names):
            raise PlanError(f"is an object with {', '.join(names)}, all text.", field="approval")
        return cls(**{name: found[name] for name in names})

    def as_dict(self) -> dict[str, str]:
        """Plain values, as an entry keeps them."""
        return {name: getattr(self, name) for name in self.__slots__}


def message(ledger: str, release: str, plan: str, amount: str) -> bytes:
    """What is signed: one text for one charge of one ledger."""
    return canonical(["reticent approval", 1, ledger, release, plan, amount]).encode()


@dataclass(slots=True)
class SignOff:
    """Who may approve a charge, how many must, and what they have approved so far.

    **Parameters**

    - `needed`: how many different people must approve.
    - `approvers`: everybody who may, by name, with their public key in hexadecimal.
    - `given`: by release, plan and amount, who has approved it.
    """

    needed: int
    approvers: Mapping[str, str]
    given: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= len(self.approvers) <= MOST_APPROVERS or len(set(self.approvers.values())) < len(
            self.approvers
        ):
            raise PlanError(
                f"name 1 to {MOST_APPROVERS} people, each with a key of their own.", field="approver"
            )
        if type(self.needed) is not int or not 1 <= self.needed <= len(self.approvers):
            raise PlanError(
                f"is 1 to {len(self.approvers)}, the number of approvers that are named.", field="--sign-off"
            )
        for name, key in self.approvers.items():
            words(name, field="approver", limit=100)
            if not isinstance(key, str) or _PUBLIC.fullmatch(key) is None:
                raise PlanError("a public key is 64 hexadecimal digits.", field="approver")

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> "SignOff":
        """From an entry."""
        return cls(needed=body["needed"], approvers=dict(body["approvers"]))

    def opening(self) -> dict[str, Any]:
        """The entry that fixes it."""
        return {"needed": self.needed, "approvers": dict(self.approvers)}

    def by(self, release: str, plan: str, amount: str) -> tuple[str, ...]:
        """Who has approved exactly this charge."""
        return tuple(self.given.get((release, plan, amount), ()))

    def covers(self, release: str, plan: str, amount: str) -> bool:
        """Whether enough people have."""
        return len(self.by(release, plan, amount)) >= self.needed

    def refusal(self, approval: Approval, ledger: str) -> str:
        """Why an approval cannot be taken, or nothing."""
        key = self.approvers.get(approval.by)
        if key is None:
            return f"{approval.by} is not among those who may approve"
        signed = message(ledger, approval.release, approval.plan, approval.amount)
        if not _is_signed(key, approval.signature, signed):
            return f"the signature is not one of {approval.by} for this release, plan, amount and ledger"
        return ""

    def add(self, approval: Approval, ledger: str) -> bool:
        """Take one more approval; False where it is not valid, or was given before."""
        place = (approval.release, approval.plan, approval.amount)
        if self.refusal(approval, ledger) or approval.by in self.given.get(place, ()):
            return False
        self.given.setdefault(place, []).append(approval.by)
        return True


def _is_signed(key: str, signature: str, signed: bytes) -> bool:
    public = _part().Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
    try:
        public.verify(bytes.fromhex(signature), signed)
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it is no signature of this
        return False
    return True


@dataclass(frozen=True, slots=True)
class ApproverKey:
    """A person's private key, held in memory; only its owner's file keeps it."""

    private: Any = field(repr=False)

    @classmethod
    def make(cls) -> "ApproverKey":
        """A fresh key, from the system's generator."""
        return cls(_part().Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: Path, ask: Callable[[], str] = lambda: "") -> "ApproverKey":
        """The key in a file that `save` wrote, or any Ed25519 key in PEM; `ask` is asked for its passphrase, if it has one."""
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        private = None
        try:
            data = Path(path).read_bytes()[:20_000]
            secret = ask().encode() if b"ENCRYPTED" in data else None
            private = load_pem_private_key(data, secret)
        except (OSError, ValueError, TypeError, ImportError):
            pass  # what it says may quote the key
        if not isinstance(private, _part().Ed25519PrivateKey):
            raise PlanError("is no private key of an approver, or its passphrase is another", field="--key")
        return cls(private)

    @property
    def public(self) -> str:
        """Its public half, in hexadecimal."""
        return str(self.private.public_key().public_bytes_raw().hex())

    def save(self, path: Path, passphrase: str = "") -> None:
        """Write the private key for its owner alone; never over another file."""
        from cryptography.hazmat.primitives import serialization as form

        locked = form.BestAvailableEncryption(passphrase.encode()) if passphrase else form.NoEncryption()
        data = self.private.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, locked)
        check_new(path)
        write_new(path, data, private=True)

    def approve(self, *, ledger: str, by: str, release: str, plan: str, amount: Any) -> Approval:
        """Sign one charge of one ledger."""
        text = decimal_text(amount, field="amount")
        signature = self.private.sign(message(ledger, release, plan, text)).hex()
        return Approval(release=release, plan=plan, amount=text, by=by, signature=signature)


def approver_file(name: str, public: str) -> bytes:
    """The public half for others, as TOML: `ledger open --approver` reads it."""
    words(name, field="name", limit=100)
    return f"name = {canonical(name)}\nkey = {canonical(public)}\n".encode()


def read_approvers(paths: Sequence[Path]) -> dict[str, str]:
    """Names and public keys from such files."""
    found: dict[str, str] = {}
    for path in paths:
        held = read_toml(path, error=PlanError)
        name, key = held.get("name"), held.get("key")
        if not isinstance(name, str) or not isinstance(key, str) or not is_printable(name):
            raise PlanError(
                f"{path.name} holds no name and key; make it with `reticent ledger key`", field="approver"
            )
        if name in found:
            raise PlanError("two approvers have one name; give each their own", field="approver")
        found[name] = key
    return found
