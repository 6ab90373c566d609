"""What each package offers is pinned: a name that users import is not lost or renamed by accident.

Where a change is meant, say so in CHANGELOG.md and renew the list: ``python -m tests.test_public_names``.
"""

from __future__ import annotations

import ast
import importlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PINNED = Path(__file__).with_name("public_names.json")
NAMES: dict[str, list[str]] = json.loads(PINNED.read_text()) if PINNED.exists() else {}


def packages() -> dict[str, list[str]]:
    """The names that each package offers: those in ``__all__``, else what it imports as itself, and its own."""
    files = [path for name in ("sandbox", "pipelines", "annotation", "train", "assets") for path in _inits(ROOT / name)]
    offered = {".".join(("darkroom", *path.parent.relative_to(ROOT).parts)): _offered(path) for path in files}
    return {module: sorted(names) for module, names in sorted(offered.items()) if names}


def _offered(path: Path) -> list[str]:
    body = ast.parse(path.read_text()).body
    for statement in body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            return list(ast.literal_eval(statement.value))
    imports = [alias for statement in body if isinstance(statement, ast.ImportFrom) for alias in statement.names]
    offered = [alias.name for alias in imports if alias.asname == alias.name]
    tables = [ast.unparse(statement.target) for statement in body if isinstance(statement, ast.AnnAssign)]
    own = [statement.name for statement in body if isinstance(statement, ast.ClassDef | ast.FunctionDef)]
    return [*offered, *(name for name in (*tables, *own) if not name.startswith("_"))] if offered else []


def _inits(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("__init__.py") if "_plugin" not in path.parts]


def test_every_package_offers_what_is_pinned() -> None:
    assert packages() == NAMES


@pytest.mark.parametrize("package", NAMES)
def test_every_name_that_is_offered_is_there(package: str) -> None:
    module = importlib.import_module(package)
    assert all(hasattr(module, name) for name in NAMES[package])


@pytest.mark.parametrize("package", ["annotation", "assets", "pipelines", "sandbox", "train"])
def test_no_module_takes_the_place_of_a_name_of_its_package(package: str) -> None:
    """Once ``package/name.py`` is imported, ``package.name`` is the module, whatever the package defines."""
    for path in _inits(ROOT / package):
        name = ".".join(("darkroom", *path.parent.relative_to(ROOT).parts))
        body = ast.parse(path.read_text()).body
        imports = [part for part in body if isinstance(part, ast.ImportFrom)]
        own = {part.name for part in body if isinstance(part, ast.ClassDef | ast.FunctionDef)}
        taken = {alias.asname or alias.name: part.module for part in imports for alias in part.names}
        modules = {f"{name}.{file.stem}" for file in path.parent.glob("*.py")}
        modules |= {f"{name}.{file.parent.name}" for file in path.parent.glob("*/__init__.py")}
        assert not {f"{name}.{each}" for each in own} & modules
        for each, module in taken.items():  # from that very module, or itself a module
            assert f"{name}.{each}" not in modules or module in (name, f"{name}.{each}"), each


if __name__ == "__main__":
    PINNED.write_text(json.dumps(packages(), indent=1) + "\n")
