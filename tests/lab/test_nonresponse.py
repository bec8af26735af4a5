"""Masks: their rates, what they may depend on, and that a question not asked is never lost."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from reticent.errors import PlanError
from reticent.lab.masks import flag_correlations, latent_share
from reticent.lab.world import nonresponse as lost
from reticent.lab.world.state import ANSWERS
from tests.lab.bounds import ALARM, fits

P = 0.2
MECHANISMS = {
    "mcar": lambda table, seed: lost.mcar(table, P, seed=seed, columns=ANSWERS),
    "mar": lambda table, seed: lost.mar(table, P, seed=seed, columns=ANSWERS),
    "mnar": lambda table, seed: lost.mnar(table, P, seed=seed, columns=ANSWERS),
    "self": lambda table, seed: lost.self_masking(table, P, seed=seed, columns=ANSWERS),
    "quantile": lambda table, seed: lost.quantile_masking(
        table, P, seed=seed, columns=["age", "wage", "rent"]
    ),
    "clustered": lambda table, seed: lost.clustered(
        table, {"schooling": P, "hours": P, "wage": P}, correlation=0.6, seed=seed
    ),
}


def naive(table, p, seed):
    """A twin that forgets that some questions were not asked."""
    rng = np.random.default_rng(seed)
    return pa.table({name: rng.random(table.num_rows) < p for name in ANSWERS})


def flags(mask):
    return np.column_stack([mask[name].to_numpy() for name in mask.column_names])


def rates_fit(table, mask, p, skip=()):
    """Whether every masked column loses the share p of its asked cells; false alarm at most 1e-9."""
    names = [name for name in mask.column_names if name not in skip]
    return all(
        fits(int(mask[n].to_numpy().sum()), table.num_rows - table[n].null_count, p, alarm=ALARM / len(names))
        for n in names
    )


def touches_unasked(table, mask):
    return any((mask[n].to_numpy() & ~table[n].is_valid().to_numpy()).any() for n in mask.column_names)


def shuffled(table, names, seed=1):
    """The table with these columns' filled cells in another order; empty cells stay where they are."""
    rng = np.random.default_rng(seed)
    for name in names:
        places = np.arange(table.num_rows)
        filled = np.flatnonzero(table[name].is_valid().to_numpy())
        places[filled] = rng.permutation(filled)
        table = table.set_column(table.column_names.index(name), name, table[name].take(pa.array(places)))
    return table


def complete_columns(mask):
    return [name for name in mask.column_names if not mask[name].to_numpy().any()]


@pytest.mark.parametrize("name", MECHANISMS)
def test_masks_reproduce_have_their_rate_and_spare_what_was_not_asked(state, name):
    mask = MECHANISMS[name](state, 7)
    assert mask.equals(MECHANISMS[name](state, 7)) and not mask.equals(MECHANISMS[name](state, 8))
    assert all(kind == pa.bool_() for kind in mask.schema.types)
    assert not touches_unasked(state, mask)
    skip = complete_columns(mask) if name == "mar" else ()
    assert rates_fit(state, mask, P, skip)
    assert not rates_fit(state, mask, 0.85 * P, skip) and not rates_fit(state, mask, 1.15 * P, skip)


def test_a_mask_that_forgets_the_rule_is_caught(state):
    twin = naive(state, P, 7)
    assert touches_unasked(state, twin) and not rates_fit(state, twin, P)


def test_mcar_ignores_every_value(state):
    assert MECHANISMS["mcar"](state, 3).equals(MECHANISMS["mcar"](shuffled(state, ANSWERS), 3))


def test_mar_looks_at_complete_columns_and_at_nothing_else(state):
    """Half of the columns stay complete; new values in the others change no cell, in those they do."""
    mask = MECHANISMS["mar"](state, 3)
    complete = complete_columns(mask)
    driven = [name for name in ANSWERS if name not in complete]
    assert len(complete) == len(ANSWERS) // 2
    assert mask.equals(MECHANISMS["mar"](shuffled(state, driven), 3))
    assert not mask.equals(MECHANISMS["mar"](shuffled(state, complete), 3))


def test_mnar_looks_at_columns_that_are_then_lost_too(state):
    """Three columns of ten drive; they are lost themselves, and new values in the rest change no cell."""
    mask = MECHANISMS["mnar"](state, 3)
    drivers = [n for n in ANSWERS if not mask.equals(MECHANISMS["mnar"](shuffled(state, [n]), 3))]
    assert len(drivers) == 3 and not complete_columns(mask)
    rest = [name for name in ANSWERS if name not in drivers]
    assert mask.equals(MECHANISMS["mnar"](shuffled(state, rest), 3))


