"""The products that a plan can ask for: one line for each kind, by its section."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reticent.files import Section
from reticent.plan.budgets import Given, Product
from reticent.plan.cells import CellsSection, read_cell_tables
from reticent.plan.regression import RegressionSection, read_regressions
from reticent.plan.sections import StatisticSection
from reticent.plan.statistics import read_statistics
from reticent.plan.synth import SynthSection, read_synthetic_tables
from reticent.plan.tables import TablesSection, read_tables
from reticent.schema.public_files import PublicFiles
from reticent.smallcells.cells import with_files
from reticent.synth.public import with_margins


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductReader:
    """How the sections of one product are read, and what of them stands in public files.

    **Fields**

    - `section`: the keys of one section.
    - `read`: all sections of a plan, as a product.
    - `with_files`: the sections as they were written, with what public files hold written out; None where they name none.
    """

    section: type[Section]
    read: Callable[[Sequence[Any], Given], Product]
    with_files: Callable[[Sequence[Any], PublicFiles], list[Any]] | None = None


PRODUCTS: Mapping[str, ProductReader] = {
    "statistic": ProductReader(section=StatisticSection, read=read_statistics),
    "cells": ProductReader(section=CellsSection, read=read_cell_tables, with_files=with_files),
    "tables": ProductReader(section=TablesSection, read=read_tables),
    "regression": ProductReader(section=RegressionSection, read=read_regressions),
    "synth": ProductReader(section=SynthSection, read=read_synthetic_tables, with_files=with_margins),
}
