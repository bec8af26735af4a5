"""One release at a time, in a thread of its own; what it tells is steps of the plan, never rows (W13, W15).

The ledger decides whether anything is charged. The worker only keeps two clicks from becoming two threads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from threading import Lock, Thread
from time import monotonic

from reticent.errors import ResourceError, ReticentError
from reticent.plan.plan import Plan
from reticent.report.pages import ReportPages, installed
from reticent.workflow.releasing import ReadyRelease, steps_of

FAILED = "something failed that should not; what was charged can be resumed"


@dataclass(slots=True)
class Job:
    """A release on its way.

    **Parameters**

    - `ledger`: the ledger that it is charged to.
    - `release_id`: its id there.
    - `plan`: the digest of its plan.
    - `total`: at most how many steps it tells of.
    """

    ledger: str
    release_id: str
    plan: str
    total: int
    steps: list[str] = field(default_factory=list)
    problem: str = ""
    note: str = ""
    _began: float = field(default_factory=monotonic, repr=False)
    _ended: float | None = field(default=None, repr=False)

    @property
    def is_running(self) -> bool:
        return self._ended is None

    @property
    def is_over(self) -> bool:
        """Whether it has ended; told at whole seconds only, since how long it took depends on the rows (T29)."""
        if self._ended is None:
            return False
        return monotonic() >= self._began + ceil(self._ended - self._began)

    def end(self, problem: str = "") -> None:
        self.problem, self._ended = problem, monotonic()


@dataclass(slots=True)
class Worker:
    """Runs one release at a time.

    **Parameters**

    - `endings`: the pages that are drawn of a release; all that can be drawn where not said.
    """

    endings: Sequence[str] = field(default_factory=installed)
    _job: Job | None = field(default=None, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def job(self, plan: Plan) -> Job | None:
        """The last release that was begun here, if it is the one that the plan's ledger knows by its id."""
        job = self._job
        is_it = job is not None and (job.ledger, job.release_id) == (plan.ledger, plan.release_id)
        return job if is_it else None

    @property
    def running(self) -> str:
        """The id of the release that is on its way; empty where none is."""
        return self._job.release_id if self._job is not None and self._job.is_running else ""

    def begin(self, ready: ReadyRelease) -> Job:
        """Start a release, or find it running; refused while another one runs."""
        with self._lock:
            running = self._job if self._job is not None and self._job.is_running else None
            if running is not None:
                if running is self.job(ready.plan) and running.plan == ready.plan.digest:
                    return running
                raise ResourceError(
                    f"release {running.release_id} is on its way; wait for its end", field="release"
                )
            plan = ready.plan
            job = self._job = Job(plan.ledger, plan.release_id, plan.digest, steps_of(plan))
            Thread(target=self._work, args=(job, ready), name="release", daemon=True).start()
            return job

    def _work(self, job: Job, ready: ReadyRelease) -> None:
        pages = ReportPages(endings=tuple(self.endings), tell=_noting(job))
        problem = FAILED
        try:
            ready.run(pages, job.steps.append)
            problem = ""
        except ReticentError as refused:
            problem = refused.told
        except MemoryError:
            problem = "not enough memory; close other programs or use a smaller plan"
        except Exception:  # noqa: BLE001 - whatever it was, its text may hold something read from a row
            problem = FAILED
        finally:
            job.end(problem)


def _noting(job: Job) -> Callable[[str], None]:
    def note(text: str) -> None:
        job.note = "the report could not be drawn; the release itself is published. Resume it to draw the report, at no charge."

    return note