def test_self_masking_hides_the_large_and_no_other_column_matters(state):
    mask = lost.self_masking(state, P, seed=5, columns=["wage"])
    hidden = mask["wage"].to_numpy()
    wage = state["wage"].to_numpy(zero_copy_only=False)
    assert wage[hidden].mean() > 1.3 * np.nanmean(wage)
    assert mask.equals(lost.self_masking(shuffled(state, ["age", "hours"]), P, seed=5, columns=["wage"]))


@pytest.mark.parametrize("side", ["upper", "lower", "both"])
def test_the_quantile_form_hides_its_end_alone(state, side):
    mask = lost.quantile_masking(state, 0.1, seed=5, columns=["age"], share=0.25, side=side)
    age = state["age"].to_numpy()
    low, high = np.quantile(age, [0.25, 0.75])
    hidden = age[mask["age"].to_numpy()]
    assert rates_fit(state, mask, 0.1)
    if side == "upper":
        assert hidden.min() >= high
    elif side == "lower":
        assert hidden.max() <= low
    else:
        assert hidden.min() < low and hidden.max() > high
        assert not ((hidden > low) & (hidden < high)).any()


@pytest.mark.parametrize("correlation", [0.4, 0.6, 0.8])
def test_clustered_losses_go_together_as_stated(state, correlation):
    """Adults of the state, about 24,000; an estimated correlation has a standard error below 0.01."""
    rates = {"schooling": 0.10, "employment": 0.11, "hours": 0.12, "wage": 0.14}
    mask = lost.clustered(state, rates, correlation=correlation, seed=2)
    seen = flags(mask)[state["age"].to_numpy() >= 15]
    pairs = np.corrcoef(seen.T)[np.triu_indices(4, 1)]
    assert abs(pairs.mean() - correlation) < 0.05
    apart = flags(lost.mcar(state, 0.12, seed=2, columns=list(rates)))
    assert np.abs(np.corrcoef(apart[state["age"].to_numpy() >= 15].T)[np.triu_indices(4, 1)]).max() < 0.05
    assert all(
        fits(int(mask[n].to_numpy().sum()), state.num_rows - state[n].null_count, r) for n, r in rates.items()
    )


def test_the_latent_weight_gives_the_correlation_asked_for():
    rates = [0.05, 0.1, 0.2]
    weight = latent_share(rates, 0.45)
    assert abs(flag_correlations(rates, weight)[np.triu_indices(3, 1)].mean() - 0.45) < 1e-6
    # At rate 1/2 the correlation is (2/pi) arcsin(w), in closed form.
    assert abs(flag_correlations([0.5, 0.5], 0.7)[0, 1] - 2 / np.pi * np.arcsin(0.7)) < 1e-6


def test_correlations_that_the_rates_rule_out_are_refused(state):
    with pytest.raises(PlanError, match="between 0 and"):
        lost.clustered(state, {"wage": 0.01, "hours": 0.5}, correlation=0.6, seed=1)


def test_apply_empties_the_marked_cells_and_no_others(state):
    one = lost.mcar(state, P, seed=1, columns=["wage", "sex", "rent"])
    two = lost.mcar(state, P, seed=2, columns=["wage"])
    holed = lost.apply(state, one, two)
    assert holed.schema.equals(state.schema)
    for name in state.column_names:
        marked = np.zeros(state.num_rows, dtype=bool)
        for mask in (one, two):
            marked |= mask[name].to_numpy() if name in mask.column_names else False
        keep = pa.array(~marked)
        assert not holed[name].filter(pa.array(marked)).is_valid().to_numpy().any()
        before, after = (t[name].filter(keep).combine_chunks() for t in (state, holed))
        assert (
            pc.all(pc.equal(before, after)).as_py() in (True, None) and before.null_count == after.null_count
        )


@pytest.mark.parametrize("p", [-0.1, 1.1])
def test_rates_outside_zero_and_one_are_refused(state, p):
    for mechanism in (lost.mcar, lost.mar, lost.mnar, lost.self_masking):
        with pytest.raises(PlanError):
            mechanism(state, p, seed=1, columns=["wage"])


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_the_extreme_rates_lose_nothing_or_everything_asked(state, p):
    for mechanism in (lost.mcar, lost.mnar, lost.self_masking):
        mask = mechanism(state, p, seed=1, columns=["wage", "hours"])
        assert flags(mask).sum() == p * 2 * (state.num_rows - state["wage"].null_count)


def test_unknown_columns_are_refused(state):
    with pytest.raises(PlanError, match="income"):
        lost.mcar(state, P, seed=1, columns=["income"])
    with pytest.raises(PlanError, match="numeric"):
        lost.quantile_masking(state, P, seed=1, columns=["sex"])
