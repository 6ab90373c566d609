from pathlib import Path

import pytest

from darkroom.pipelines.generation.recipes import RecipeError, load_recipes
from darkroom.pipelines.storage.user_files import added_files, imported


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
