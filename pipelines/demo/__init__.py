"""The annex: embedded images, questions and the oracle that answers them. The product never imports it."""

import tomllib
from pathlib import Path
from typing import Any


def data_beside(module: str) -> dict[str, Any]:
    """The tables of a module, phrases and code to be written: ``crop.toml`` beside ``crop.py``, its ``__file__``."""
    return tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))
