"""What each package offers is pinned: a name that users import is not lost or renamed by accident.

Where a change is meant, say so in CHANGELOG.md and renew the list: ``python -m tests.test_public_names``.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PINNED = Path(__file__).with_name("public_names.json")
NAMES: dict[str, list[str]] = json.loads(PINNED.read_text()) if PINNED.exists() else {}


def packages() -> dict[str, list[str]]:
    """The names in ``__all__`` of every package that has one."""
    files = [path for name in ("sandbox", "pipelines", "annotation", "train", "assets") for path in _inits(ROOT / name)]
    modules = [
        ".".join(("darkroom", *path.parent.relative_to(ROOT).parts)) for path in files if "__all__" in path.read_text()
    ]
    return {name: sorted(importlib.import_module(name).__all__) for name in sorted(modules)}


def _inits(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("__init__.py") if "_plugin" not in path.parts]


def test_every_package_offers_what_is_pinned() -> None:
    assert packages() == NAMES


@pytest.mark.parametrize("package", NAMES)
def test_every_name_that_is_offered_is_there(package: str) -> None:
    module = importlib.import_module(package)
    assert all(hasattr(module, name) for name in NAMES[package])


if __name__ == "__main__":
    PINNED.write_text(json.dumps(packages(), indent=1) + "\n")
