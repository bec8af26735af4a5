"""The sections of a release that are shown, in their order on the page: one line for each kind of product."""

from collections.abc import Mapping

from reticent.release.product import Document
from reticent.report.cells import CELLS
from reticent.report.drawing import Drawing
from reticent.report.regression import REGRESSION
from reticent.report.statistics import STATISTICS
from reticent.report.synth import SYNTH
from reticent.report.tables import TABLES

DRAWN: Mapping[str, Drawing] = {
    "statistics": STATISTICS,
    "cells": CELLS,
    "tables": TABLES,
    "regression": REGRESSION,
    "synth": SYNTH,
}
"""By their key in a document."""


def drawings(document: Document) -> list[Drawing]:
    """How the sections that a release has are shown."""
    return [drawing for key, drawing in DRAWN.items() if document.get(key)]
