"""The curator from Python: the same files as the command line writes, the report and the workbook among them."""

from typing import Any

from reticent.privacy.ledger import Ledger
from reticent.release.curator import Curator as PlainCurator
from reticent.report.pages import ReportPages, installed

REPORT = object()


class ReportingCurator(PlainCurator):
    """The data curator's side of a release: runs plans against one ledger, and draws the report beside what it publishes.

    **Parameters**

    - `ledger`: the ledger that is charged.
    - `pages`: which pages are drawn; all that can be drawn here where not said, as the command line does, and none for None.
    """

    def __init__(self, ledger: Ledger, *, pages: Any = REPORT) -> None:
        chosen = ReportPages(endings=installed()) if pages is REPORT else pages
        super().__init__(ledger, pages=chosen)


Curator = ReportingCurator
