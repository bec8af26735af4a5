"""The coverage report counts what it says, and the catalogue of bad input is mostly covered."""

from tests.catalogue import ATTACKS, INPUTS, LEDGER, LISTED, RULES, covered, expand, report


def test_the_lists_are_whole():
    assert list(ATTACKS) == [f"T{n:02d}" for n in range(1, 33)]
    assert list(LEDGER) == [f"L{n:02d}" for n in range(1, 19)]
    assert list(RULES) == [f"R{n:02d}" for n in range(1, 17)]
    assert list(INPUTS) == [f"B{n:03d}" for n in range(1, 123)]


def test_ranges_are_understood():
    assert expand("B001-B003 T05, L18") == ["B001", "B002", "B003", "T05", "L18"]


def test_comments_are_found_and_words_are_not(tmp_path):
    (tmp_path / "test_x.py").write_text(
        "x = 1  # covers B001-B003 T05\n# covers: L01\n# the least that covers\ny = '# covers B099'\n"
    )
    assert [each.entry for each in covered(tmp_path)] == ["B001", "B002", "B003", "T05", "L01"]
    assert "B004" in report(covered(tmp_path))


def test_comments_name_only_what_is_listed():
    """W and S, of the web page and the supply chain, have lists of their own later."""
    unknown = {e.entry: e.place for e in covered() if e.entry not in LISTED and e.entry[0] not in "WS"}
    assert not unknown


def test_at_least_eighty_bad_inputs_have_a_test():
    assert len({each.entry for each in covered()} & set(INPUTS)) >= 80


def test_the_report_lists_what_is_open():
    text = report(covered())
    assert "bad inputs: " in text
    for entry in set(LISTED) - {each.entry for each in covered()}:
        assert f"open  {entry} " in text
