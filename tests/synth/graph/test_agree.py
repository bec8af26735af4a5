"""Tables that were made to agree say the same where they overlap, and lose nothing for the fit."""

import numpy as np
import pytest

from reticent.synth.graph.estimate import agreed
from tests.synth.graph.joint import loss_of, noisy, summed

SHAPE = (2, 3, 4, 2)
SETS = [(0,), (0, 1), (1, 2), (0, 1, 3), (2, 3), (3,)]
DEVIATIONS = [1.0, 5.0, 2.0, 3.0, 0.5, 4.0]
TOTAL = 500.0


@pytest.fixture
def measured():
    rng = np.random.default_rng(11)
    return noisy(rng.dirichlet(np.ones(48)).reshape(SHAPE) * TOTAL, SETS, DEVIATIONS, rng)


def plain_average(measured):
    """The twin: total and one-way tables averaged as if all knew them equally well."""
    return np.mean([summed_within(m.table, m.places, (0,)) for m in measured if 0 in m.places], axis=0)


def summed_within(table, places, kept):
    return table.sum(axis=tuple(i for i, place in enumerate(places) if place not in kept))


def test_tables_agree_on_every_overlap(measured):
    tables = agreed(measured, total=TOTAL)
    for a, m in zip(tables, measured, strict=True):
        assert a.sum() == pytest.approx(TOTAL)
        for b, n in zip(tables, measured, strict=True):
            shared = tuple(sorted(set(m.places) & set(n.places)))
            here, there = summed_within(a, m.places, shared), summed_within(b, n.places, shared)
            assert np.allclose(here, there, atol=1e-9)


def test_the_distance_to_any_joint_table_changes_by_a_constant(measured):
    """So the optimum stays where it is. The constant is the same for a hundred joint tables."""
    moved = [
        type(m)(places=m.places, table=t, deviation=m.deviation)
        for m, t in zip(measured, agreed(measured, total=TOTAL), strict=True)
    ]
    rng = np.random.default_rng(5)
    joints = [rng.dirichlet(np.full(48, 0.3)).reshape(SHAPE) * TOTAL for _ in range(100)]
    differences = [loss_of(joint, measured) - loss_of(joint, moved) for joint in joints]
    assert np.ptp(differences) < 1e-6
    wrong = [type(m)(places=m.places, table=m.table * 1.01, deviation=m.deviation) for m in moved]
    assert np.ptp([loss_of(joint, measured) - loss_of(joint, wrong) for joint in joints]) > 1


def test_they_are_the_least_squares_among_signed_joint_tables(measured):
    """By the normal equations on all 48 cells, with the total fixed; and the plain average is not."""
    rows, aims = [], []
    for m in measured:
        units = np.eye(48).reshape(48, *SHAPE)
        rows.append(np.stack([summed(unit, m.places).ravel() for unit in units], axis=1) / m.deviation)
        aims.append(m.table.ravel() / m.deviation)
    rows.append(np.full((1, 48), 1e6))
    aims.append(np.array([TOTAL * 1e6]))
    signed = np.linalg.lstsq(np.concatenate(rows), np.concatenate(aims), rcond=1e-15)[0].reshape(SHAPE)
    for m, table in zip(measured, agreed(measured, total=TOTAL), strict=True):
        assert np.allclose(table, summed(signed, m.places), atol=1e-5)
    assert not np.allclose(plain_average(measured), summed(signed, (0,)), atol=0.1)
