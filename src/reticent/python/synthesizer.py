"""Synthetic rows of a frame, in scikit-learn's manner: fit a private model once, draw as many rows as wanted.

The arguments are read as the section of a plan that says the same: one reading, one set of refusals.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from reticent.engine.open import Nobody
from reticent.engine.protocol import Engine
from reticent.errors import PlanError, ResourceError
from reticent.exact import show
from reticent.files import fill
from reticent.plan.synth import Synth, SynthSection, read_synth, rules_of
from reticent.prepare.repair import NO_REPAIR
from reticent.privacy.claim import Change, Claim
from reticent.privacy.ledger import Ledger, Origin, Reservation
from reticent.python.charging import Account, Params, check_public, open_account, refuse_replayed, reserve
from reticent.release.run import FAILED
from reticent.release.survey import Survey
from reticent.release.synth import bootstrap_tables, draw_tables, learn, small_of
from reticent.schema import Schema
from reticent.schema.codebook import schema_from
from reticent.synth.answer import DirectAnswer, answered
from reticent.synth.base import MissingMethod, Model, SynthNoise
from reticent.synth.domain import BINS, Domain, PointMasses, Rows, to_arrow
from reticent.synth.network import Network
from reticent.synth.questions import LEVEL, read_question
from reticent.synth.rules import Rules
from reticent.synth.saved import load, save
from reticent.synth.spending import SystemSynthNoise
from reticent.synth.written import MODEL

AT = "Synthesizer"
MODEL_ROWS = 100_000
"""Rows that are drawn for a number that the model alone can tell."""
ELSEWHERE = ("codebook", "replaced", "ledger")
"""Arguments that a plan has in other sections."""


def planned(arguments: Mapping[str, Any], survey: Survey) -> Synth:
    """What is to be learned of this survey; refused where a plan would be. No row has been read."""
    change = Change.REPLACE if arguments["replaced"] else Change.ADD_REMOVE
    return read_synth(section_of(arguments), schema_from(survey.book()), change=change, at=AT)


def ruled(arguments: Mapping[str, Any], domain: Domain) -> Rules:
    """The rules among the arguments, for a model of this domain."""
    section = fill(SynthSection, section_of(arguments), error=PlanError, at=AT)
    return rules_of(section, domain)


def section_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The section, with what was left out left to its defaults. How many rows are drawn is said later."""
    given = {name: value for name, value in arguments.items() if name not in ELSEWHERE and value is not None}
    return {"name": "rows", "rows": 1, **{name: _plain(value) for name, value in given.items()}}


