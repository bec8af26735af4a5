"""One request as a page sees it, and the answers a page can give: a page, a way elsewhere, a file to keep."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse, Response

from reticent.web.desk import Desk, PlanFile
from reticent.web.session import Sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that the guard has let through.

    **Fields**

    - `desk`: what it is about.
    - `sessions`: who asks.
    - `params`: the parts of its path.
    - `query`: what stands behind the question mark.
    - `form`: the fields of a post.
    - `cookie`: the name of the session's cookie.
    - `is_known`: whether it came with that of the session.
    """

    desk: Desk
    sessions: Sessions = field(repr=False)
    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, Sequence[str]] = field(default_factory=dict, repr=False)
    cookie: str = ""
    is_known: bool = False

    @property
    def plan(self) -> PlanFile:
        """The plan that the path names."""
        return self.desk.plan(self.params["plan"])

    def page(self, template: str, *, status: int = 200, **view: Any) -> Response:
        """A page from its template."""
        given = {"word": self.sessions.word, "plan": None, "problem": "", "done": "", **view}
        return HTMLResponse(environment().get_template(template).render(given), status_code=status)


Handler = Callable[[Asked], Response]


def elsewhere(*parts: str, query: str = "") -> Response:
    """Go on with another page, so that a reload repeats nothing."""
    path = "/" + "/".join(quote(part, safe="") for part in parts)
    return RedirectResponse(path + query, status_code=303)


def attachment(data: bytes, name: str, kind: str) -> Response:
    """A file to keep; the name is one of ours."""
    return Response(data, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


@cache
def environment() -> Environment:
    """Every text is escaped: names in plans and codebooks come from elsewhere (W14)."""
    made = Environment(
        loader=PackageLoader("reticent.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["part"] = lambda text: quote(str(text), safe="")
    return made
