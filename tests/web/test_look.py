"""How the desk looks, and to whom: every page on a narrow screen and on paper, in light and in dark, to a screen reader and by keys.

Pictures of each page for docs/howto/desk.md are made by the same walk where RETICENT_PICTURES names a folder.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from reticent.privacy.ledger import Ledger
from tests.web.house import CODEBOOK, fill, open_ledger, start
from tests.web.walker import Walker, needs_browser, opened, playwright

pytestmark = needs_browser
TOWN = "/plans/town.toml"


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with opened() as made:
        yield made


@pytest.fixture(scope="module")
def walker(browser, tmp_path_factory) -> Iterator[Walker]:
    """At a desk where one release is published."""
    folder = fill(tmp_path_factory.mktemp("look"))
    open_ledger(folder)
    desk = start(folder)
    walker = Walker(browser, desk)
    walker.login()
    walker.go(f"{TOWN}/confirm")
    walker.page.click("button.go")
    walker.page.wait_for_selector("#progress:not([data-poll])")
    yield walker
    walker.end()
    desk.stop()


def rows(folder: Path, ending: str) -> str:
    """The same answers in another kind of file; numbers stand for the levels in one that has labels for them."""
    import pandas as pd

    table = pd.DataFrame(
        {
            "age": [20 + n % 60 for n in range(300)],
            "job": ["yes" if n % 3 else "no" for n in range(300)],
            "wage": [None if n % 5 == 0 else n % 900 for n in range(300)],
        }
    )
    if ending == "csv":
        table.to_csv(folder / "town.csv", index=False)
    elif ending == "parquet":
        table.to_parquet(folder / "town.parquet")
    else:
        spss = pytest.importorskip("pyreadstat")
        labels = {"age": "Age in years", "job": "Has a job", "wage": "Wage"}
        spss.write_sav(
            table,
            str(folder / "town.sav"),
            column_labels=labels,
            variable_measure={"age": "scale", "wage": "scale"},
        )
    return f"town.{ending}"


@pytest.mark.parametrize(
    ("ending", "width", "scheme"), [("csv", 1100, "light"), ("parquet", 400, "light"), ("sav", 1100, "dark")]
)
def test_by_keyboard_alone_from_a_file_of_rows_to_a_downloaded_report(
    browser, tmp_path, ending, width, scheme
):  # covers W15 W18
    """A new plan, a drafted codebook, its editing, a statistic, the ledger, what is missing, the release, its files."""
    rows(tmp_path, ending)
    desk = start(tmp_path)
    walker = Walker(browser, desk, width=width, color_scheme=scheme)
    page = walker.page
    walker.login()
    walker.type_in("Id of the release", "first-1")
    walker.type_in("Respondents to expect", "300")
    walker.follow("Write the plan", "/plans/first-1.toml/survey")
    walker.follow("Draft town.codebook.toml", "/codebook")
    walker.type_in("Codebook, as TOML", CODEBOOK)
    walker.tab_to("Save and check")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=3 columns, unit row; finished")
    walker.follow("Plan", "/plans/first-1.toml", exact=True)
    walker.choose("Compute", "mean")
    walker.choose("of column", "wage")
    walker.type_in("Name", "mean wage")
    walker.tab_to("Add to the plan", exact=True)
    page.keyboard.press("Enter")
    page.wait_for_selector("h3:text-is('mean wage')")
    walker.tab_to("ε of mean wage, from")
    page.keyboard.press("PageDown")
    page.wait_for_function(
        "() => document.querySelector('#text').value.includes('epsilon = \"0.5\"') === false"
    )
    walker.follow("Save and go on to the release", "/confirm")
    walker.follow("Open the ledger", "/budget")
    walker.tab_to("Open it")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Nothing has been charged yet")
    walker.follow("Missingness", "/missing")
    walker.tab_to("Show it to me")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=20.0 %")
    walker.follow("Release", "/confirm", exact=True)
    walker.tab_to("and release")
    page.keyboard.press("Enter")
    page.wait_for_url("**/progress")
    page.wait_for_selector("#progress:not([data-poll])")
    walker.follow("Files and receipt", "/releases")
    for end in ("csv", "html"):
        walker.tab_to(f"Download first-1.{end}")
        with page.expect_download() as kept:
            page.keyboard.press("Enter")
        assert b"mean wage" in Path(kept.value.path()).read_bytes()
    walker.follow("first-1", "/releases/town.ledger.db/first-1", exact=True)
    page.wait_for_selector("text=Privacy guarantee")
    walker.end()
    book = Ledger.open(tmp_path / "town.ledger.db")
    assert [entry.kind for entry in book.entries()].count("reserve") == 1
    desk.stop()


PAGES = [
    "/",
    "/releases",
    "/releases/town.ledger.db/town-1",
    f"{TOWN}?cv=5",
    *(f"{TOWN}/{end}" for end in ("survey", "codebook", "missing", "budget", "confirm", "progress")),
    "/nothing",
]


def test_nothing_is_wider_than_a_narrow_screen_and_every_control_has_a_name(walker):  # covers W18
    walker.page.set_viewport_size({"width": 400, "height": 800})
    for path in PAGES[:-1]:
        walker.go(path)
        unfold(walker.page)
        wide = walker.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 400, (path, wide)
        unnamed = walker.page.evaluate(
            "[...document.querySelectorAll('input:not([type=hidden]), select, textarea, button, a')].filter(e =>"
            " !(e.getAttribute('aria-label') || (e.labels && e.labels.length) || e.textContent.trim())).map(e => e.outerHTML)"
        )
        assert unnamed == [], path
        assert walker.page.locator("h1").count() == 1 and walker.page.locator("main").count() == 1
    walker.page.set_viewport_size({"width": 1100, "height": 800})


def unfold(page) -> None:
    """Open whatever is folded, and show what is behind the click."""
    if page.locator("button.danger").count():
        page.click("button.danger")
        page.wait_for_selector(".secret")
        page.wait_for_load_state("load")  # with its style sheet
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")


CONTROLS = "nav, header.top, .skip, .steps, .back, button, input, select, textarea"


def test_on_paper_there_is_no_navigation(walker):
    """What was printed is the budget and the report, not the way through the desk, and no table is cut off. The plan keeps its preview."""
    page = walker.page
    for path, heading in (
        (f"{TOWN}/budget", "Privacy budget"),
        ("/releases/town.ledger.db/town-1", "Privacy guarantee"),
    ):
        walker.go(path)
        shown = page.locator(CONTROLS).locator("visible=true")
        assert shown.count() > 0, path  # on the screen they are there
        page.emulate_media(media="print")
        assert shown.count() == 0, path
        assert heading in page.inner_text("main")
        page.set_viewport_size({"width": 700, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= 700, path
        clipped = page.evaluate(
            "[...document.querySelectorAll('.scroll, .long')].filter(e => getComputedStyle(e).overflowX !== 'visible').length"
        )
        assert clipped == 0, path
        page.emulate_media(media="screen")
    walker.go(TOWN)
    page.emulate_media(media="print")
    assert "share employed" in page.inner_text("#sections")
    assert (
        page.locator("button >> visible=true").count()
        == 0
        == page.locator("textarea >> visible=true").count()
    )
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1100, "height": 800})


def test_text_stands_out_from_its_ground(walker):  # covers W18
    """The contrast of every text with what is behind it is at least 4.5, in light and in dark."""
    for scheme in ("light", "dark"):
        walker.page.emulate_media(color_scheme=scheme)
        for path in PAGES[:-1]:
            walker.go(path)
            unfold(walker.page)
            assert walker.page.evaluate(CONTRAST) == [], (scheme, path)
    walker.page.emulate_media(color_scheme="light")


def test_the_focus_is_seen(walker):  # covers W18
    """Every control has an outline of three pixels when it is reached by a key, in a colour that stands out by 3."""
    page = walker.page
    for path in (TOWN, f"{TOWN}/survey", "/releases"):
        walker.go(path)
        for _ in range(8):
            page.keyboard.press("Tab")
            width, style = page.evaluate(
                "(s => [s.outlineWidth, s.outlineStyle])(getComputedStyle(document.activeElement))"
            )
            assert (width, style) == ("3px", "solid"), (
                path,
                page.evaluate("document.activeElement.outerHTML"),
            )


SNAPSHOTS = {
    "/": """
