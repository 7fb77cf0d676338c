import errno
import os

import pytest

from spacql.errors import InputError
from spacql.files import new_file, new_folder, read_json, sha256, write_json


def fail_halfway(temporary):
    place = temporary / "a" if temporary.is_dir() else temporary
    place.write_text("half")
    return 1 // 0


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "file.txt"
    with new_file(path) as temporary:
        temporary.write_text("first")
        assert not path.exists()
    with pytest.raises(ZeroDivisionError), new_file(path) as temporary:
        fail_halfway(temporary)
    assert path.read_text() == "first"
    assert os.listdir(path.parent) == ["file.txt"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_full_disk_is_a_sentence_and_leaves_nothing(tmp_path):
    path = tmp_path / "file.txt"
    with pytest.raises(InputError, match=r"Cannot write .*No space left"), new_file(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert os.listdir(tmp_path) == []


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "folder"
    with pytest.raises(ZeroDivisionError), new_folder(path) as temporary:
        fail_halfway(temporary)
    assert os.listdir(tmp_path) == []
    with new_folder(path) as temporary:
        (temporary / "a").write_text("whole")
        assert not path.exists()
    assert (path / "a").read_text() == "whole"
    assert os.listdir(tmp_path) == ["folder"]


def test_a_folder_with_something_in_it_is_never_overwritten(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    with new_folder(path) as temporary:  # an empty one may be filled
        (temporary / "a").write_text("mine")
    with pytest.raises(InputError, match="exists already"), new_folder(path):
        pass
    assert (path / "a").read_text() == "mine"


def test_what_a_killed_attempt_left_is_cleared_and_a_living_ones_is_not(tmp_path):
    dead = tmp_path / ".folder.tmp-999999999-0a"
    alive, other = tmp_path / f".folder.tmp-{os.getppid()}-0a", tmp_path / ".folder.tmp-x"
    for leftover in (dead, alive, other):
        leftover.mkdir()
    with new_folder(tmp_path / "folder"):
        pass
    assert not dead.exists()
    assert alive.exists()
    assert other.exists()


def test_json_goes_there_and_back_and_damage_is_named(tmp_path):
    path = tmp_path / "x.json"
    write_json(path, {"a": [1, 2.5, None]})
    assert read_json(path) == {"a": [1, 2.5, None]}
    path.write_text("{")
    with pytest.raises(InputError, match="not valid JSON"):
        read_json(path)
    with pytest.raises(InputError, match="no file"):
        read_json(tmp_path / "none.json")


def test_the_checksum_is_sha256(tmp_path):
    (tmp_path / "x").write_bytes(b"abc")
    assert sha256(tmp_path / "x").startswith("ba7816bf8f01cfea414140de5dae2223")
