"""MST and AIM on mbi's estimator, in the authors' settings; run by an interpreter that has it (see synth.py)."""

import json
import os
import sys
import time
from itertools import combinations

import numpy as np
from mbi import Domain, estimation, junction_tree
from mbi.marginal_loss import LinearMeasurement

RHO = 0.024355970359  # epsilon 1 at delta 1e-6
SEED = 2026
MOST_CELLS, MOST_MIB = 10_000, float(os.environ.get("RETICENT_BENCH_MIB", "80"))


class World:
    """Tables of the rows, noise, and mbi's model of what was measured."""

    def __init__(self, rows, shape):
        self.rows, self.shape = rows, shape
        self.domain = Domain([str(i) for i in range(len(shape))], list(shape))
        self.rng = np.random.default_rng(SEED)
        self.measured, self.model, self.split, self.kept = [], None, {}, {}

    def table(self, places):
        counts = np.zeros([self.shape[place] for place in places])
        np.add.at(counts, tuple(self.rows[:, place] for place in places), 1)
        return counts

    def measure(self, places, rho):
        sigma = (2 * rho) ** -0.5
        noisy = self.table(places) + self.rng.normal(0, sigma, [self.shape[place] for place in places])
        self.measured.append(LinearMeasurement(noisy.ravel(), tuple(map(str, places)), stddev=sigma))
        return sigma

    def fit(self, passes):
        options = {"iters": passes, "known_total": float(len(self.rows))}
        self.model = estimation.MirrorDescent().estimate(self.domain, self.measured, **options)

    def merge(self):
        """Put together the cells of a column that its noisy table has fewer than three deviations of."""
        for place, each in enumerate(self.measured):
            noisy = np.asarray(each.noisy_measurement)
            rare = noisy < 3 * each.stddev
            if rare.sum() > 1:
                self.split[place] = np.flatnonzero(rare)
                into = np.where(rare, (~rare).sum(), np.cumsum(~rare) - 1)
                self.rows[:, place] = into[self.rows[:, place]]
                self.kept[place] = np.flatnonzero(~rare)
                shorter = np.append(noisy[~rare], noisy[rare].sum())
                self.measured[place] = LinearMeasurement(shorter, each.clique, stddev=each.stddev)
        self.shape = tuple(len(np.asarray(each.noisy_measurement)) for each in self.measured)
        self.domain = Domain(self.domain.attributes, list(self.shape))

    def draw(self):
        """As many rows, with merged cells split evenly again."""
        made = self.model.synthetic_data(rows=len(self.rows)).to_dict()
        cells = np.stack([np.asarray(made[str(i)]) for i in range(len(self.shape))], axis=1).astype(np.int64)
        for place, rare in self.split.items():
            names = np.append(self.kept[place], -1)[cells[:, place]]
            cells[:, place] = np.where(names < 0, self.rng.choice(rare, len(cells)), names)
        return cells

    def guess(self, places):
        return np.asarray(self.model.project(tuple(map(str, places))).values)

    def off(self, places):
        return float(np.abs(self.table(places) - self.guess(places)).sum())

    def choose(self, scores, sensitivity, rho):
        rate = (8 * rho) ** 0.5 / (2 * sensitivity)
        return int(np.argmax(rate * np.array(scores) + self.rng.gumbel(size=len(scores))))


def mst(world):
    """A third for columns, a third for the choice of a tree, a third for its pairs."""
    columns = len(world.shape)
    for place in range(columns):
        world.measure((place,), RHO / 3 / columns)
    world.merge()
    world.fit(1000)
    pairs = list(combinations(range(columns), 2))
    scores = {pair: world.off(pair) for pair in pairs}
    part = list(range(columns))
    for _ in range(columns - 1):
        free = [pair for pair in pairs if part[pair[0]] != part[pair[1]]]
        a, b = free[world.choose([scores[pair] for pair in free], 1, RHO / 3 / (columns - 1))]
        world.measure((a, b), RHO / 3 / (columns - 1))
        part = [part[a] if each == part[b] else each for each in part]
    world.fit(5000)


def aim(world):
    """16 rounds a column; the worst table less its noise; noise halved where nothing new was told."""
    columns, spent = len(world.shape), 0.0
    part = RHO / (16 * columns)
    for place in range(columns):
        world.measure((place,), 0.9 * part)
        spent += 0.9 * part
    world.fit(1000)
    every = list(combinations(range(columns), 2))
    pairs = [pair for pair in every if world.shape[pair[0]] * world.shape[pair[1]] <= MOST_CELLS]
    while spent < RHO * (1 - 1e-9):
        part = part if RHO - spent > 2 * part else RHO - spent
        sigma = (2 * 0.9 * part) ** -0.5
        known = [each.clique for each in world.measured]
        small = [pair for pair in pairs if size(world, known, pair) <= MOST_MIB * (spent + part) / RHO]
        sets = [*((place,) for place in range(columns)), *small]
        weights = [sum(len({*each} & {*pair}) for pair in pairs) for each in sets]
        cells = [int(np.prod([world.shape[place] for place in each])) for each in sets]
        bias = (2 / np.pi) ** 0.5 * sigma
        scores = [w * (world.off(s) - bias * n) for w, s, n in zip(weights, sets, cells, strict=True)]
        chosen = sets[world.choose(scores, max(weights), 0.1 * part)]
        before = world.guess(chosen)
        world.measure(chosen, 0.9 * part)
        spent += part
        world.fit(1000)
        if np.abs(world.guess(chosen) - before).sum() <= bias * before.size:
            part *= 4
        print(f"{spent / RHO:.3f}", file=sys.stderr, flush=True)


def size(world, known, pair):
    """The model's size with one pair more, as mbi has it."""
    return junction_tree.hypothetical_model_size(world.domain, [*known, tuple(map(str, pair))])


def main():
    """Drawn rows into a file; seconds, compiling included, as JSON."""
    given = np.load(sys.argv[2])
    cpu = time.process_time()
    world = World(given["rows"].copy(), tuple(given["shape"].tolist()))
    {"mst": mst, "aim": aim}[sys.argv[1]](world)
    cells = world.draw()
    took = time.process_time() - cpu
    np.save(sys.argv[3], cells)
    print(json.dumps({"cpu": took}))


if __name__ == "__main__":
    main()
