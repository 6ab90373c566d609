"""What a session left behind is removed, whatever it is."""

import os
from pathlib import Path

from sandbox.folders import remove_tree


def test_a_tree_deeper_than_the_stack_and_than_any_path_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "session"
    top.mkdir()
    descriptor = os.open(top, os.O_RDONLY)
    for level in range(3000):
        os.mkdir("deep", dir_fd=descriptor)
        below = os.open("deep", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
        if level % 100 == 0:
            os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)
    remove_tree(str(top))
    assert not top.exists()


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("x")
    top = tmp_path / "session"
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "b" / "link").symlink_to(tmp_path / "kept", target_is_directory=True)
    (top / "a" / ".removed-0").mkdir()
    (top / ".removed-0").mkdir()
    os.mkfifo(top / "a" / "pipe")
    remove_tree(str(top))
    assert not top.exists()
    assert (tmp_path / "kept" / "file").read_text() == "x"


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    remove_tree(str(tmp_path / "gone"))
