"""A small benchmark of packaged photographs, and crops as rollouts make them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from PIL import Image

from darkroom.pipelines.demo.images.material import photograph_image
from darkroom.pipelines.selection.decontamination import BenchmarkIndex, read_benchmarks
from tests.image_files import encoded

SHOWN = ("astronaut", "cat", "coffee", "motorcycle", "retina", "galaxies")
FEW = ("cat", "coffee")
QUESTION = "What is the {} doing in the middle of this picture, seen from where the photographer stood at that time?"
SUFFIX = " Answer the question using a single word or phrase and nothing else, please, and give no reason at all."


@pytest.fixture(scope="session")
def crop() -> Callable[..., Image.Image]:
    """A part of a photograph, enlarged and saved as a JPEG of quality 75. ``box`` in fractions."""

    def make(image: Image.Image, box: tuple[float, float, float, float], zoom: float) -> Image.Image:
        sides = image.size * 2
        part = image.crop(tuple(round(share * side) for share, side in zip(box, sides, strict=True)))
        part = part.resize((round(part.width * zoom), round(part.height * zoom)), Image.Resampling.BICUBIC)
        return Image.open(io.BytesIO(encoded(part, "JPEG", quality=75)))

    return make


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> BenchmarkIndex:
    """The index of ``photos``, built once."""
    folder = tmp_path_factory.mktemp("built")
    return BenchmarkIndex.build(read_benchmarks(_listed(folder, SHOWN)), folder / "index")


@pytest.fixture
def benchmarks(tmp_path: Path) -> Path:
    """The list of benchmarks: ``photos``, one question about each of ``FEW``."""
    return _listed(tmp_path, FEW)


def _listed(below: Path, names: Sequence[str]) -> Path:
    folder = below / "photos"
    folder.mkdir()
    lines = []
    for name in names:
        photograph_image(name).save(folder / f"{name}.png")
        lines.append({"image": f"{name}.png", "text": QUESTION.format(name) + SUFFIX, "id": name})
    (folder / "metadata.jsonl").write_text("\n".join(map(json.dumps, lines)))
    listed = below / "benchmarks.json"
    columns = {"question": "text", "row_id": None}
    listed.write_text(json.dumps({"photos": {"kind": "jsonl", "path": str(folder), "columns": columns}}))
    return listed