- link "To the page itself"
- banner:
  - navigation "Desk":
    - link "Plans"
    - link "Releases"
  - button "Leave"
- main:
  - heading /Plans in/ [level=1]
  - region "Budget town.ledger.db"
  - list:
    - listitem:
      - paragraph:
        - link "A first release from the town"
  - group: New plan
""",
    TOWN: """
- navigation "Plan town.toml":
  - list:
    - listitem:
      - link "Survey"
    - listitem:
      - link "Missingness"
    - listitem:
      - link "Plan"
    - listitem:
      - link "Budget"
    - listitem:
      - link "Release"
- main:
  - heading "A first release from the town" [level=1]
  - status
  - region "Price and guarantee":
    - term: costs
    - definition: ε 1
    - img "The plan uses 1 of its own limit 2"
  - paragraph:
    - textbox "Whole plan, ε at most": "2"
  - paragraph:
    - textbox "CV wanted, %": "5"
    - button "Which ε gives this CV?"
  - group: Add to the plan
  - region "Statistics 2":
    - heading "Statistics 2" [level=2]
    - article "everybody":
      - heading "everybody" [level=3]
      - button "Remove everybody"
      - paragraph:
        - textbox "ε of everybody": "0.5"
        - slider "ε of everybody, from 0.01 to 10"
      - term: noise at 95 %, exact
      - definition: /± /
      - term: noise and sampling
      - img /Noise of everybody by ε/
    - article "share employed":
      - term: noise and sampling
      - definition: /± /
  - heading "The plan as TOML" [level=2]
  - textbox "The plan as TOML"
  - paragraph:
    - button "Save the plan"
    - status
  - paragraph:
    - button "Save and rehearse on simulated rows"
    - button "Save and go on to the release"
