"""Families of trajectories, one file each: what to do to a sample, which prompt, which checks, how the oracle writes.

A recipe file defines ``recipe = Recipe(...)``. Every file in this folder is a family; so is every file in the folders
that the environment variable ``DARKROOM_RECIPES`` lists (separated as in ``PATH``), each beside its prompt.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

from pipelines.recipes.base import Recipe, RecipeFault, quotas

__all__ = ["Recipe", "RecipeFault", "load_recipes", "quotas"]


def load_recipes() -> dict[str, Recipe]:
    """Every recipe by its family. Raises ``RecipeFault`` when a file defines none or a family twice."""
    recipes: dict[str, Recipe] = {}
    for module in [*_bundled(), *_added()]:
        recipe = getattr(module, "recipe", None)
        if not isinstance(recipe, Recipe):
            raise RecipeFault(f"{module.__file__}: expected a module-level `recipe = Recipe(...)`, found {recipe!r}")
        if recipe.family in recipes:
            raise RecipeFault(f"{module.__file__}: the family {recipe.family!r} is defined twice")
        recipes[recipe.family] = recipe
    return recipes


def _bundled() -> list[ModuleType]:
    names = [found.name for found in pkgutil.iter_modules(__path__) if found.name != "base"]
    return [importlib.import_module(f"{__name__}.{name}") for name in sorted(names)]


def _added() -> list[ModuleType]:
    folders = [Path(folder) for folder in os.environ.get("DARKROOM_RECIPES", "").split(os.pathsep) if folder]
    return [_from_file(path) for folder in folders for path in _recipe_files(folder)]


def _recipe_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise RecipeFault(f"DARKROOM_RECIPES names {folder}, which is not a folder")
    return sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))


def _from_file(path: Path) -> ModuleType:
    name = f"darkroom_recipe_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RecipeFault(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
