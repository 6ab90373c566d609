"""The loss mask of a row, token by token, for the terminal and as a self-contained HTML page.

``darkroom inspect-mask`` prints a row as the model reads it: trained text in green, everything else dim, image tokens
counted.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import typer
from jinja2 import Environment, StrictUndefined
from rich.console import Console
from rich.text import Text

from pipelines.publishing.html_page import data_url
from pipelines.publishing.layouts.turns import Row
from train.examples.encoding import IGNORED, RowReader
from train.runs import TrainError

_PADS = re.compile(r"(?:<\|image_pad\|>)+")
_PAD_LENGTH = len("<|image_pad|>")


class Segment(NamedTuple):
    """A run of tokens that are all trained or all not; ``<|image_pad|>×16`` stands for sixteen image tokens."""

    text: str
    trained: bool


class Piece(NamedTuple):
    """The shortest run of tokens that decodes to text: one token, or the several of one character."""

    text: str
    ids: tuple[int, ...]
    trained: bool
    of_image: bool


@dataclass(frozen=True, slots=True)
class LossMask:
    """A row as it is read for ``model``."""

    row: Row
    reader: RowReader
    model: Path
    ids: Sequence[int]
    labels: Sequence[int]

    @property
    def n_trained(self) -> int:
        """Tokens in the loss."""
        return sum(label != IGNORED for label in self.labels)

    @property
    def n_of_images(self) -> int:
        """Tokens that stand for images."""
        return list(self.ids).count(self.reader.processor.image_token_id)

    @property
    def pieces(self) -> list[Piece]:
        """All tokens, in order."""
        return list(_pieces(self))


def mask_of(row: Row, reader: RowReader, model: Path) -> LossMask:
    """The row with its tokens and labels."""
    batch = reader.read([row])
    return LossMask(row, reader, model, batch["input_ids"][0].tolist(), batch["labels"][0].tolist())


def inspect_mask(row: Row, reader: RowReader) -> list[Segment]:
    """The row as segments of tokens, in order."""
    batch = reader.read([row])
    return segments(reader.processor.tokenizer, batch["input_ids"][0].tolist(), batch["labels"][0].tolist())


def segments(tokenizer: Any, ids: list[int], labels: list[int]) -> list[Segment]:
    """Tokens grouped by whether they have a label."""
    runs = groupby(zip(ids, labels, strict=True), key=lambda pair: pair[1] != IGNORED)
    decoded = [(tokenizer.decode([token for token, _ in run]), trained) for trained, run in runs]
    return [Segment(_PADS.sub(lambda pads: f"<|image_pad|>×{len(pads[0]) // _PAD_LENGTH}", t), on) for t, on in decoded]


def _pieces(mask: LossMask) -> Iterator[Piece]:
    decode, image = mask.reader.processor.tokenizer.decode, mask.reader.processor.image_token_id
    held: list[int] = []
    for token, label, following in zip(mask.ids, mask.labels, [*mask.labels[1:], None], strict=True):
        held.append(token)
        text, ends = decode(held), following is None or (following == IGNORED) != (label == IGNORED)
        if "\ufffd" not in text or ends:  # part of a character decodes to a replacement character
            yield Piece(text, tuple(held), label != IGNORED, token == image)
            held = []


def row_at(dataset: Sequence[Path], index: int) -> Row:
    """One row of dataset folders. Raises ``TrainError`` when there are not so many."""
    from train.examples.datasets import open_dataset

    rows = open_dataset(*dataset)
    if not 0 <= index < len(rows):
        raise TrainError(f"no row {index}: {', '.join(map(str, dataset))} has rows 0 to {len(rows) - 1}")
    row: Row = rows[index]
    return row


def show(mask: LossMask, html: Path | None) -> None:
    """Prints a mask, or writes it as a page."""
    from rich.console import Console

    if html is None:
        print_mask(mask, Console())
    else:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(page(mask))
        typer.echo(html.resolve())


THUMBNAIL = 320
"""Longest side of an image on the page, in pixels."""
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


def print_mask(mask: LossMask, console: Console) -> None:
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


def page(mask: LossMask) -> str:
    """HTML: every token with its id, images at their tokens."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    images = iter(mask.row["images"] or [])
    runs = [(run, _thumbnail(next(images)) if run.kind == "image" else "") for run in _runs(mask)]
    return environment.from_string(_TEMPLATE.read_text()).render(mask=mask, heading=_heading(mask), runs=runs)


def _runs(mask: LossMask) -> Iterator[Run]:
    for kind, pieces in groupby(mask.pieces, key=_kind):
        yield Run(kind, list(pieces))


def _kind(piece: Piece) -> str:
    if piece.of_image:
        return "image"
    return "trained" if piece.trained else "not"


def _heading(mask: LossMask) -> str:
    row, reader = mask.row, mask.reader
    heading = f"row {row['trajectory_id']} ({row['loss_policy']}, layout {reader.layout})"
    heading += f": {row['family']}, {len(row['rounds'])} rounds, {row['protocol']}; read for {mask.model.name}"
    return f"{heading}; observations trained" if reader.train_observations else heading


def _legend(mask: LossMask, *, coloured: bool) -> Text:
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
    thumbnail = image.convert("RGB")
    thumbnail.thumbnail((THUMBNAIL, THUMBNAIL))
    buffer = io.BytesIO()
    thumbnail.save(buffer, "PNG")
    return data_url(buffer.getvalue())