""",
    f"{TOWN}/survey": """
- main:
  - paragraph:
    - link "Edit the codebook"
  - region "Columns":
    - table "Columns":
      - rowgroup:
        - row "Column Kind and domain Asked of In the file":
          - columnheader "Column"
      - rowgroup:
        - row:
          - rowheader /age/
          - cell /integer/
""",
    f"{TOWN}/codebook": """
- main:
  - status: /3 columns, unit row; finished/
  - textbox "Codebook, as TOML"
  - paragraph:
    - button "Save and check"
    - button "Check without saving"
    - link "Back to the survey"
  - complementary "Words of a codebook"
""",
    f"{TOWN}/budget": """
- main:
  - img "1 of 5 is spent"
  - region "By release":
    - table "By release":
      - rowgroup:
        - row "Release Charged State Entry":
          - columnheader "Release"
      - rowgroup:
        - row:
          - rowheader "town-1"
          - cell "published"
  - paragraph:
    - button "Verify the ledger and its receipts"
    - link "Go on to the release"
""",
    f"{TOWN}/confirm": """
- main:
  - definition: ε 1
  - img "spent 1 of 5"
  - status: /This release is published/
""",
    f"{TOWN}/progress": """
- main:
  - status: /Published/
  - paragraph:
    - link "Open the report"
    - link "Files and receipt"
""",
    "/releases": """
