"""The budget ledger: what was charged, in order, so that no charge is lost and none is doubled."""

from reticent.privacy.ledger.audit import receipts_in
from reticent.privacy.ledger.cuts import Piece
from reticent.privacy.ledger.entries import Entry, Receipt, Reservation
from reticent.privacy.ledger.ledger import Ledger

__all__ = ["Entry", "Ledger", "Piece", "Receipt", "Reservation", "receipts_in"]
