"""The page stands alone, says the same every time, and says no more than the release does."""

import re
import sys
from html.parser import HTMLParser

import pytest

from reticent.release.release import Release
from reticent.report.page import page
from reticent.report.words import BANNER
from tests.report import documents
from tests.report.documents import answer, estimate, release

OUTSIDE = re.compile(
    r"""(?:src|href|action|data|poster)\s*=\s*["']?(?!#)[a-z+.-]*:?//|url\((?!#)|@import""", re.IGNORECASE
)
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "=cmd|' /C calc'!A0",
    "{{ 7 * 191 }}",
    "{% include 'page.css' %}",
    "' + datum.value + '",
    "a' ; DROP, \\u003cscript\\u003e ]]>",
    "\u202egnp.exe\x1b[31m",
    "javascript:alert(1)",
)


class Tags(HTMLParser):
    """Every element of a page, every attribute, and the text that is not style."""

    def __init__(self, made: bytes) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(made.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def text_of(made: Release) -> str:
    return " ".join(Tags(page(made)).text.split())


@pytest.fixture
def no_drawing(monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)


MADE = {
    "plain": documents.release,
    "rehearsal": documents.rehearsal,
    "bare": documents.bare,
    "huge": lambda: documents.huge(12),
}


@pytest.mark.parametrize("kind", MADE)
def test_same_release_same_bytes(kind):
    """Also when it was read back from its file, where keys come in another order."""
    made = MADE[kind]()
    assert page(made) == page(made) == page(documents.read_back(made))


@pytest.mark.parametrize("kind", MADE)
def test_nothing_is_loaded_or_run(kind):
    """No script, no handler, no address outside; and a policy that would stop one."""
    made = page(MADE[kind]())
    tags = Tags(made)
    assert not OUTSIDE.search(made.decode())
    assert not {"script", "iframe", "object", "embed", "link", "foreignobject", "image", "a"} & set(
        tags.names
    )
    assert not [name for name, _ in tags.attributes if name.startswith("on")]
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'; img-src data:") in tags.attributes


def hostile_release(name: str) -> Release:
    """One hostile name in every place where a plan or a codebook can put one."""
    cells = [estimate(3, 1, {name: name, "age": name}), estimate(4, 1, {name: "b", "age": "c"})]
    asked = [answer(name, [estimate(9)], name), answer(f"{name}2", cells, name, table=[name, "age"])]
    return release(title=name, id=name, dataset=name, statistics=asked, protects={"unit": name, "at_most": 3})


def formatted(made: Release) -> bytes:
    """The naive twin: a page by str.format."""
    return "<h1>{title}</h1><p>{id}</p>".format(**made.document).encode()


def escapes(draw, name: str) -> bool:
    """Whether a hostile name leaves the page's elements and attributes as a harmless one does."""
    hostile, harmless = Tags(draw(hostile_release(name))), Tags(draw(hostile_release("plain")))
    return (hostile.names, [key for key, _ in hostile.attributes]) == (
        harmless.names,
        [key for key, _ in harmless.attributes],
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_text(name, no_drawing):
    assert escapes(page, name)
    assert b"\x1b" not in page(hostile_release(name)) and "\u202e" not in page(hostile_release(name)).decode()
    assert "{{ 7 * 191 }}" in text_of(hostile_release(HOSTILE[3]))


def test_naive_twin_is_caught():
    assert not escapes(formatted, HOSTILE[0])


@pytest.mark.parametrize("name", HOSTILE[:2])
def test_names_stay_text_in_drawings(name):
    """The drawing escapes them too: no element is in the page that a harmless name does not bring."""
    tags = Tags(page(hostile_release(name)))
    lines_of_text = {"tspan"}  # a long name is broken into lines
    assert set(tags.names) - lines_of_text <= set(Tags(page(hostile_release("plain"))).names)
    assert not [key for key, _ in tags.attributes if key.startswith("on")]


def test_half_characters_do_not_stop_the_page():
    assert "\N{REPLACEMENT CHARACTER}" in page(release(title="half \ud800")).decode()


def test_a_rehearsal_says_so_and_promises_nothing():
    made = text_of(documents.rehearsal())
    assert made.count(BANNER) >= 2  # on the page and in every picture
    assert "promises nothing" in made and "Nothing was charged" in made
    for word in ("How to cite", "methodology section", "percent sure", "In the language of the field"):
        assert word not in made
    assert BANNER not in text_of(release())


@pytest.mark.parametrize("published", [None, "true", 1, False])
def test_only_a_plain_true_is_a_release(published):
    assert BANNER in text_of(release(published=published))


def test_nulls_are_drawn_as_nothing():
    made = text_of(documents.bare())
    assert BANNER not in made and "no receipt" in made and "no formal guarantee" in made
    assert "None" not in made


def test_without_the_drawing_part(no_drawing):
    """The page comes without charts, says how to get them, and has all its numbers."""
    made = page(release())
    assert b"<svg" not in made and "pip install 'reticent[report]'" in Tags(made).text
    assert "42,399\N{NO-BREAK SPACE}to 44,268" in Tags(made).text


def test_ids_are_unique():
    """Several drawings share one page; what one refers to must not lie in another."""
    ids = [value for name, value in Tags(page(release())).attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_a_huge_table_scrolls_and_is_whole(no_drawing):
    made = page(documents.huge(50)).decode()
    assert made.count("<data ") == 2500 and 'class="scroll long"' in made


def test_columns_that_are_asked_about_are_named_as_the_codebook_labels_them():
    labels = {"pay": {"label": "Income, <dollars>"}, "sex": {"label": "Sex", "levels": {"m": "Male"}}}
    text = page(release(labels=labels)).decode()
    assert "<code>pay</code> Income, &lt;dollars&gt;; <code>sex</code> Sex (m: Male)." in text
    assert "Names in it" not in page(release()).decode()