- main:
  - region "town.ledger.db":
    - list:
      - listitem:
        - paragraph:
          - link "town-1"
        - paragraph:
          - link "Download town-1.html"
          - link "Download town-1.csv"
          - link "Download town-1.json"
        - group: Receipt
""",
}


@pytest.mark.parametrize("path", SNAPSHOTS)
def test_a_screen_reader_finds_names_and_roles(walker, path):  # covers W18
    walker.go(path)
    playwright.expect(walker.page.locator("body")).to_match_aria_snapshot(SNAPSHOTS[path])


def test_what_went_wrong_is_announced(walker):  # covers W18
    page = walker.page
    walker.go(TOWN)
    page.fill("#text", "nothing")
    page.wait_for_selector("#summary [role=alert]")
    playwright.expect(page.locator("#told")).to_contain_text("not valid TOML")
    with page.expect_navigation():
        page.click("text=Save the plan")
    playwright.expect(page.locator("main")).to_match_aria_snapshot("- alert: /not valid TOML/")


CONTRAST = """() => {
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  const seen = [];
  for (const e of document.querySelectorAll("p, a, dt, dd, th, td, button, label, summary, h1, h2, li, legend, code")) {
    if (!e.checkVisibility() || ![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) seen.push([e.className || e.tagName, e.innerText.slice(0, 30), ratio.toFixed(2)]);
  }
  return seen;
}"""


@pytest.mark.skipif("RETICENT_PICTURES" not in os.environ, reason="draws the pictures of docs/howto/desk.md")
def test_draw_the_pictures_of_the_guide(browser, tmp_path):
    """The demonstration survey, as a curator walks through it."""
    from reticent.lab.demo import demo_survey

    out = Path(os.environ["RETICENT_PICTURES"])
    demo_survey(tmp_path, rows=2000)
    text = (tmp_path / "plan.toml").read_text()
    counted = '"*", where = "age >= 18" }\nepsilon = "0.1"\n'
    assert counted in text
    (tmp_path / "town.toml").write_text(text.replace(counted, counted + 'expect = { value = "1500" }\n'))
    (tmp_path / "plan.toml").unlink()
    open_ledger(tmp_path)
    desk = start(tmp_path, pages=True)
    walker = Walker(browser, desk, color_scheme="light")
    page = walker.page
    walker.login()

    def draw(name: str, path: str = "", height: int = 700, width: int = 1100) -> None:
        if path:
            walker.go(path)
        page.set_viewport_size({"width": width, "height": height})
        page.screenshot(path=str(out / f"desk-{name}.png"))

    draw("plans", "/", 420)
    draw("survey", f"{TOWN}/survey")
    draw("codebook", f"{TOWN}/codebook", 620)
    draw("plan", f"{TOWN}?cv=5", 900)
    draw("narrow", f"{TOWN}?cv=5", 900, 400)
    page.click("text=Save and rehearse on simulated rows")
    page.wait_for_selector("text=Rehearsal on simulated rows")
    draw("rehearsal", "", 620)
    draw("budget", f"{TOWN}/budget", 460)
    page.goto(desk.origin + f"{TOWN}/missing")
    page.click("button.danger")
    page.wait_for_selector(".secret")
    draw("missingness")
    draw("release", f"{TOWN}/confirm", 670)
    page.click("button.go")
    page.wait_for_selector("#progress:not([data-poll])")
    draw("progress", "", 420)
    draw("releases", "/releases", 480)
    draw("report", "/releases/survey.ledger.db/demo-1", 620)
    walker.end()
    desk.stop()


def test_the_pictures_of_the_guide_are_there():
    guide = (Path(__file__).parents[2] / "docs/howto/desk.md").read_text(encoding="utf-8")
    folder = Path(__file__).parents[2] / "docs/howto"
    drawn = sorted(path.name for path in folder.glob("desk-*.png"))
    assert len(drawn) == 12 and all(name in guide for name in drawn)
    assert all((folder / name).stat().st_size < 200_000 for name in drawn)
