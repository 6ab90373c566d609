"""Text of cards, READMEs and pages: Jinja templates filled with facts, and charts of characters."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

HERE = Path(__file__).parent


def render(template: str, folder: Path = HERE, /, **facts: Any) -> str:
    """The text of ``template`` (``layouts/readmes/readme.md.jinja``) of ``folder``, without its last line end. Raises
    ``jinja2.UndefinedError`` for a fact that is not given."""
    return templates(folder).get_template(template).render(**facts)


@cache
def templates(folder: Path) -> jinja2.Environment:
    """The templates of a folder, compiled once. Texts are escaped in those of HTML and XML (``.html.jinja``) only."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=jinja2.select_autoescape(["html.jinja", "xml.jinja"], default=False),
    )


_BLOCKS = "▁▂▃▄▅▆▇█"


def text_bars(counts: Mapping[str, int], *, width: int = 24, shares: bool = False) -> str:
    """A bar per label (padded by the caller) in a Markdown code block; ``shares``: with the share of the largest.

    >>> print(text_bars({"a": 2, "b": 1}, width=4))
    ```
    a ████ 2
    b ██   1
    ```
    """
    largest = max(counts.values(), default=0) or 1
    lines = [
        f"{label} {'█' * round(width * n / largest):<{width}} {n:,}" + (f" ({n / largest:.0%})" if shares else "")
        for label, n in counts.items()
    ]
    return "\n".join(["```", *lines, "```"])


def sparkline(values: Sequence[float], *, scale: Sequence[float] | None = None, width: int | None = None) -> str:
    """The course of a series in a word, ``█▅▃▂▁``: at most ``width`` values, on the range of ``scale`` or its own."""
    if not values:
        return ""
    low, high = min(scale or values), max(scale or values)
    span = (high - low) or 1.0
    stride = max(1, -(-len(values) // width)) if width else 1
    return "".join(_BLOCKS[round((value - low) / span * (len(_BLOCKS) - 1))] for value in values[::stride])


def columns(counts: Mapping[int, int], top: int) -> str:
    """A column for every count from 0 to ``top``; a value that occurs at all is never blank."""
    highest = max(counts.values(), default=0) or 1
    blocks = f" {_BLOCKS}"
    heights = [counts.get(n, 0) for n in range(top + 1)]
    return "".join(blocks[max(bool(n), round(n / highest * (len(blocks) - 1)))] for n in heights)
