from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pipelines.whole import write_whole


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
