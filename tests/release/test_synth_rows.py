"""The number told beside synthetic rows is the network's noisy one, whole and not negative; the rows are the plan's."""

from dataclasses import replace

import pytest

from reticent.plan.synth import read_synth
from reticent.release.synth import table_of
from reticent.schema.codebook import schema_from
from reticent.synth.spending import SystemSynthNoise
from tests.release.synthetic import BOOK, TABLE
from tests.synth.replay import random_rows, run


@pytest.mark.parametrize(("total", "told"), [(1234.4, 1234), (1234.5, 1235), (-7.0, 0), (0.2, 0)])
def test_respondents_are_the_noisy_total(total, told):  # covers T12
    synth = read_synth(TABLE, schema_from(BOOK))
    counts = random_rows(synth.domain, 30, 1)
    network = run(synth.method, counts, synth.holes, synth.spend, SystemSynthNoise())
    made = table_of(synth, replace(network, total=total), SystemSynthNoise().bits)
    assert made.respondents == told != synth.rows
    assert {len(codes) for codes in made.tables[0].values()} == {synth.rows}
