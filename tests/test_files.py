"""Files are there whole or not at all, and none is replaced."""

import errno
import os
import stat

import pytest

from reticent import files
from reticent.errors import PlanError, ResourceError


def modes(folder):
    return {each.name: stat.S_IMODE(each.lstat().st_mode) for each in folder.iterdir()}


@pytest.mark.parametrize("mask", [0, 0o077, 0o777])
def test_modes_do_not_depend_on_the_umask(tmp_path, mask):
    # covers B114
    before = os.umask(mask)
    try:
        files.write_new(tmp_path / "private", b"x", private=True)
        files.write_new(tmp_path / "published", b"x", private=False)
    finally:
        os.umask(before)
    assert modes(tmp_path) == {"private": 0o600, "published": 0o644}


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 10_000])
def test_the_bytes_arrive(tmp_path, data):
    files.write_new(tmp_path / "a", data, private=False)
    assert (tmp_path / "a").read_bytes() == data and files.holds(tmp_path / "a", data)
    assert not files.holds(tmp_path / "a", data + b"x")


def existing(path):
    path.write_bytes(b"old")


def folder(path):
    path.mkdir()


def link(path):
    path.symlink_to(path.with_name("target"))


def dangling(path):
    path.with_name("target").write_bytes(b"old")
    path.symlink_to(path.with_name("target"))


@pytest.mark.parametrize("prepare", [existing, folder, link, dangling])
def test_a_name_that_is_taken_is_refused_and_untouched(tmp_path, prepare):
    """Seen before the charge by `check_new`, and again at the moment of naming."""
    # covers B106
    path = tmp_path / "out.json"
    prepare(path)
    before = modes(tmp_path)
    for attempt in (files.check_new, lambda path: files.write_new(path, b"new", private=False)):
        with pytest.raises(PlanError, match=r"out: out.json exists already"):
            attempt(path)
    assert modes(tmp_path) == before and not files.holds(path, b"new")
    assert not path.with_name("target").exists() or path.with_name("target").read_bytes() == b"old"


def test_renaming_would_have_replaced(tmp_path):
    """The naive twin: write, then rename."""
    # covers B106
    (tmp_path / "out").write_bytes(b"old")
    (tmp_path / "temporary").write_bytes(b"new")
    os.rename(tmp_path / "temporary", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"new"


@pytest.mark.parametrize("name", ["no/out.json", "file/out.json", "x" * 300])
def test_a_place_that_cannot_be_written_is_refused(tmp_path, name):
    # covers B106
    (tmp_path / "file").write_bytes(b"")
    for attempt in (files.check_new, lambda path: files.write_new(path, b"new", private=False)):
        with pytest.raises(PlanError) as refused:
            attempt(tmp_path / name)
        assert str(tmp_path) not in str(refused.value)


def test_a_folder_without_the_right_is_refused_before_the_charge(tmp_path, monkeypatch):
    # covers B106
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PlanError, match="may not be written"):
        files.check_new(tmp_path / "out.json")


@pytest.mark.parametrize("call", ["write", "fchmod", "fsync", "link"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS, errno.EFBIG])
def test_a_full_or_failing_disk_leaves_nothing(tmp_path, monkeypatch, call, code):
    """Status 4, no half file, no temporary name, no path in the message."""
    # covers B109 B110

    def fail(*_given, **_named):
        raise OSError(code, os.strerror(code), "/some/where")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(ResourceError) as told:
        files.write_new(tmp_path / "out.json", b"new", private=False)
    assert told.value.status == 4 and "where" not in str(told.value)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_writing_in_small_pieces(tmp_path, monkeypatch):
    """A disk may take less than it is given."""
    plain = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: plain(descriptor, bytes(data[:7])))
    files.write_new(tmp_path / "a", b"0123456789" * 10, private=True)
    assert (tmp_path / "a").read_bytes() == b"0123456789" * 10


def test_flushed_before_it_is_named(tmp_path, monkeypatch):
    """The order of calls: write, flush the file, name it, flush the folder."""
    # covers L02
    calls = []
    for name in ("write", "fsync", "link", "unlink"):
        plain = getattr(os, name)
        monkeypatch.setattr(
            os,
            name,
            lambda *given, name=name, plain=plain, **named: (calls.append(name), plain(*given, **named))[1],
        )
    files.write_new(tmp_path / "a", b"x", private=False)
    assert calls == ["write", "fsync", "link", "unlink", "fsync"]
