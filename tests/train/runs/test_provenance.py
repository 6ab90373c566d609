"""Which commit ran, as git knows it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from darkroom.train.runs.history import CodeVersion, code_version


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    root.mkdir()
    git(root, "init", "--quiet")
    (root / "file").write_text("one")
    git(root, "add", "file")
    git(root, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "one")
    return root


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True).stdout


def test_a_clean_checkout_is_its_commit(checkout: Path) -> None:
    version = code_version(checkout)
    assert version == CodeVersion(git(checkout, "rev-parse", "HEAD").strip(), dirty=False)
    assert version.in_words == version.commit[:12]


@pytest.mark.parametrize("file", ["file", "another"])
def test_changed_and_new_files_are_told(checkout: Path, file: str) -> None:
    (checkout / file).write_text("two")
    assert code_version(checkout).dirty
    assert code_version(checkout).in_words.endswith(", with uncommitted changes")


def test_a_folder_without_git_says_so(tmp_path: Path) -> None:
    version = code_version(tmp_path)
    assert version.commit is None
    assert "not a git repository" in version.in_words


def test_code_installed_inside_another_checkout_is_not_of_its_commit(checkout: Path) -> None:
    (checkout / "site-packages").mkdir()
    assert code_version(checkout / "site-packages").in_words.endswith("is no git checkout of its own")


def test_without_git_that_is_said(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert code_version(checkout) == CodeVersion(None, unknown="git is not installed")
