"""The desk in a real browser: what a curator does with it, and what a page of somebody else's cannot."""

import http.server
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from reticent.privacy.ledger import Ledger
from tests.web.house import LONG, start
from tests.web.test_desk import SLOW
from tests.web.walker import Walker, needs_browser, opened, playwright

pytestmark = needs_browser
Error = playwright.Error
TOWN = "/plans/town.toml"


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with opened() as made:
        yield made


@pytest.fixture
def walker(browser, town) -> Iterator[Walker]:
    desk = start(town)
    walker = Walker(browser, desk)
    walker.login()
    yield walker
    walker.end()
    desk.stop()


def charges(folder: Path) -> int:
    return sum(entry.kind == "reserve" for entry in Ledger.open(folder / "town.ledger.db").entries())


def test_a_double_click_a_reload_and_the_back_button_charge_once(walker, town):  # covers W15
    page = walker.page
    walker.go(f"{TOWN}/confirm")
    page.dblclick("button.go")
    page.wait_for_url("**/progress")
    page.reload()
    page.go_back()
    page.goto(walker.desk.origin + f"{TOWN}/confirm")
    page.wait_for_selector("text=Published")
    assert charges(town) == 1


def test_a_second_tab_that_still_shows_the_form_charges_nothing_more(walker, town):  # covers W15
    other = walker.context.new_page()
    other.goto(walker.desk.origin + f"{TOWN}/confirm")
    walker.go(f"{TOWN}/confirm")
    walker.page.click("button.go")
    walker.page.wait_for_selector("text=Published")
    other.click("button.go")
    other.wait_for_selector("text=Published")
    assert charges(town) == 1


def test_the_preview_follows_slider_and_text(walker, town):  # covers W14
    page = walker.page
    walker.go(TOWN)
    noise = "#ahead-statistic-0 dd >> nth=0"
    before = page.inner_text(noise)
    page.focus("#sections input[type=range] >> nth=0")
    for _ in range(3):
        page.keyboard.press("PageDown")
    page.wait_for_function("b => document.querySelector('#ahead-statistic-0 dd').innerText !== b", arg=before)
    value = page.input_value("#sections input.amount >> nth=0")
    assert float(value) < 0.5 and f"epsilon = {value}" in page.input_value("#text")
    assert page.get_attribute("#sections input[type=range] >> nth=0", "aria-valuetext") == value
    assert page.evaluate("document.activeElement.type") == "range"  # it can be moved on
    assert "costs ε" in page.inner_text("#told")  # and is told to who does not see it
    text = page.input_value("#text")
    page.fill("#text", text.replace('name = "everybody"', 'name = "<img src=x onerror=alert(3)>"'))
    page.wait_for_selector("#sections >> text=<img src=x onerror=alert(3)>")
    assert page.locator("img").count() == 0
    page.fill("#text", text + "\n[[statistic]]\nname = 5\n")
    page.wait_for_selector("#summary [role=alert]")
    page.fill("#text", text)
    page.wait_for_selector("#summary dl")
    page.fill(
        "#text", text.replace("[[statistic]]\nname", "[[statistic]]\nexpect = { value = 900 }\nname", 1)
    )
    page.click("text=Which ε gives this CV?")
    page.wait_for_selector("text=for a CV of 5 %")
    assert page.inner_text("#ahead-statistic-1 dd.words") == "needs an expected value"
    page.fill("input[name=expected-statistic-1]", "0.6")
    page.wait_for_selector("#ahead-statistic-1 button:has-text('use')")
    assert 'expect = { value = "0.6" }' in page.input_value("#text")
    with page.expect_navigation():
        page.click("#ahead-statistic-0 button:has-text('use')")
    held = (town / "town.toml").read_text()
    assert held != text and "expect = { value = 900 }" in held
    assert page.locator(
        "#ahead-statistic-1 button:has-text('use')"
    ).is_visible()  # the answer to the next is still there
    walker.check()


