"""What is put aside comes back: by ranges of the key, from memory and from a file that nobody can find."""

import os
from pathlib import Path

import numpy as np
import pytest

from reticent.engine.donors import shelf
from reticent.engine.donors.shelf import Room, Shelf
from reticent.errors import EngineError


def some_blocks(dice: np.random.Generator, key: str) -> list[dict[str, np.ndarray]]:
    """None to six blocks of none to fifty records, keys that come often or hardly twice, two types of numbers."""
    top = int(dice.choice([5, 1_000, 2**55]))
    return [
        {
            key: dice.integers(0, top, size).astype(np.int64 if top > 2**31 else np.int32),
            "a": dice.integers(-(2**62), 2**62, size),
            "b": dice.integers(0, 100, size).astype(np.int32),
        }
        for size in [0, *dice.integers(0, 51, dice.integers(0, 6))]
    ]


def records(columns: dict[str, np.ndarray]) -> list[tuple[int, ...]]:
    """As a set with repeats."""
    return sorted(zip(*(each.tolist() for each in columns.values()), strict=True))


@pytest.mark.parametrize("held", [0, 700, 2**28])
@pytest.mark.parametrize("step", [1, 4, 1_024])
@pytest.mark.parametrize("seed", range(6))
def test_a_range_holds_what_was_added_within_it(
    seed: int, step: int, held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Against a filter of everything: blocks in memory, on disk, and some here, some there."""
    monkeypatch.setattr(shelf, "HELD", held)
    monkeypatch.setattr(shelf, "STEP", step)
    dice = np.random.default_rng([seed, step])
    kept = Shelf(Room(tmp_path), "k")
    blocks = some_blocks(dice, "k")
    for block in blocks:
        kept.add(block)
    everything = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    ends = np.append(everything["k"], [0, 2**60])
    for _ in range(20):
        low, high = sorted(int(each) for each in dice.choice(ends, 2))
        inside = (everything["k"] >= low) & (everything["k"] <= high)
        meant = {name: each[inside] for name, each in everything.items()}
        assert records(kept.between(low, high)) == records(meant)
        assert sorted(kept.between(low, high, ["b"])["b"]) == sorted(meant["b"])
    for place, block in enumerate(blocks):
        assert records(kept.block(place)) == records(block)
    assert kept.names == ["k", "a", "b"] and kept.sizes == [len(block["a"]) for block in blocks]
    kept.close()


def test_without_a_key_blocks_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shelf, "HELD", 100)
    kept = Shelf(Room(tmp_path))
    for start in (0, 10, 20):
        kept.add({"a": np.arange(start, start + 10)[::-1]})
    assert [kept.block(place)["a"][0] for place in range(3)] == [9, 19, 29]
    with pytest.raises(ValueError, match="without a key"):
        kept.between(0, 5)


def test_what_is_on_disk_has_no_name_and_is_open_to_us_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """No entry in the folder while it is used; the mode of the file is the owner's, whatever the umask."""
    monkeypatch.setattr(shelf, "HELD", 0)
    before = os.umask(0)
    try:
        kept = Shelf(Room(tmp_path))
        kept.add({"a": np.arange(1_000)})
    finally:
        os.umask(before)
    assert kept._file is not None
    status = os.fstat(kept._file.fileno())
    assert list(tmp_path.iterdir()) == [] and status.st_nlink == 0 and status.st_mode & 0o777 == 0o600
    assert status.st_size == 8_000 and kept.block(0)["a"].tolist() == list(range(1_000))
    kept.close()
    assert kept.sizes == [] and list(tmp_path.iterdir()) == []


def test_memory_is_shared_by_all_shelves_of_a_room_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(shelf, "HELD", 1_000)
    room = Room(tmp_path)
    first, second = Shelf(room), Shelf(room)
    first.add({"a": np.arange(100)})
    second.add({"a": np.arange(100)})
    assert room.left == 200 and first._file is None and second._file is not None
    first.close()
    second.add({"a": np.arange(100)})
    assert room.left == 200
    nowhere = Shelf(Room(None))
    nowhere.add({"a": np.arange(10_000)})
    assert nowhere._file is None


def test_a_full_disk_and_a_lost_file_are_told_in_one_constant_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Neither how much was written nor what the system says: both may hang on the rows."""
    monkeypatch.setattr(shelf, "HELD", 0)

    def full(*_: object) -> int:
        raise OSError(28, "No space left for 4205 records")

    kept = Shelf(Room(tmp_path))
    kept.add({"a": np.arange(100)})
    assert kept._file is not None
    os.ftruncate(kept._file.fileno(), 300)
    with pytest.raises(EngineError) as short:
        kept.block(0)
    monkeypatch.setattr(shelf.os, "pwrite", full)
    with pytest.raises(EngineError) as told:
        kept.add({"a": np.arange(100)})
    gone = Shelf(Room(tmp_path / "gone"))
    with pytest.raises(EngineError) as missing:
        gone.add({"a": np.arange(100)})
    assert str(told.value) == str(short.value) == str(missing.value)
    assert "4205" not in str(told.value) and told.value.__cause__ is told.value.__context__ is None
