"""`reticent report` draws a release again from its JSON alone."""

import pytest

from reticent.cli import main
from tests.report.documents import release


def run(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["reticent", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code)


@pytest.fixture
def published(tmp_path):
    path = tmp_path / "town-1-a.json"
    path.write_bytes(release().to_bytes())
    return path


def test_it_draws_charts_a_page_and_a_workbook(monkeypatch, published, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    kinds = ("--as", "png", "--as", "html", "--as", "xlsx")
    assert run(monkeypatch, "report", str(published), "--out", str(out), *kinds) == 0
    made = {path.name: path.read_bytes()[:4] for path in out.iterdir()}
    assert made.pop("town-1-a.html").lower() == b"<!do"
    assert made.pop("town-1-a.xlsx") == b"PK\x03\x04"
    assert made and all(head == b"\x89PNG" for head in made.values())


def test_it_never_overwrites_and_says_what_it_cannot_read(monkeypatch, published, tmp_path, capsys):
    assert run(monkeypatch, "report", str(published), "--out", str(tmp_path), "--as", "xlsx") == 0
    assert run(monkeypatch, "report", str(published), "--out", str(tmp_path), "--as", "xlsx") == 2
    (tmp_path / "other.json").write_text("[1, 2")
    assert run(monkeypatch, "report", str(tmp_path / "other.json"), "--out", str(tmp_path)) == 2
    assert run(monkeypatch, "report", str(tmp_path / "none.json"), "--out", str(tmp_path)) == 2
    assert run(monkeypatch, "report", str(published), "--as", "docx") == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4 and all(line.startswith("error: ") for line in lines)
