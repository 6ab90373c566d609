from __future__ import annotations

import stat
from pathlib import Path

import pytest

from darkroom.pipelines.storage.atomic_write import replace_folder, whole_file, write_whole


@pytest.mark.parametrize("content", ["straße", "straße".encode()])
def test_text_and_bytes_are_written_into_a_new_folder(content: str | bytes, tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    write_whole(path, content)
    assert path.read_text(encoding="utf-8") == "straße"
    assert [one.name for one in path.parent.iterdir()] == ["file"]


def test_a_secret_is_its_owners_from_the_first_byte(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o644)
    write_whole(path, "new", mode=0o600)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)


def test_what_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud800")
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_a_file_appears_when_its_writer_ends(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with whole_file(path) as part:
        part.write_text("new")
        assert not path.exists()
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_writer_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def interrupted() -> None:
        with whole_file(tmp_path / "file") as part:
            part.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("exists", [True, False])
def test_a_folder_takes_the_place_of_the_one_before(tmp_path: Path, exists: bool) -> None:
    folder, part = tmp_path / "folder", tmp_path / "part"
    part.mkdir()
    (part / "new").touch()
    if exists:
        folder.mkdir()
        (folder / "old").touch()
    replace_folder(folder, part)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["folder", "folder/new"]
