"""The budget ledger: what was charged, in order, so that no charge is lost and none is doubled."""

from reticent.privacy.ledger.approvals import Approval, ApproverKey, SignOff
from reticent.privacy.ledger.book import receipts_in
from reticent.privacy.ledger.entries import Entry, Receipt, Reservation
from reticent.privacy.ledger.history import ChargedPiece
from reticent.privacy.ledger.ledger import Ledger
from reticent.privacy.ledger.origins import Origin, same_rows
from reticent.privacy.ledger.waves import ChargedWave, Waves

__all__ = [
    "Approval",
    "ApproverKey",
    "ChargedPiece",
    "ChargedWave",
    "Entry",
    "Ledger",
    "Origin",
    "Receipt",
    "Reservation",
    "SignOff",
    "Waves",
    "receipts_in",
    "same_rows",
]
