"""The annex: embedded images, questions and the oracle that answers them. The product never imports it.

Its texts are tables beside the modules, with sentences in many forms: ``"It [leans|tilts] [to the left|leftwards]."``
stands for four. An alternative may be empty. Alternatives do not nest. Slots (``{label}``) stay as they are.

    says = data_beside(__file__)
    some_form(says["seen"], random)             # one form of one of the texts, each text as likely as any other
    one_form("[So|Then] I look.", random)
"""

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

_CHOICE = re.compile(r"\[([^\[\]]*\|[^\[\]]*)\]")
_STEP = 7919
"""A prime that divides no number of forms here."""


def data_beside(module: str, name: str = "") -> dict[str, Any]:
    """Read the tables beside a module (``__file__``): ``crop.toml`` beside ``crop.py``, or that of another ``name``."""
    path = Path(module)
    return tomllib.loads(path.with_name(f"{name or path.stem}.toml").read_text(encoding="utf-8"))


def nth_form(texts: Sequence[str], n: int) -> str:
    """One form of all: another one for every ``n`` below their number, and neighbours far apart."""
    forms = [form for text in texts for form in _forms(text)]
    return forms[n * _STEP % len(forms)]


def some_form(texts: Sequence[str], rng: Random) -> str:
    """A form of one of the texts: one with many forms is not more likely than the others."""
    return one_form(rng.choice(texts), rng)


def one_form(text: str, rng: Random) -> str:
    return rng.choice(_forms(text))


@cache
def _forms(text: str) -> list[str]:
    """All forms; the first alternatives change fastest."""
    parts = [piece.split("|") if n % 2 else [piece] for n, piece in enumerate(_CHOICE.split(text))]
    forms = ("".join(reversed(words)) for words in product(*reversed(parts)))
    return [re.sub(r" +(?=[ ,.;:])", "", form).strip() for form in forms]
