"""A mask for the terminal, and as a page that needs nothing but itself."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined
from rich.console import Console
from rich.text import Text

from train.masks import Mask, Piece

THUMBNAIL = 320
"""Longest side of a picture on the page, in pixels."""
_TEMPLATE = Path(__file__).with_name("mask.html.jinja")
_STYLES = {"trained": "bold green", "not": "dim", "image": "cyan"}


class Run(NamedTuple):
    """Pieces of one kind: ``trained``, ``not``, ``image``."""

    kind: str
    pieces: list[Piece]

    @property
    def text(self) -> str:
        """What is read; tokens of an image by their number."""
        if self.kind == "image":
            return f"<|image_pad|>×{len(self.pieces)}"
        return "".join(piece.text for piece in self.pieces)


def print_mask(mask: Mask, console: Console) -> None:
    """Trained text green, all else dim; where there are no colours, trained text stands in ⟦ ⟧."""
    coloured = console.is_terminal and not console.no_color
    text = Text()
    for run in _runs(mask):
        marked = run.kind == "trained" and not coloured
        text.append(f"⟦{run.text}⟧" if marked else run.text, style=_STYLES[run.kind])
    console.print(_heading(mask), style="bold", highlight=False, soft_wrap=True)
    console.print(_legend(mask, coloured=coloured), soft_wrap=True)
    console.print()
    console.print(text, soft_wrap=not coloured)


def page(mask: Mask) -> str:
    """HTML: every token with its id, pictures where their tokens are."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    pictures = iter(mask.row["images"] or [])
    runs = [(run, _thumbnail(next(pictures)) if run.kind == "image" else "") for run in _runs(mask)]
    return environment.from_string(_TEMPLATE.read_text()).render(mask=mask, heading=_heading(mask), runs=runs)


def _runs(mask: Mask) -> Iterator[Run]:
    for kind, pieces in groupby(mask.pieces, key=_kind):
        yield Run(kind, list(pieces))


def _kind(piece: Piece) -> str:
    if piece.of_image:
        return "image"
    return "trained" if piece.trained else "not"


def _heading(mask: Mask) -> str:
    row, reader = mask.row, mask.reader
    said = f"row {row['trajectory_id']} ({row['loss_policy']}, layout {reader.layout})"
    said += f": {row['family']}, {len(row['rounds'])} rounds, {row['protocol']}; read for {mask.model.name}"
    return f"{said}; observations trained" if reader.train_observations else said


def _legend(mask: Mask, *, coloured: bool) -> Text:
    n_not = len(mask.ids) - mask.n_trained - mask.n_of_images
    trained = f"{mask.n_trained} trained ({mask.n_trained / len(mask.ids):.0%})"
    return Text.assemble(
        f"{len(mask.ids)} tokens: ",
        (trained if coloured else f"⟦{trained}⟧", _STYLES["trained"]),
        ", ",
        (f"{n_not} not trained", _STYLES["not"]),
        ", ",
        (f"{mask.n_of_images} of {len(mask.row['images'] or [])} images", _STYLES["image"]),
    )


def _thumbnail(image: Any) -> str:
    shown = image.convert("RGB")
    shown.thumbnail((THUMBNAIL, THUMBNAIL))
    buffer = io.BytesIO()
    shown.save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