def test_what_is_typed_in_the_text_outlasts_fields_drawn_before_it(walker):  # covers W14
    """A button right after it, a slider moved while the desk still looks at it, and an answer that comes too late."""
    page = walker.page
    walker.go(TOWN)
    text = page.input_value("#text")
    more = text.replace("[[statistic]]\nname", "[[statistic]]\nexpect = { value = 900 }\nname", 1)
    page.fill("#text", more.replace("epsilon = 2\n", "epsilon = 3\n"))
    page.click("text=Which ε gives this CV?")
    page.wait_for_selector("#ahead-statistic-0 button:has-text('use')")
    assert "expect = { value = 900 }" in page.input_value("#text")
    assert page.input_value("input[name=expected-statistic-0]") == "900"
    assert page.input_value("input[name=cap]") == "3"
    page.fill("#text", more)
    page.fill("input[name=amount-statistic-1]", "0.4")
    page.wait_for_function("() => document.querySelector('#text').value.includes('epsilon = 0.4')")
    assert page.evaluate("document.activeElement.name") == "amount-statistic-1"
    assert page.input_value("input[name=cap]") == "2"
    held = []
    page.route("**/look", lambda route: held.append(route), times=1)
    page.fill("input[name=amount-statistic-1]", "0.3")
    while not held:
        page.wait_for_timeout(20)
    page.fill("#text", text.replace("everybody", "all of them"))
    held[0].continue_()
    page.wait_for_selector("#sections >> text=all of them")
    assert "all of them" in page.input_value("#text")


def test_what_was_typed_is_saved_however_soon(walker, town):
    """A field and the button right after it: the script has had no time to write the text."""
    page = walker.page
    walker.go(TOWN)
    page.fill("input[name=amount-statistic-1]", "0.31")
    with page.expect_navigation():
        page.click("text=Save the plan")
    assert "epsilon = 0.31" in (town / "town.toml").read_text()
    page.fill("input[name=amount-statistic-1]", "0.32")
    page.fill("input[name=cap]", "1.9")
    page.click("summary:text-is('Add to the plan')")
    page.click("summary:text-is('A statistic')")
    with page.expect_navigation():
        page.click("details[open] details[open] form.add button")
    text = (town / "town.toml").read_text()
    assert "epsilon = 0.32" in text and "epsilon = 1.9" in text and text.count("[[statistic]]") == 3


def test_who_leaves_with_something_unsaved_is_asked(walker, town):
    page = walker.page
    walker.go(TOWN)
    page.fill("input[name=amount-statistic-0]", "0.2")
    page.click("text=Survey")
    page.wait_for_url("**/survey")
    assert walker.stopped == ["dialog"]
    walker.stopped.clear()
    assert "epsilon = 0.2" not in (town / "town.toml").read_text()


def test_a_statistic_is_added_by_its_form(walker, town):  # covers W14
    """Fields that its kind has no use for are not there."""
    page = walker.page
    walker.go(TOWN)
    page.click("summary:text-is('Add to the plan')")
    page.click("summary:text-is('A statistic')")
    form = page.locator("form.add").first
    assert form.locator("select[name=column]").is_hidden()
    form.locator("select[name=kind]").select_option("mean")
    form.locator("select[name=column]").select_option("wage")
    assert form.locator("input[name=step]").is_hidden()
    form.locator("input[name=name]").fill("mean wage")
    form.locator("button").click()
    page.wait_for_selector("#sections >> text=mean wage")
    assert 'query = { mean = "wage" }' in (town / "town.toml").read_text()


def test_forms_offer_what_fits_the_choice(walker):  # covers W14
    """The levels of the column that is chosen, also where one is markup, and what the method of an imputation needs."""
    page = walker.page
    walker.go(TOWN)
    page.click("summary:text-is('Add to the plan')")
    page.click("summary:text-is('A statistic')")
    form = page.locator("form.add").first
    listed = "document.querySelector('form.add input[name=where-value]').list"
    assert page.evaluate(listed) is None
    form.locator("select[name=where-column]").select_option("job")
    assert page.evaluate(f"[...{listed}.options].map(each => each.value + ' ' + each.text)") == [
        "yes <img src=x onerror=alert(2)>",
        "no no",
    ]
    form.locator("select[name=where-column]").select_option("age")
    assert page.evaluate(listed) is None
    page.click("summary:text-is('An imputation')")
    form = page.locator("form.add:has(select[name=filled])")
    assert (
        form.locator("input[name=default]").is_visible() and form.locator("input[name=epsilon]").is_hidden()
    )
    form.locator("select[name=method]").select_option("regression")
    assert (
        form.locator("input[name=default]").is_hidden() and form.locator("input[name=epsilon]").is_visible()
    )
    page.click("summary:text-is('Known totals')")
    assert page.locator("[data-is=job]").is_hidden()
    page.locator("form.add:has(textarea) select[name=column] >> nth=1").select_option("job")
    assert page.locator("[data-is=job]").inner_text() == "Levels of job: yes, no"


