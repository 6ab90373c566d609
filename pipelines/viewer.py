"""Trajectories as one self-contained page: for people, who would rather look than read parquet."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import jinja2
import pyarrow.parquet as pq
from PIL import Image, ImageDraw
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from pipelines.locate import locate
from pipelines.tables import TableKey, TableMissing

QUESTION_SIDE, OBSERVATION_SIDE = 900, 520
_TEMPLATE = Path(__file__).with_name("viewer.html.jinja")


def write_page(path: Path, dataset: Path, *, limit: int, key: TableKey) -> int:
    """Writes the first ``limit`` rows of a shipped dataset as HTML; returns how many there were.

    Raises ``TableMissing``, naming the asset to materialise, when there is no dataset.
    """
    files = sorted(dataset.glob("*.parquet"))
    if not files:
        raise TableMissing(f"{dataset} holds no dataset. Run: dg launch --assets {'/'.join(key.asset)}")
    rows = [_shown(row) for row in islice(_rows(files), limit)]
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    style = HtmlFormatter(style="friendly").get_style_defs(".code")
    page = environment.from_string(_TEMPLATE.read_text()).render(rows=rows, title=dataset.name, style=style)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid4().hex}")
    part.write_text(page)
    os.replace(part, path)
    return len(rows)


def _rows(files: list[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(batch_size=8):
            yield from batch.to_pylist()


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its pictures as data URLs and its programs coloured; a crop's place is drawn in."""
    images = [Image.open(io.BytesIO(image["bytes"])).convert("RGB") for image in row["images"]]
    question = images[: row["n_question_images"]]
    rounds = [
        {
            **turn,
            "coloured": highlight(turn["code"], PythonLexer(), HtmlFormatter(nowrap=True)),
            "pictures": [_data_url(images[index], OBSERVATION_SIDE) for index in turn["observation"]["images"]],
        }
        for turn in row["rounds"]
    ]
    marked = [_with_crops(image, row, images) if n == 0 else image for n, image in enumerate(question)]
    return {**row, "rounds": rounds, "pictures": [_data_url(image, QUESTION_SIDE) for image in marked]}


def _with_crops(image: Image.Image, row: dict[str, Any], images: list[Image.Image]) -> Image.Image:
    marked = image.copy()
    width = max(4, max(image.size) // 250)
    for turn in row["rounds"]:
        for index in turn["observation"]["images"]:
            found = locate(images[index], image, turn["code"])
            if found is not None:
                ImageDraw.Draw(marked).rectangle(found.box.grown(width), outline=(255, 0, 90), width=width)
    return marked


def _data_url(image: Image.Image, side: int) -> str:
    small = image.copy()
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=88)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
