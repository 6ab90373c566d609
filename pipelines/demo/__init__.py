"""The annex: embedded images, questions and the oracle that answers them. The product never imports it."""

import tomllib
from pathlib import Path
from typing import Any


def data_beside(module: str, name: str = "") -> dict[str, Any]:
    """Read the tables beside a module (``__file__``): ``crop.toml`` beside ``crop.py``, or that of another ``name``."""
    path = Path(module)
    return tomllib.loads(path.with_name(f"{name or path.stem}.toml").read_text(encoding="utf-8"))
