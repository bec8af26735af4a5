"""The experiments, by name. A static table: a name given by a user is looked up, never imported."""

from reticent.errors import PlanError, nearest
from reticent.lab.experiments import (
    add_up,
    amplification,
    amplification_missing,
    anonymity,
    domains,
    donors_caps,
    donors_coverage,
    donors_example,
    donors_figures,
    donors_income,
    donors_ladder,
    donors_published,
    model_example,
    model_imputation,
    model_workers,
    noise_in_context,
    noise_laws,
    partition,
    poststratify,
    poststratify_example,
    small_cells,
    small_cells_printed,
    survey_intervals,
    synth_heaps,
    synth_intervals,
    synth_missing,
    synth_picked,
    synth_weighted,
)
from reticent.lab.run.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    made.name: made
    for made in (
        noise_in_context.experiment(),
        noise_laws.experiment(),
        amplification.experiment(),
        amplification_missing.experiment(),
        poststratify_example.experiment(),
        partition.experiment(),
        partition.full(),
        anonymity.experiment(),
        poststratify.experiment(),
        poststratify.joint(),
        poststratify.small_bin(),
        donors_example.experiment(),
        donors_figures.experiment(),
        donors_income.experiment(),
        donors_income.workers(),
        donors_published.experiment(),
        donors_caps.experiment(),
        donors_ladder.experiment(),
        donors_coverage.experiment(),
        model_example.experiment(),
        model_imputation.experiment(),
        model_workers.experiment(),
        small_cells.experiment(),
        small_cells_printed.experiment(),
        domains.experiment(),
        add_up.experiment(),
        synth_missing.experiment(),
        synth_heaps.experiment(),
        synth_picked.experiment(),
        synth_weighted.experiment(),
        synth_intervals.experiment(),
        survey_intervals.experiment(),
    )
}


def find(name: str) -> Experiment:
    """The experiment of this name."""
    if name not in EXPERIMENTS:
        hint = nearest(name, EXPERIMENTS) or "; see reticent lab list"
        raise PlanError(f"no experiment is called {name[:80]!r}{hint}", field="NAME")
    return EXPERIMENTS[name]
