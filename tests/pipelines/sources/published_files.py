"""Files of published shapes, written in a few words, and a register of who writes which shape."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from datasets import Dataset, Features, Image, Value
from PIL import Image as Pillow, ImageDraw

TEXT = Value("string")


class Published(NamedTuple):
    """The function that writes a shape into a folder, and its samples: question, answer, number of images."""

    write: Callable[[Path], Path | None]
    samples: list[tuple[str, str, int]]
    split: str | None


class Shapes(dict[str, Published]):
    """Shapes by name."""

    def add(
        self, name: str, *samples: tuple[str, str, int], split: str | None = None
    ) -> Callable[[Callable[[Path], Path | None]], None]:
        def register(write: Callable[[Path], Path | None]) -> None:
            self[name] = Published(write, list(samples), split)

        return register


def picture(seed: int = 0) -> bytes:
    image = Pillow.new("RGB", (160, 120), (40 * seed % 250, 120, 200))
    ImageDraw.Draw(image).rectangle((120, 90, 124, 93), fill=(250, 10, seed % 250))
    data = io.BytesIO()
    image.save(data, "JPEG", quality=95)
    return data.getvalue()


def put(folder: Path, files: dict[str, Any]) -> None:
    """Bytes, text, or what JSON holds."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, bytes):
            content = (content if isinstance(content, str) else json.dumps(content)).encode()
        path.write_bytes(content)


def table(path: Path, rows: list[dict[str, Any]], **features: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    known = {"image": Image(), **features}
    columns = {name: known.get(name, TEXT) for name in rows[0]}
    Dataset.from_list(rows, features=Features(columns)).to_parquet(path)


def lines(*rows: Any) -> str:
    return "\n".join(map(json.dumps, rows))


def struct(seed: int = 0) -> dict[str, Any]:
    return {"bytes": picture(seed), "path": f"{seed}.jpg"}
