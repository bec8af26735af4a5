"""A real browser at the desk: all it asked for, all that its policy had to stop, and keys pressed as a person does."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.web.house import LONG, Running

playwright = pytest.importorskip("playwright.sync_api", reason="needs requirements/browser.lock")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")
PATIENCE = 1000 * LONG
"""In the milliseconds of a browser."""
playwright.expect.set_options(timeout=PATIENCE)
LISTEN = """
window.__seen = [];
document.addEventListener("securitypolicyviolation", (e) => window.__seen.push(e.violatedDirective + " " + e.blockedURI));
window.alert = () => window.__seen.push("alert");
"""
CALLED = (
    "(e => (e.getAttribute('aria-label') || (e.labels && e.labels[0] && e.labels[0].innerText) || e.innerText"
    " || e.value || '').trim())(document.activeElement)"
)


@contextmanager
def opened() -> Iterator[object]:
    """Debian's own binary; as root it has no sandbox."""
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


class Walker:
    """A page at the desk, all it asked for, and all that its policy had to stop."""

    def __init__(self, browser, desk: Running, width: int = 1100, **options):
        self.desk, self.asked, self.stopped = desk, [], []
        self.context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        self.context.add_init_script(LISTEN)
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda said: self.stopped.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda problem: self.stopped.append(f"script: {problem}"))
        self.page.on("dialog", lambda dialog: (self.stopped.append("dialog"), dialog.accept()))

    def login(self) -> None:
        self.go(f"/login?token={self.desk.token}")

    def go(self, path: str) -> None:
        self.page.goto(self.desk.origin + path)
        self.check()

    def check(self) -> None:
        assert self.page.evaluate("window.__seen") == []

    def tab_to(self, name: str, *, exact: bool = False, most: int = 120) -> None:
        """Press Tab until what has the focus is called so, as a screen reader would call it."""
        for _ in range(most):
            self.page.keyboard.press("Tab")
            said = self.page.evaluate(CALLED)
            if said == name if exact else name in said:
                return
        pytest.fail(f"no key leads to {name!r}")

    def follow(self, name: str, address: str, *, exact: bool = False) -> None:
        """Go to what is called so, press Enter, and be there."""
        self.tab_to(name, exact=exact)
        self.page.keyboard.press("Enter")
        self.page.wait_for_url("**" + address)

    def type_in(self, name: str, text: str) -> None:
        """In place of what a field holds."""
        self.tab_to(name)
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(text)

    def choose(self, name: str, value: str) -> None:
        """An option, by the arrow keys; letters would have to follow each other in time."""
        self.tab_to(name)
        self.page.keyboard.press("Home")
        for _ in range(100):
            if self.page.evaluate("document.activeElement.value") == value:
                return
            self.page.keyboard.press("ArrowDown")
        pytest.fail(f"no key chooses {value!r}")

    def end(self) -> None:
        """Everything went to the desk itself, the script never failed, and the policy had nothing to stop."""
        self.check()
        assert self.asked and all(url.startswith(self.desk.origin + "/") for url in self.asked)
        wrong = ("Content Security", "script:", "dialog")
        assert [each for each in self.stopped if each.startswith(wrong) or wrong[0] in each] == []
        self.context.close()
