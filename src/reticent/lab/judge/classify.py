"""Can a model that was trained on synthetic rows tell what is true of real ones? Nine classifiers, as they come.

The nine and the measure are those of *Differentially private data generation with missing data*. A target with many levels is
asked as a yes or no: the commonest level of the held-out truth or another one; a number: above its middle or not. F1 is that
of the rarer side of the held-out truth, so that a model that knows nothing does not score.

Rows of codes as numbers that a model can use: levels as yes and no, numbers on their own scale.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError, ReticentError
from reticent.lab.judge.mlp import SparseMLP
from reticent.lab.trials.tables import Codes
from reticent.schema import Levels, Schema
from reticent.synth.domain import HOLE, UNASKED

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """How rows become numbers. Scales are those of the rows it was learned from, so that both sides are treated alike.

    `places` are the columns of a matrix of codes that are used. A column with an order is one number, less its mean, in
    standard deviations; one without an order has a column for each level. Who was not asked has a column where that can be.
    A cell without an answer is zero in all of them.
    """

    schema: Schema
    columns: tuple[str, ...]
    places: tuple[int, ...]
    means: tuple[float, ...]
    deviations: tuple[float, ...]

    def of(self, codes: Codes) -> Floats:
        return np.concatenate([self.one(codes, i) for i in range(len(self.places))], axis=1)

    def one(self, rows: Codes, i: int) -> Floats:
        """The columns of the `i`-th of the places."""
        name, codes = self.columns[self.places[i]], rows[:, self.places[i]]
        told = answered(codes)
        if has_order(self.schema, name):
            parts = [np.where(told, (codes - self.means[i]) / self.deviations[i], 0.0)[:, None]]
        else:
            parts = [codes[:, None] == np.arange(self.schema.coded[name].high + 1)]
        if self.schema.columns[name].universe is not None:
            parts.append((codes == UNASKED)[:, None])
        return np.concatenate(parts, axis=1).astype(np.float64)


def has_order(schema: Schema, name: str) -> bool:
    """Numbers, ordinal levels, and two levels, which are ordered enough."""
    column = schema.coded[name]
    return not isinstance(column, Levels) or column.ordered or len(column.levels) == 2


def learn(codes: Codes, schema: Schema, columns: tuple[str, ...], places: Sequence[int]) -> Features:
    """Features of these places, with the scales of these rows."""
    answers = [codes[answered(codes[:, place]), place] for place in places]
    return Features(
        schema=schema,
        columns=columns,
        places=tuple(places),
        means=tuple(float(a.mean()) if len(a) else 0.0 for a in answers),
        deviations=tuple((float(a.std()) if len(a) else 0.0) or 1.0 for a in answers),
    )


def answered(codes: Codes) -> NDArray[np.bool_]:
    """Where an answer was given."""
    return np.asarray((codes != HOLE) & (codes != UNASKED))


HOW = "pip install 'reticent[judge]'"
MOST = 10_000  # rows to learn from: a classifier's time grows with them, and its F1 hardly
NINE = (
    *("logistic", "adaboost", "gradient-boosting", "xgboost", "forest"),
    *("naive-bayes", "tree", "bagging", "mlp"),
)
Truths = NDArray[np.bool_]


def classifiers(seed: int) -> dict[str, Any]:
    """The nine, with default settings but for the seed. `SparseMLP` says what scikit-learn's would."""
    try:
        # An extra, and slow to load: only when somebody is judged.
        from sklearn import ensemble, linear_model, naive_bayes, tree
        from xgboost import XGBClassifier
    except ImportError:
        raise ReticentError(f"needs scikit-learn and xgboost; install them with {HOW}", field="f1") from None
    made: tuple[Any, ...] = (
        linear_model.LogisticRegression(random_state=seed),
        ensemble.AdaBoostClassifier(random_state=seed),
        ensemble.GradientBoostingClassifier(random_state=seed),
        XGBClassifier(random_state=seed, n_jobs=1),
        ensemble.RandomForestClassifier(random_state=seed),
        naive_bayes.BernoulliNB(),
        tree.DecisionTreeClassifier(random_state=seed),
        ensemble.BaggingClassifier(random_state=seed),
        SparseMLP(random_state=seed),
    )
    return dict(zip(NINE, made, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A question of yes or no about one column: is the code above `above`, or is it `level`?"""

    place: int
    level: int | None = None
    above: float | None = None
    flipped: bool = False

    def of(self, codes: Codes) -> Truths:
        column = codes[:, self.place]
        said = column == self.level if self.above is None else answered(column) & (column > self.above)
        return np.asarray(said ^ self.flipped)


def target_of(truth: Codes, schema: Schema, columns: Sequence[str], name: str) -> Target:
    """The question about this column whose yes is the rarer answer in the truth."""
    if name not in columns:
        raise PlanError(f"{name[:80]!r} is not among the columns", field="targets")
    place = list(columns).index(name)
    codes = truth[answered(truth[:, place]), place]
    column = schema.coded[name]
    if has_order(schema, name) and not (isinstance(column, Levels) and len(column.levels) == 2):
        first = Target(place=place, above=float(np.median(codes)))
    else:
        first = Target(place=place, level=int(np.bincount(codes).argmax()))
    if first.of(truth).mean() <= 0.5:
        return first
    return Target(place=place, level=first.level, above=first.above, flipped=True)


def f1(said: Truths, true: Truths) -> float:
    """Twice the hits, over all that were called or are true; 0 where nothing is."""
    both = int(said.sum() + true.sum())
    return 2 * int((said & true).sum()) / both if both else 0.0


def scores(
    made: Codes,
    held_out: Codes,
    schema: Schema,
    columns: tuple[str, ...],
    *,
    target: str,
    seed: int = 0,
    using: Sequence[str] = NINE,
    most: int = MOST,
) -> dict[str, float]:
    """F1 of each classifier, trained on the first `most` rows that were `made` and tried on the `held_out` truth."""
    asked = target_of(held_out, schema, columns, target)
    train = made[:most]
    features = learn(train, schema, columns, [p for p in range(len(columns)) if p != asked.place])
    x, y, there, true = features.of(train), asked.of(train), features.of(held_out), asked.of(held_out)
    chosen = {name: model for name, model in classifiers(seed).items() if name in using}
    return {name: f1(_said(model.fit, model.predict, x, y, there), true) for name, model in chosen.items()}


def _said(fit: Callable[..., Any], predict: Callable[..., Any], x: Any, y: Truths, there: Any) -> Truths:
    """What is said of the held-out rows. Rows that all say the same teach to say it."""
    if y.all() or not y.any():
        return np.full(len(there), bool(y[0]))
    fit(x, y)
    return np.asarray(predict(there), dtype=bool)


def mean_f1(
    made: Codes,
    held_out: Codes,
    schema: Schema,
    columns: tuple[str, ...],
    *,
    targets: Sequence[str],
    **rest: Any,
) -> float:
    """The mean over classifiers and target columns."""
    each: list[Mapping[str, float]] = [
        scores(made, held_out, schema, columns, target=target, **rest) for target in targets
    ]
    return float(np.mean([value for found in each for value in found.values()]))