def test_the_way_to_save_is_in_sight_on_a_narrow_screen(walker):  # covers W18
    page = walker.page
    page.set_viewport_size({"width": 400, "height": 500})
    walker.go(TOWN)
    for field in ("input[name=amount-statistic-0]", "input[name=amount-statistic-1]"):
        page.focus(field)
        box, field_box = page.locator(".keep").bounding_box(), page.locator(field).bounding_box()
        assert box["y"] + box["height"] <= 501 and field_box["y"] + field_box["height"] <= box["y"]


def test_a_difference_a_design_and_tables_are_added_by_their_forms(walker, town):
    page = walker.page
    path = town / "town.toml"
    path.write_text(path.read_text().replace('design_effect = "1.5"\n', ""))
    for summary, chosen, typed, shown in (
        ("A statistic", {"kind": "difference", "first": "everybody", "second": "share employed"}, {"name": "gap"}, "gap"),
        ("Sampling design", {}, {"design_effect": "1.4"}, "Sampling design"),
        ("Tables that add up", {}, {"margins": "job age", "bins": "age 0 18 99", "name": "who"}, "who"),
        ("An edit", {"then": "job"}, {"if-words": "wage > 900", "value": "yes"}, "wage > 900"),
        ("An imputation", {"filled": "wage", "match": "job"}, {"default": "100"}, "wage"),
        ("What to expect, from public sources", {}, {"rows": "3000"}, "Expected, from public sources"),
    ):  # fmt: skip
        walker.go(TOWN)
        page.click("summary:text-is('Add to the plan')")
        page.click(f"summary:text-is('{summary}')")
        form = page.locator("details[open] details[open] form.add")
        for name, value in chosen.items():
            form.locator(f"select[name={name}] >> nth=0").select_option(value)
        for name, value in typed.items():
            form.locator(f"[name={name}] >> nth=0").fill(value)
        form.locator("button").click()
        page.wait_for_selector(f"#sections h3:text-is('{shown}')")
        assert page.locator("[role=alert]").all_inner_texts() == []
    text = path.read_text()
    assert "rows = 3000" in text and 'match = ["job"]' in text and 'then = { job = "yes" }' in text
    assert 'difference = ["everybody", "share employed"]' in text and 'margins = [["job", "age"]]' in text
    assert re.search(r"± [0-9.]+\s+noise and sampling", page.inner_text("#ahead-statistic-1"))


def test_a_desk_killed_in_the_middle_is_told_and_the_next_offers_to_resume(browser, town):  # covers W15
    """The progress page says that nobody answers; the charge is there once, and the next desk goes on from it."""
    first = start(town, before=SLOW)
    walker = Walker(browser, first)
    walker.login()
    walker.go(f"{TOWN}/confirm")
    walker.page.click("button.go")
    walker.page.wait_for_selector("text=You may leave this page")
    while not charges(town):
        walker.page.wait_for_timeout(100)
    first.stop(signal.SIGKILL)
    walker.page.wait_for_selector("text=what was charged can be resumed")
    walker.context.close()
    desk = start(town)
    walker = Walker(browser, desk)
    walker.login()
    walker.go(f"{TOWN}/confirm")
    walker.page.dblclick("text=Resume town-1")
    walker.page.wait_for_selector("text=Open the report")
    assert charges(town) == 1
    walker.end()
    desk.stop()


def test_a_desk_that_is_closed_is_told(walker):  # covers W17
    """A page whose session has ended leads to the door."""
    page = walker.page
    walker.go(TOWN)
    page.evaluate(
        "fetch('/logout', {method: 'POST', body: new URLSearchParams({word: document.forms[0].word.value})})"
    )  # and waits for the answer
    page.fill("input[name=amount-statistic-0]", "0.2")
    page.wait_for_selector("text=The desk is closed")
    assert walker.stopped.pop() != "script:"
    walker.stopped.clear()  # 401 is told on the console


def settled(page) -> str:
    """What a page holds when it has stopped going elsewhere."""
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        with suppress(Error):
            return page.content()
        page.wait_for_timeout(100)
    pytest.fail("the page never came to rest")


def test_leaving_shows_nothing_to_whoever_goes_back(walker):  # covers W08
    page = walker.page
    walker.go(f"{TOWN}/missing")
    page.click("button.danger")
    page.wait_for_selector("text=20.0 %")
    with page.expect_navigation():
        page.click("text=Leave")
    assert page.context.cookies() == []
    for _ in range(2):
        with suppress(Error):  # the browser has kept nothing that it could show
            page.go_back(wait_until="commit")
        assert "20.0 %" not in settled(page)


