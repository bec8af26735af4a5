"""The desk's addresses, its door, and the one place where a refusal becomes a page (W10 to W12)."""

from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from reticent.errors import ReticentError
from reticent.web import budgets, handing, planning, publishing, surveying
from reticent.web.asked import Asked, Handler, elsewhere
from reticent.web.desk import Desk
from reticent.web.guard import DOOR
from reticent.web.session import Sessions

STATIC = {
    "desk.css": "text/css",
    "desk.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "report.css": "text/css",
}
STATUS = {2: 422, 3: 409, 4: 503, 5: 409, 404: 404, 409: 409}
"""Of an answer, by the status that the command line would end with."""


def make_app(desk: Desk, sessions: Sessions) -> Starlette:
    """The pages, without their guard.

    **Parameters**

    - `desk`: what they are about.
    - `sessions`: whose forms are taken.
    """

    def get(path: str, handler: Handler) -> Route:
        return Route(path, _endpoint(handler, desk, sessions), methods=["GET"])

    def post(path: str, handler: Handler) -> Route:
        return Route(path, _endpoint(handler, desk, sessions, posts=True), methods=["POST"])

    made = Starlette(
        debug=False,
        routes=[
            get("/login", login),
            get("/static/{name}", static),
            get("/favicon.ico", icon),
            Route(
                "/again", _endpoint(again, desk, sessions), methods=["POST"]
            ),  # there is no session whose word it could carry
            post("/logout", logout),
            get("/", surveying.home),
            post("/plans", surveying.new_plan),
            get("/plans/{plan}", planning.show_plan),
            post("/plans/{plan}", planning.change_plan),
            post("/plans/{plan}/look", planning.look),
            post("/plans/{plan}/rehearsal", planning.rehearsal),
            get("/plans/{plan}/survey", surveying.survey),
            post("/plans/{plan}/survey", surveying.draft),
            get("/plans/{plan}/codebook", surveying.codebook),
            post("/plans/{plan}/codebook", surveying.save_codebook),
            get("/plans/{plan}/missing", surveying.missing),
            post("/plans/{plan}/missing", surveying.look_at_rows),
            get("/plans/{plan}/budget", budgets.budget),
            post("/plans/{plan}/budget", budgets.verify),
            post("/plans/{plan}/ledger", budgets.open_ledger),
            get("/plans/{plan}/confirm", publishing.confirm),
            post("/plans/{plan}/approve", publishing.approve),
            post("/plans/{plan}/release", publishing.release),
            post("/plans/{plan}/resume", publishing.resume),
            get("/plans/{plan}/progress", publishing.progress),
            get("/releases", handing.releases),
            get("/releases/{ledger}/{release}", handing.report),
            get("/releases/{ledger}/{release}/{ending}", handing.download),
        ],
        exception_handlers={
            404: _plain(404, "there is no such page"),
            405: _plain(405, "this is not done that way"),
        },
    )
    made.router.redirect_slashes = False
    return made


def _plain(status: int, text: str) -> Callable[[Request, Exception], Response]:
    def answer(request: Request, problem: Exception) -> Response:
        return PlainTextResponse(text + "\n", status_code=status)

    return answer


def _endpoint(
    handler: Handler, desk: Desk, sessions: Sessions, *, posts: bool = False
) -> Callable[[Request], Any]:
    """A handler in a thread; whatever goes wrong becomes a status and a sentence."""

    async def run(request: Request) -> Response:
        asked = Asked(
            desk=desk,
            sessions=sessions,
            params=dict(request.path_params),
            query=dict(request.query_params),
            form=request.scope.get("desk.form", {}),
            cookie=request.scope.get("desk.cookie", ""),
            is_known=request.scope.get("desk.known", False),
        )
        if posts and not sessions.is_from_form((asked.form.get("word") or [""])[-1]):
            return PlainTextResponse(
                "this form is not from this session; load the page again\n", status_code=403
            )
        return await run_in_threadpool(_answered, handler, asked)

    return run


def _answered(handler: Handler, asked: Asked) -> Response:
    try:
        return handler(asked)
    except ReticentError as problem:
        return asked.page("problem.html.j2", status=STATUS.get(problem.status, 422), problem=problem.told)
    except Exception:  # noqa: BLE001 - whatever it was, its text may hold something read from a row
        said = "something failed that should not; nothing more is known here"
        return asked.page("problem.html.j2", status=500, problem=said)


def login(asked: Asked) -> Response:
    """Exchange the token on the terminal for a cookie. Who has one already needs none."""
    if asked.is_known:
        return elsewhere("")
    cookie = asked.sessions.login(asked.query.get("token", ""))
    if cookie is None:
        return HTMLResponse(DOOR, status_code=403)
    answer = elsewhere("")
    answer.set_cookie(asked.cookie, cookie, httponly=True, samesite="strict", path="/")
    return answer


def again(asked: Asked) -> Response:
    """Tell another link, on the terminal."""
    asked.sessions.again()
    return PlainTextResponse("The terminal shows a new link.\n")


def logout(asked: Asked) -> Response:
    """End the session, and have the browser forget its pages; the terminal shows the next way in."""
    asked.sessions.logout()
    answer = HTMLResponse(DOOR, headers={"clear-site-data": '"cache"'})
    answer.delete_cookie(asked.cookie, path="/", httponly=True, samesite="strict")
    return answer


def static(asked: Asked) -> Response:
    """One of our own files."""
    name = asked.params["name"]
    if name not in STATIC:
        return PlainTextResponse("there is no such page\n", status_code=404)
    place = (
        files("reticent.report") / "page.css"
        if name == "report.css"
        else files("reticent.web") / "static" / name
    )
    return Response(place.read_bytes(), media_type=STATIC[name])


def icon(asked: Asked) -> Response:
    """What a browser asks for where a page names none, as a report does."""
    return static(replace(asked, params={"name": "icon.svg"}))