def _plain(value: Any) -> Any:
    """As TOML would have it: lists and dictionaries of words and numbers."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def check_rows(n: Any) -> int:
    """A number of rows to draw."""
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise PlanError("is a whole number from 1 up", field="n")
    return n


Book = str | PathLike[str] | dict[str, Any]


class Synthesizer(Params):
    """Rows like those of a survey: `Synthesizer(method="mst", epsilon="1", codebook="book.toml").fit(frame).sample(1000)`.

    The arguments are the keys of a `[[synth]]` section of a plan; `codebook` is a file or a dictionary, and may
    be left out where `fit` is given a `Survey`. They are checked when it is fitted, before a row is read.

    The model is private and costs epsilon at every `fit`. Give the `ledger` of the survey, a `Ledger` or its path, and each
    fit is charged to it before a row is read, as a plan would be; without one nobody counts. Rows drawn from it
    cost nothing, however many.

    **Parameters**

    - `method`: the synthesizer: `"aim"`, `"mst"`, `"privbayes"`, `"independent"`, or one as printed.
    - `missing`: what is done about missing values; where not said, `"response-weighted"` with aim, mst and pairs, else
      `"available"`.
    - `epsilon`: the privacy budget of one `fit`, a decimal as text.
    - `delta`: the chance that the guarantee leaves open; none asks for pure differential privacy.
    - `codebook`: a file or a dictionary; may be left out where `fit` is given a `Survey`.
    - `columns`: which columns to learn, all where not said.
    - `bins`: into how many bins a number is cut.
    - `point_masses`: for a column, the numbers that many people give and that keep a bin of their own.
    - `copies`: how often silent cells of the synthetic rows are filled, with `missing = "category"`; else, with `inference`, how
      many bootstrap copies `sample` gives beside the table, for `reticent.combine`.
    - `never`: filter expressions that no row fulfils.
    - `determines`: columns whose answer settles another's.
    - `known`: for such a pair, which answer settles which.
    - `denial`: what no two rows may be: `{"not": "t1.a = t2.a and t1.b != t2.b", "weight": "hard"}`, as many as wanted.
    - `inference`: measure for intervals: every pair, and residuals of binned numbers; see `answer`.
    - `pairs`: with `inference`, `"all"`, or `"chosen"` for those that the method chooses.
    - `impute_model`: whose model completes the rows, with `missing = "impute-model"`.
    - `impute_share`: the share of the amount that filling takes, half where not said.
    - `sampling`: for `"chain"`, `{"rate": "0.02", "steps": 400, "expected": 1_000_000}`: training steps over Poisson samples.
    - `public`: public margins of the population that rows agree with, each `{"columns": ["sex"], "lines": [["f", "51"], ["m", "49"]]}`.
    - `replaced`: protect one respondent's answers replaced, and not one added or removed.
    - `ledger`: a `Ledger` or its path, charged before a row is read.

    >>> model = Synthesizer(method="aim", epsilon="1", delta="0.000001", codebook="survey.codebook.toml")  # doctest: +SKIP
    >>> model.fit(frame).sample(30_000)  # doctest: +SKIP
    """

    _NAMES = (
        *("method", "missing", "epsilon", "delta", "codebook", "columns", "bins", "point_masses", "copies"),
        *("never", "determines", "known", "denial", "inference", "pairs", "replaced", "ledger"),
        *("impute_model", "impute_share", "sampling", "public"),
    )

    def __init__(
        self,
        *,
        method: str = "aim",
        missing: str | None = None,
        epsilon: str,
        delta: str | None = None,
        codebook: Book | None = None,
        columns: Sequence[str] | None = None,
        bins: int = BINS,
        point_masses: PointMasses | None = None,
        copies: int | None = None,
        never: Sequence[str] = (),
        determines: Mapping[str, str] | None = None,
        known: Mapping[str, Mapping[str, str]] | None = None,
        denial: Sequence[Mapping[str, str]] = (),
        inference: bool = False,
        pairs: str | None = None,
        impute_model: str | None = None,
        impute_share: str | None = None,
        sampling: Mapping[str, Any] | None = None,
        public: Sequence[Mapping[str, Any]] | None = None,
        replaced: bool = False,
        ledger: Account | None = None,
    ) -> None:
        self.method, self.missing, self.epsilon, self.delta = method, missing, epsilon, delta
        self.codebook, self.columns, self.bins, self.copies = codebook, columns, bins, copies
        self.point_masses = point_masses
        self.never, self.determines, self.known, self.replaced = never, determines, known, replaced
        self.denial, self.inference, self.pairs, self.ledger = denial, inference, pairs, ledger
        self.impute_model, self.impute_share, self.sampling = impute_model, impute_share, sampling
        self.public = public
        self._noise: SynthNoise = SystemSynthNoise()
        self._kind: type | None = None

    def fit(self, rows: Any, y: None = None) -> "Synthesizer":
        """Learn the model from a frame, an Arrow table, a file or a `Survey`, in one reading. Costs epsilon.

        With a ledger: charged before the rows are read, and what was learned is noted there before it is handed out. A fit
        that fails in between keeps its charge.
        """
        survey = rows if isinstance(rows, Survey) else Survey(rows, codebook=self._book())
        synth, ledger = planned(self.get_params(), survey), open_account(self.ledger)
        check_public(synth.domain.schema, synth.claim.change)
        engine: Engine = survey.open()
        try:
            engine.check(synth.domain.schema)
            if ledger is not None:
                _try(synth)
            held = self._reserve(ledger, synth, survey, engine.files) if ledger is not None else None
            model = self._learn(synth, engine)
        finally:
            engine.close()
        if ledger is not None and held is not None:
            ledger.commit(held, model.files()[MODEL])
        self.model_, self.receipt_ = model, held.receipt.as_dict() if held is not None else None
        self._kind = None if isinstance(rows, Survey | str | PathLike) else type(rows)
        return self

    def sample(self, n: int) -> Any:
        """`n` rows in a frame of the kind that was given, else an Arrow table; a list of them for several copies."""
        model, rows = self._fitted, check_rows(n)
        is_values = self.missing == MissingMethod.VALUES.value
        copies = (1 if self.copies is None else self.copies) if is_values else 0
        rules = ruled(self.get_params(), model.domain)
        tables = list(draw_tables(model, rules, rows, copies, self._noise.bits))
        if not is_values and self.copies:
            tables += bootstrap_tables(model, rules, rows, self.copies, self._noise.bits)
        made = [self._like(to_arrow(table, model.domain.schema)) for table in tables]
        return made if len(made) > 1 else made[0]

    def answer(
        self, query: Mapping[str, Any], *, level: float = LEVEL, design_effect: float | str | None = None
    ) -> tuple[DirectAnswer, ...]:
        """Ask the noisy tables that the model was fitted to: `answer({"mean": "hours", "where": "sex = 'Female'"})`.

        Estimate and interval for sampling and privacy noise, from tables of two columns at most; where none was measured, the
        model's own number, marked so. Costs nothing. Fit with `inference=True` to have an interval for every pair.
        """
        model = self._fitted
        lists = model.lists if isinstance(model, Network) else None

        def rows() -> Rows:
            return draw_tables(
                model, ruled(self.get_params(), model.domain), MODEL_ROWS, 0, self._noise.bits
            )[0]

        question = read_question(query, model.domain)
        return answered(question, lists, rows, level=level, design_effect=design_effect)

    @property
    def claim_(self) -> Claim:
        """What the model guarantees, and with it all rows that are drawn."""
        return self._fitted.claim

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the model into a folder: arrays and a TOML file. Rules and copies are arguments, and are not kept."""
        save(self._fitted, Path(folder))

    @classmethod
    def load(cls, folder: str | PathLike[str], *, codebook: Book, **arguments: Any) -> "Synthesizer":
        """A synthesizer that has learned already. The codebook must be the one it was made with.

        What was promised comes back with it. The method does not, and is needed only to fit again: say it in `arguments`.
        """
        model = load(Path(folder), _schema(codebook))
        claim = model.claim
        made = cls(
            **{
                "epsilon": show(claim.epsilon),
                "delta": show(claim.delta) if claim.delta else None,
                "replaced": claim.change is Change.REPLACE,
                "codebook": codebook,
                **arguments,
            }
        )
        made.model_, made.receipt_ = model, None
        return made

    model_: Model
    receipt_: dict[str, Any] | None
    """What the ledger says of the last fit, where one was charged."""

    def _reserve(self, ledger: Ledger, synth: Synth, survey: Survey, files: Sequence[Origin]) -> Reservation:
        refuse_replayed(self._noise)
        return reserve(
            ledger,
            "synthesizer",
            words=synth.written,
            codebook=survey.book(),
            schema=synth.domain.schema,
            claim=synth.claim,
            files=files,
        )

    def _learn(self, synth: Synth, engine: Engine) -> Model:
        model = learn(synth, engine, None, repair=NO_REPAIR, noise=self._noise, step=lambda _: None)
        if model.claim != synth.claim:
            raise ResourceError("was planned otherwise than it ran; nothing is handed out", field="fit")
        return model

    @property
    def _fitted(self) -> Model:
        if not hasattr(self, "model_"):
            raise PlanError("there is no model yet; call fit first", field="fit")
        return self.model_

    def _book(self) -> Book:
        if self.codebook is None:
            raise PlanError("is the codebook of the frame, a file or a dictionary", field="codebook")
        return self.codebook

    def _like(self, table: pa.Table) -> Any:
        """The table as the kind of frame that was given."""
        if self._kind is None or issubclass(self._kind, pa.Table):
            return table
        return self._kind(table) if self._kind.__module__.split(".")[0] == "polars" else table.to_pandas()


def _schema(book: Book) -> Schema:
    return schema_from(Survey(None, codebook=book).book())


def _try(synth: Synth) -> None:
    """Learn from nobody, one step of a training, before anything is charged: what fails then fails from public numbers."""
    failed = False
    try:
        learn(
            small_of(synth), Nobody(), None, repair=NO_REPAIR, noise=SystemSynthNoise(), step=lambda _: None
        )
    except ResourceError:
        failed = True
    if failed:
        raise PlanError(FAILED, field="epsilon")
