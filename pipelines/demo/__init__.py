"""The annex: embedded images, questions and the oracle that answers them. The product never imports it."""

import tomllib
from pathlib import Path
from typing import Any


def data_beside(module: str, name: str = "") -> dict[str, Any]:
    """Read the tables of a module (its ``__file__``), phrases and code to be written: ``crop.toml`` beside ``crop.py``.

    ``name``: of another file beside it.
    """
    path = Path(module)
    return tomllib.loads(path.with_name(f"{name or path.stem}.toml").read_text(encoding="utf-8"))
