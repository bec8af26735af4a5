"""Who makes each product of a plan, and how its section of a release is read back: one line for each kind."""

from collections.abc import Mapping
from typing import Any

from reticent.plan.cells import CellTables
from reticent.plan.models import ImputationModels
from reticent.plan.plan import Plan
from reticent.plan.product import Product
from reticent.plan.regression import Regressions
from reticent.plan.statistics import Statistics
from reticent.plan.synth import SyntheticTables
from reticent.plan.tables import AddUpTables
from reticent.release.cells import CELLS, CellsProducer
from reticent.release.models import ModelsProducer
from reticent.release.product import Producer, ReleasedSection
from reticent.release.regression import REGRESSION, RegressionProducer
from reticent.release.statistics import STATISTICS, StatisticsProducer
from reticent.release.synth import SYNTH, SyntheticProducer
from reticent.release.tables import TABLES, TablesProducer

PRODUCERS: Mapping[type[Product], type[Producer[Any]]] = {
    ImputationModels: ModelsProducer,
    Statistics: StatisticsProducer,
    CellTables: CellsProducer,
    AddUpTables: TablesProducer,
    Regressions: RegressionProducer,
    SyntheticTables: SyntheticProducer,
}

RELEASED: Mapping[str, ReleasedSection] = {
    "statistics": STATISTICS,
    "cells": CELLS,
    "tables": TABLES,
    "regression": REGRESSION,
    "synth": SYNTH,
}
"""By their key in a document."""


def producers(plan: Plan) -> list[Producer[Any]]:
    """One for each product that the plan asks for, in its order."""
    return [PRODUCERS[type(product)](product, plan) for product in plan.products]
