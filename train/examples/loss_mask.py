"""The loss mask of a row, token by token, for the terminal (``darkroom inspect-mask``) and as a self-contained page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import typer
from markupsafe import Markup
from rich.console import Console
from rich.text import Text

from darkroom.pipelines.inspection.pages import data_url, html_page
from darkroom.pipelines.publishing.layouts.turns import Row
from darkroom.pipelines.publishing.rendering import render
from darkroom.pipelines.storage.media_validation import encode
from darkroom.sandbox.terminal import SafeConsole
from darkroom.train.examples.encoding import IGNORED, RowReader
from darkroom.train.runs import TrainError

Kind = Literal["trained", "not", "image"]
"""Kind of a token. ``image``: it stands for a part of an image."""
THUMBNAIL = 320
"""Longest side of an image on the page, in pixels."""
_HERE = Path(__file__).parent
_STYLES: dict[Kind, str] = {"trained": "bold green", "not": "dim", "image": "cyan"}


class Piece(NamedTuple):
    """The shortest run of tokens that decodes to text: one token, or the several of one character."""

    text: str
    ids: tuple[int, ...]
    kind: Kind


class Run(NamedTuple):
    """Pieces of one kind."""

    kind: Kind
    pieces: list[Piece]

    @property
    def text(self) -> str:
        if self.kind == "image":
            return f"<|image_pad|>×{len(self.pieces)}"
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class LossMask:
    """A row as ``model`` reads it."""

    row: Row
    reader: RowReader
    model: Path
    ids: Sequence[int]
    labels: Sequence[int]

    @property
    def n_trained(self) -> int:
        return sum(label != IGNORED for label in self.labels)

    @property
    def n_of_images(self) -> int:
        return list(self.ids).count(self.reader.processor.image_token_id)

    @property
    def runs(self) -> list[Run]:
        return [Run(kind, list(pieces)) for kind, pieces in groupby(_pieces(self), key=lambda piece: piece.kind)]


def mask_of(row: Row, reader: RowReader, model: Path) -> LossMask:
    batch = reader.read([row])
    return LossMask(reader.ablated(row), reader, model, batch["input_ids"][0].tolist(), batch["labels"][0].tolist())


def _pieces(mask: LossMask) -> Iterator[Piece]:
    decode, image = mask.reader.processor.tokenizer.decode, mask.reader.processor.image_token_id
    held: list[int] = []
    for token, label, following in zip(mask.ids, mask.labels, [*mask.labels[1:], None], strict=True):
        held.append(token)
        text, ends = decode(held), following is None or (following == IGNORED) != (label == IGNORED)
        if "\ufffd" not in text or ends:  # part of a character decodes to a replacement character
            kind: Kind = "image" if token == image else "not" if label == IGNORED else "trained"
            yield Piece(text, tuple(held), kind)
            held = []


def row_at(dataset: Sequence[Path], index: int) -> Row:
    """Read one row of dataset folders. Raises ``TrainError`` when there are not so many."""
    from darkroom.train.examples.datasets import open_dataset  # reads the environment, which ``guarded`` sets

    rows = open_dataset(*dataset)
    if not 0 <= index < len(rows):
        raise TrainError(f"no row {index}: {', '.join(map(str, dataset))} has rows 0 to {len(rows) - 1}")
    return cast(Row, rows[index])


def show(mask: LossMask, html: Path | None) -> None:
    if html is None:
        print_mask(mask, SafeConsole())
    else:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(page(mask))
        typer.echo(html.resolve())


def print_mask(mask: LossMask, console: Console) -> None:
    """Print trained text green, all else dim; without colours trained text stands in ⟦ ⟧."""
    coloured = console.is_terminal and not console.no_color
    text = Text()
    for run in mask.runs:
        marked = run.kind == "trained" and not coloured
        text.append(f"⟦{run.text}⟧" if marked else run.text, style=_STYLES[run.kind])
    console.print(_heading(mask), style="bold", highlight=False, soft_wrap=True)
    n_not = len(mask.ids) - mask.n_trained - mask.n_of_images
    trained = f"{mask.n_trained} trained ({mask.n_trained / len(mask.ids):.0%})"
    of_images = f"{mask.n_of_images} of {len(mask.row['images'] or [])} images"
    parts = (trained if coloured else f"⟦{trained}⟧", f"{n_not} not trained", of_images)
    styled = (Text(words, style) for words, style in zip(parts, _STYLES.values(), strict=True))
    console.print(Text(f"{len(mask.ids)} tokens: ") + Text(", ").join(styled), soft_wrap=True)
    console.print()
    console.print(text, soft_wrap=not coloured)


def page(mask: LossMask) -> str:
    """Render HTML: every token with its id, images at their tokens."""
    images = iter(mask.row["images"] or [])
    runs = [(run, _thumbnail(next(images)) if run.kind == "image" else "") for run in mask.runs]
    heading = _heading(mask)
    body = Markup(render("mask.html.jinja", _HERE, mask=mask, heading=heading, runs=runs))
    return html_page(body, title=heading, style=(_HERE / "mask.css").read_text())


def _heading(mask: LossMask) -> str:
    row, reader = mask.row, mask.reader
    heading = f"row {row['trajectory_id']} ({row['loss_policy']}, layout {reader.layout})"
    heading += f": {row['family']}, {len(row['rounds'])} rounds, {row['protocol']}; read for {mask.model.name}"
    return f"{heading}; observations trained" if reader.train_observations else heading


def _thumbnail(image: Any) -> str:
    thumbnail = image.convert("RGB")
    thumbnail.thumbnail((THUMBNAIL, THUMBNAIL))
    return data_url(encode(thumbnail, "PNG"))
