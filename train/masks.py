"""What is trained of a row, seen token by token.

    python -m train.masks data/exports/sft --model data/models/tiny --row 3

prints the row as the model reads it: trained text in green, everything else dim.
"""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from pipelines.layouts.turns import Row
from train.conversations import Layout
from train.faults import TrainFault
from train.program import guarded
from train.reading import IGNORED, Reader, open_reader

_PADS = re.compile(r"(?:<\|image_pad\|>)+")
_PAD_LENGTH = len("<|image_pad|>")


class Segment(NamedTuple):
    """A run of tokens that are all trained or all not; ``<|image_pad|>×16`` stands for sixteen image tokens."""

    text: str
    trained: bool


def inspect_mask(row: Row, reader: Reader) -> list[Segment]:
    """The row as segments of tokens, in order."""
    batch = reader.read([row])
    return segments(reader.processor.tokenizer, batch["input_ids"][0].tolist(), batch["labels"][0].tolist())


def segments(tokenizer: Any, ids: list[int], labels: list[int]) -> list[Segment]:
    """Tokens grouped by whether they have a label."""
    runs = groupby(zip(ids, labels, strict=True), key=lambda pair: pair[1] != IGNORED)
    decoded = [(tokenizer.decode([token for token, _ in run]), trained) for trained, run in runs]
    return [Segment(_PADS.sub(lambda pads: f"<|image_pad|>×{len(pads[0]) // _PAD_LENGTH}", t), on) for t, on in decoded]


def main(
    dataset: Annotated[Path, typer.Argument(help="Folder of a shipped dataset.")],
    model: Annotated[Path, typer.Option(help="Folder of the model whose tokenizer reads the row.")],
    row: Annotated[int, typer.Option(help="Which row, from 0.")] = 0,
    layout: Annotated[Layout, typer.Option(help="turns: observations as user turns. inline: inside the answer.")] = (
        "turns"
    ),
) -> None:
    """Show which tokens of a row are trained (green) and which are not (dim)."""
    with guarded():
        _print(_row(dataset, row), open_reader(model, layout=layout))


def _row(dataset: Path, index: int) -> Row:
    from train.rows import open_dataset

    rows = open_dataset(dataset)
    if not 0 <= index < len(rows):
        raise TrainFault(f"no row {index}: {dataset} has rows 0 to {len(rows) - 1}")
    found: Row = rows[index]
    return found


def _print(row: Row, reader: Reader) -> None:
    from rich.console import Console
    from rich.text import Text

    text = Text()
    for segment in inspect_mask(row, reader):
        text.append(segment.text, style="bold green" if segment.trained else "dim")
    console = Console()
    console.print(
        f"row {row['trajectory_id']} ({row['loss_policy']}, layout {reader.layout})", style="bold", highlight=False
    )
    console.print(text)


if __name__ == "__main__":
    typer.run(main)
