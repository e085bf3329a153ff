"""What a party keeps on its disk."""

import os
import stat

import pytest

from vfedsec.engines.folder_memory import FolderMemory

NAME = "bank with shop\nfrom data/people.csv"


@pytest.fixture
def warnings():
    return []


@pytest.fixture
def memory(tmp_path, warnings):
    return FolderMemory(tmp_path / "kept", "people.csv", warnings.append)


def test_what_is_kept_comes_back(memory, warnings):
    memory.save(NAME, b"first")
    memory.save(NAME, b"second")
    memory.save("other", b"third")
    assert (memory.load(NAME), memory.load("other"), memory.load("none")) == (b"second", b"third", None)
    assert not warnings


def test_tables_are_remembered_side_by_side(tmp_path, warnings):
    memories = {table: FolderMemory(tmp_path, table, warnings.append) for table in ("train.csv", "predict.csv")}
    for table, memory in memories.items():
        memory.save(NAME, table.encode())
    assert {table: memory.load(NAME) for table, memory in memories.items()} == {
        "train.csv": b"train.csv",
        "predict.csv": b"predict.csv",
    }


def test_nothing_is_made_before_there_is_something_to_keep(memory, tmp_path, warnings):
    assert memory.load(NAME) is None
    assert list(tmp_path.iterdir()) == []
    assert not warnings


def test_folder_and_files_are_for_their_owner_alone(memory, tmp_path):
    before = os.umask(0)
    try:
        memory.save(NAME, b"secret")
    finally:
        os.umask(before)
    (file,) = (tmp_path / "kept").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_name_says_nothing_and_leads_nowhere_else(memory, tmp_path):
    for name in (NAME, "../../escape", "/etc/passwd", "a" * 5000, "\0"):
        memory.save(name, b"x")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 5
    assert all(path.parent == tmp_path / "kept" and "bank" not in path.name for path in files)


def test_a_folder_that_cannot_be_made_is_told_and_nothing_else(tmp_path, warnings):
    (tmp_path / "file").write_text("")
    memory = FolderMemory(tmp_path / "file" / "kept", "people.csv", warnings.append)
    memory.save(NAME, b"x")
    assert memory.load(NAME) is None
    (warning,) = warnings
    assert warning.startswith("the alignment cannot be kept in ")
    assert warning.endswith(": Not a directory; the next run aligns again")


def test_a_full_disk_is_told_and_leaves_what_was_kept(memory, warnings, tmp_path, monkeypatch):
    memory.save(NAME, b"first")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    memory.save(NAME, b"second")
    assert memory.load(NAME) == b"first"
    assert len(list((tmp_path / "kept").iterdir())) == 1
    assert "No space left on device" in warnings[0]


def test_what_cannot_be_read_is_told_and_counts_as_nothing(memory, tmp_path, warnings):
    memory.save(NAME, b"x")
    (file,) = (tmp_path / "kept").iterdir()
    file.unlink()
    file.mkdir()
    assert memory.load(NAME) is None
    assert "cannot be read: Not a regular file" in warnings[0]


def test_what_was_not_finished_leaves_nothing_behind(memory, tmp_path, monkeypatch):
    def interrupted(_handle):
        raise KeyboardInterrupt

    memory.save(NAME, b"first")
    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        memory.save(NAME, b"second")
    assert len(list((tmp_path / "kept").iterdir())) == 1
    assert memory.load(NAME) == b"first"


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_is_not_waited_for(memory, tmp_path, warnings, make):
    memory.save(NAME, b"kept")
    [path] = (tmp_path / "kept").iterdir()
    path.unlink()
    make(path)
    assert memory.load(NAME) is None
    assert "cannot be read: Not a regular file" in warnings[0]
    memory.save(NAME, b"again")
    assert memory.load(NAME) == b"again"


def test_warnings_reach_the_owner(memory, warnings):
    memory.warn("damaged")
    assert warnings == ["damaged"]