def test_what_was_read_off_the_rows_leaves_a_screen_that_nobody_is_at(walker):  # covers W08 W17
    """After as long as a session rests. Who still reads keeps it."""
    page = walker.page
    page.clock.install()
    walker.go(f"{TOWN}/missing")
    page.click("button.danger")
    page.wait_for_selector("text=20.0 %")
    page.clock.fast_forward("20:00")
    page.keyboard.press("Shift")
    page.clock.fast_forward("20:00")
    assert page.locator("text=20.0 %").count() > 0
    for _ in range(LONG // 5):  # an event that comes late, such as a frame of a scroll, counts as reading
        page.clock.fast_forward("31:00")
        with suppress(Error):
            page.wait_for_selector("text=Show it to me", timeout=5_000)
            break
    assert "20.0 %" not in page.content()


STAGED = """
import pathlib, time, reticent.workflow.releasing as releasing
run = releasing.ReadyRelease.run
def wait(name):
    while not pathlib.Path({0!r}, name).exists():
        time.sleep(0.05)
def staged(self, pages=None, step=lambda _: None):
    for place, each in enumerate(("first", "second"), 1):
        wait(f"go{{place}}")
        step(each)
    wait("go3")
    return run(self, pages, step)
releasing.ReadyRelease.run = staged
"""
"""A release whose first steps end when a file is there."""


def test_progress_is_told_and_what_was_unfolded_stays_so(browser, town):  # covers W15 W18
    """One step after the other; the list of steps that somebody has opened is not closed by the next look."""
    desk = start(town, before=STAGED.format(str(town)))
    walker = Walker(browser, desk)
    page = walker.page
    walker.login()
    walker.go(f"{TOWN}/confirm")
    page.click("button.go")
    (town / "go1").touch()
    page.click("summary:text-is('Steps so far')")
    page.wait_for_function("() => document.getElementById('told').textContent.startsWith('1 of ')")
    page.evaluate("document.querySelector('#progress summary').focus()")
    (town / "go2").touch()
    page.wait_for_function("() => document.getElementById('told').textContent.startsWith('2 of ')")
    assert page.locator("#progress details[open] li").all_inner_texts() == ["first", "second"]
    assert page.evaluate("document.activeElement.textContent") == "Steps so far"
    (town / "go3").touch()
    page.wait_for_selector("text=Open the report")
    walker.end()
    desk.stop()


def test_a_label_is_shown_as_text(walker):  # covers W14
    walker.go(f"{TOWN}/survey")
    assert "<img src=x onerror=alert(1)>" in walker.page.inner_text("table")
    walker.page.click("td summary")
    assert "<img src=x onerror=alert(2)>" in walker.page.inner_text("table")
    assert walker.page.locator("img").count() == 0


def test_a_page_of_another_origin_can_neither_post_nor_read_nor_frame(browser, town):  # covers W04 W05 W06
    """A hostile page on another port of this machine, in the browser that holds the session."""
    desk = start(town)
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{desk.origin}/login?token={desk.token}")
    page.goto(f"{desk.origin}{TOWN}/confirm")
    digest, word = (page.input_value(f"form[data-once] input[name={name}]") for name in ("digest", "word"))
    hostile = (
        f"<form id=f method=post action='{desk.origin}{TOWN}/release'><input name=word value='{word}'>"
        f"<input name=digest value='{digest}'></form><iframe src='{desk.origin}/'></iframe>"
    )

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(hostile.encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        read = page.evaluate(
            "u => fetch(u, {credentials: 'include'}).then(r => r.text(), e => 'refused')", desk.origin + "/"
        )
        assert read == "refused"
        framed = [frame for frame in page.frames if frame != page.main_frame]
        assert all("town" not in frame.content() for frame in framed)
        page.evaluate("document.getElementById('f').submit()")
        page.wait_for_load_state()
        assert "does not come from the desk's own page" in page.inner_text("body")
        assert charges(town) == 0
    finally:
        server.shutdown()
        context.close()
        desk.stop()


def test_without_a_script_it_works_too(browser, town):  # covers W18
    desk = start(town)
    walker = Walker(browser, desk, java_script_enabled=False)
    page = walker.page
    page.goto(f"{desk.origin}/login?token={desk.token}")
    page.goto(desk.origin + TOWN)
    page.fill("#sections input.amount >> nth=0", "0.25")
    page.click("text=Save the plan")
    assert page.locator(".slider >> visible=true").count() == 0
    assert "epsilon = 0.25" in (town / "town.toml").read_text()
    walker.context.close()
    desk.stop()
