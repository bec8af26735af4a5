"""Amplification by missingness: what promises about an incomplete table are worth to the complete truth behind it.

A respondent who left a question unanswered is in no table that needs the answer. As long as nobody knows who that
is, the truth is protected better than the table is. Everything here is computed from public numbers; no row is read.
"""

from reticent.privacy.missingness.bounds import (
    amplified,
    amplified_both_ways,
    amplified_delta,
    amplified_replaced,
    columnwise,
    first_order,
)
from reticent.privacy.missingness.claims import Filter, Run, amplify_missing, masks_of
from reticent.privacy.missingness.masks import EVERY_ROW, IndependentMask, Law, MaskTable, Sets, Use, sets_of

__all__ = [
    "EVERY_ROW",
    "Filter",
    "IndependentMask",
    "Law",
    "MaskTable",
    "Run",
    "Sets",
    "Use",
    "amplified",
    "amplified_both_ways",
    "amplified_delta",
    "amplified_replaced",
    "amplify_missing",
    "columnwise",
    "first_order",
    "masks_of",
    "sets_of",
]
