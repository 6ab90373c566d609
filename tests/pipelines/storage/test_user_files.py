import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from darkroom.pipelines.generation.recipes import RecipeError, load_recipes
from darkroom.pipelines.storage.user_files import added_files, imported, loaded


class Wrong(Exception):
    pass


def test_files_come_in_order_without_those_that_are_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.py", "a.py", "_c.py", "d.md"):
        (tmp_path / name).write_text("")
    monkeypatch.setenv("MINE", f"{tmp_path}:")
    assert [path.name for path in added_files("MINE", Wrong)] == ["a.py", "b.py"]


def test_files_of_one_name_are_two_modules(tmp_path: Path) -> None:
    files = [tmp_path / folder / "same.py" for folder in "ab"]
    for file in files:
        file.parent.mkdir()
        file.write_text(f"value = {file.parent.name!r}")
    assert [imported(file, Wrong).value for file in files] == ["a", "b"]


def test_a_file_that_fails_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("x = 1\n\nx / 0\n")
    with pytest.raises(Wrong, match=r"late\.py, line 3, cannot be imported: ZeroDivisionError: division by zero"):
        imported(tmp_path / "late.py", Wrong)


def test_a_recipe_that_fails_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARKROOM_RECIPES", str(tmp_path))
    (tmp_path / "late.py").write_text("import nothing_of_this_name\n")
    with pytest.raises(RecipeError, match=r"late\.py, line 1, cannot be imported: ModuleNotFoundError: No module"):
        load_recipes()


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("from pipelines.verification.checks.base import check", "darkroom.pipelines"),
        ("import train.rl.methods.base", "darkroom.train"),
        ("from sandbox import SandboxPool", "darkroom.sandbox"),
    ],
)
def test_the_former_names_of_the_packages_are_answered_with_the_present_ones(
    tmp_path: Path, line: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if not (Path(path) / "darkroom").is_dir()])
    (tmp_path / "own.py").write_text(f"{line}\n")
    with pytest.raises(Wrong, match=rf"own\.py, line 1, .*imported below its name, as in `{named}`$"):
        imported(tmp_path / "own.py", Wrong)


def test_a_package_of_the_users_own_with_a_former_name_is_answered_in_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sandbox").mkdir()
    (tmp_path / "sandbox" / "__init__.py").write_text("mine = True\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "own.py").write_text("from sandbox import mine\nfrom sandbox import SandboxPool\n")
    with pytest.raises(Wrong, match=r"own\.py, line 2, .*`darkroom\.sandbox`$"):
        imported(tmp_path / "own.py", Wrong)
    del sys.modules["sandbox"]


def test_an_entry_point_that_cannot_be_imported_is_one_line() -> None:
    entry = EntryPoint("streets", "nothing_of_this_name:Source", "darkroom.sources")
    with pytest.raises(Wrong, match=r"^streets \(nothing_of_this_name:Source\) cannot be imported: ModuleNotFound"):
        loaded(entry, Wrong)
