"""Measures how often unrelated images are taken for a benchmark's: every finding here is false.

    python -m measurements.decontamination               # up to 240 images and a crop of each, about four minutes
    python -m measurements.decontamination --images 60

The benchmark: seven packaged photographs. The unrelated images: crops of the other photographs and textures that
share no place with one another, and what the embedded source draws (charts, diagrams, printed pages, walls), with eight
seeds. Each is looked for whole, and as an enlarged crop of quality 75. How many are near one another by hash alone is
counted as well: drawings from one template are.
"""

import argparse
import io
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from darkroom.pipelines.demo.images.charts import charts
from darkroom.pipelines.demo.images.diagrams import diagrams
from darkroom.pipelines.demo.images.material import PHOTOGRAPHS, photograph_image, texture
from darkroom.pipelines.demo.images.pages import pages
from darkroom.pipelines.demo.images.walls import backdrop
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.selection.decontamination.benchmarks import Benchmark, read_benchmarks
from darkroom.pipelines.selection.decontamination.index import BenchmarkIndex
from darkroom.pipelines.selection.duplicates import near_images, perceptual_hash
from tests.image_files import jpeg

SEED = 20261121
BENCHMARK = ("astronaut", "cat", "coffee", "pagoda", "motorcycle", "retina", "galaxies")
TILE = 160


class TrainingImage(NamedTuple):
    kind: str
    image: Image.Image


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=int, default=240)
    n_images, chance = parser.parse_args().images, random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder:
        index = BenchmarkIndex.build(_benchmark(Path(folder)), Path(folder) / "index")
        images = _unrelated(n_images, chance)
        print(f"{len(images)} images: {dict(Counter(item.kind for item in images))}")
        _measure("whole", index, images)
        _measure("cropped", index, [TrainingImage(kind, _crop(image, chance)) for kind, image in images])
    found = near_images([perceptual_hash(item.image) for item in images])
    pairs = Counter(tuple(sorted((images[one.index].kind, images[one.of].kind))) for one in found)
    print(f"near one another by hash: {len(found)} of {len(images)}: {dict(pairs)}")


def _measure(what: str, index: BenchmarkIndex, images: list[TrainingImage]) -> None:
    started = time.process_time()
    found = [
        (item.kind, seen.kind, BENCHMARK[seen.image], seen.detail)
        for item in images
        for seen in index.images.find(item.image, digest_bytes(item.image.tobytes()))
    ]
    seconds = (time.process_time() - started) / len(images)
    print(f"{what}: {len(found)} of {len(images)} found in a benchmark that they are not from; {seconds:.2f} s each")
    for one in found:
        print("   ", *one)


def _benchmark(folder: Path) -> list[Benchmark]:
    photographs = folder / "photographs"
    photographs.mkdir()
    for name in BENCHMARK:
        photograph_image(name).save(photographs / f"{name}.png")
    listed = folder / "benchmarks.yaml"
    listed.write_text(f"photographs: {{kind: folder, path: {photographs}}}\n")
    return read_benchmarks(listed)


def _unrelated(n_images: int, chance: random.Random) -> list[TrainingImage]:
    """Half of them parts of photographs, half drawings; as many as there are, at most."""
    tiles = list(_tiles())
    drawn = list({digest_bytes(item.image.tobytes()): item for item in _drawn()}.values())
    chance.shuffle(tiles)
    chance.shuffle(drawn)
    tiles = tiles[: max(n_images // 2, n_images - len(drawn))]
    return [*tiles, *drawn[: n_images - len(tiles)]]


def _tiles() -> Iterator[TrainingImage]:
    """Squares that share no pixel, of every photograph that the benchmark does not show."""
    shown = [photograph_image(name) for name in PHOTOGRAPHS if name not in BENCHMARK]
    for image in (*shown, texture("grass"), texture("gravel"), texture("brick")):
        for top in range(0, image.height - TILE + 1, TILE):
            for left in range(0, image.width - TILE + 1, TILE):
                part = image.crop((left, top, left + TILE, top + TILE))
                yield TrainingImage("photograph", part.resize((2 * TILE, 2 * TILE), Image.Resampling.BICUBIC))


def _drawn() -> Iterator[TrainingImage]:
    """What the embedded source draws without a photograph in it, eight times with other seeds."""
    for seed in range(8):
        for kind, rows in (("chart", charts(seed)), ("diagram", diagrams(seed)), ("page", pages(seed))):
            for row in rows:
                yield TrainingImage(kind, Image.open(io.BytesIO(row.build().images[0])).convert("RGB"))
        for number in range(4):
            yield TrainingImage("wall", backdrop(number, 960, 720, random.Random(seed)).image)


def _crop(image: Image.Image, chance: random.Random) -> Image.Image:
    """A part at a random place, enlarged, as a JPEG of quality 75."""
    share, zoom = chance.uniform(0.2, 0.6), chance.uniform(1.5, 4)
    width, height = max(8, round(image.width * share)), max(8, round(image.height * share))
    left, top = chance.randint(0, image.width - width), chance.randint(0, image.height - height)
    part = image.crop((left, top, left + width, top + height))
    size = (min(1600, round(width * zoom)), min(1600, round(height * zoom)))
    return jpeg(part.resize(size, Image.Resampling.BICUBIC), 75)


if __name__ == "__main__":
    main()
