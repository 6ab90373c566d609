"""The papers' SFT recipes, as YAML: ``python -m train.sft --recipe thyme``. Every number has its source beside it."""

from __future__ import annotations

from pathlib import Path

from train.faults import TrainFault

_FOLDER = Path(__file__).parent


def recipe_names() -> list[str]:
    """The recipes that come along."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def recipe_path(name: str) -> Path:
    """The file of a recipe. Raises ``TrainFault`` for a name that is not known."""
    if name not in recipe_names():
        raise TrainFault(f"--recipe is one of {', '.join(recipe_names())}; found {name!r}; a file goes with --config")
    return _FOLDER / f"{name}.yaml"
