"""CPU time of comparing training images with the images of a benchmark: photographs, pages and charts in turn.

    python -m tests.pipelines.selection.decontamination.cost --benchmark 500 2000 5000 --images 120 --folder somewhere

Nine in ten training images are of none of the benchmark's photographs, but pages and charts of the same templates; one
in ten is one of its images, changed. With ``--folder`` its images and fingerprints are kept there.
"""

from __future__ import annotations

import argparse
import io
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from darkroom.pipelines.demo.images.charts import charts
from darkroom.pipelines.demo.images.material import PHOTOGRAPHS, font, photograph_image
from darkroom.pipelines.selection.decontamination.images import FingerprintCache, ImageIndex
from tests.image_files import encoded
from tests.pipelines.selection.duplicates import documents

SIZE = (1024, 768)
_NAMES = [name for name in PHOTOGRAPHS if name != "page"]
PAGES = ("lined form", "boxed form", "scanned form", "letters", "receipt", "time sheet", "exam sheet", "prose")
CHARTS = ("eight bars", "four bars", "points", "pie", "lines", "regions", "drawn")
_KINDS = {**documents.SEEN, **documents.HELD_OUT, **documents.HELD_OUT_LATER}


def photograph(chance: random.Random, names: list[str]) -> Image.Image:
    """Parts of two photographs, turned, enlarged, and one of them fading into the other."""
    layers = []
    for name in chance.sample(names, 2):
        image = photograph_image(name).rotate(chance.uniform(-25, 25), Image.Resampling.BICUBIC)
        side = chance.uniform(0.35, 0.6) * min(image.size)
        x, y = (chance.uniform(0.15, 0.85 - side / length) * length for length in image.size)
        part = image.resize(SIZE, Image.Resampling.BICUBIC, (x, y, x + side, y + 0.75 * side))
        layers.append(part.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if chance.random() < 0.5 else part)
    mask = Image.new("L", SIZE)
    draw = ImageDraw.Draw(mask)
    for _ in range(3):
        x, y, radius = chance.randint(0, 1024), chance.randint(0, 768), chance.randint(120, 320)
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), 255)
    mixed = np.asarray(Image.composite(layers[0], layers[1], mask.filter(ImageFilter.GaussianBlur(20))), np.float32)
    noise = np.random.default_rng(chance.randrange(2**32)).normal(0, 4, (768, 1024, 1))
    return Image.fromarray(np.clip(mixed + noise, 0, 255).astype(np.uint8))


def _prose(chance: random.Random) -> Image.Image:
    """A page of two columns."""
    image = Image.new("RGB", (850, 1100), "white")
    draw, letters = ImageDraw.Draw(image), font("DejaVuSerif", 15)
    for column in range(2):
        for line in range(48):
            text = " ".join(chance.choice(documents.WORDS) for _ in range(5))
            draw.text((50 + 390 * column, 40 + 21 * line), text, "black", letters)
    return image


def _drawn(chance: random.Random) -> Image.Image:
    return Image.open(io.BytesIO(chance.choice(charts(chance.randrange(10**6))).build().images[0])).convert("RGB")


def image_of(number: int, seed: str) -> Image.Image:
    """Number ``number`` of a set: a photograph, a page or a chart."""
    chance = random.Random(f"{seed} {number}")
    if number % 3 == 0:
        return photograph(chance, _NAMES[seed == "benchmark" :: 2])
    kind = chance.choice(PAGES if number % 3 == 1 else CHARTS)
    own: dict[str, Callable[[random.Random], Image.Image]] = {"prose": _prose, "drawn": _drawn}
    return own[kind](chance) if kind in own else _KINDS[kind][1](chance)


def training_image(number: int, n_benchmark: int) -> Image.Image:
    """One in ten is an image of the benchmark, changed."""
    if number % 10:
        return image_of(number, "training")
    chance = random.Random(number)
    changed = documents.CHANGES[chance.choice(sorted(documents.CHANGES))]
    return changed(image_of(chance.randrange(n_benchmark), "benchmark"))


def index_of(folder: Path, n_images: int) -> ImageIndex:
    """The first images of the benchmark; what ``folder`` lacks is made."""
    cache, images = FingerprintCache(folder / "fingerprints"), []
    for number in range(n_images):
        path = folder / "images" / f"{number}.jpg"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encoded(image_of(number, "benchmark"), "JPEG", quality=88))
        images.append(cache.of(path.read_bytes()))
    return ImageIndex(images)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--benchmark", type=int, nargs="+", default=[500, 2_000])
    parser.add_argument("--images", type=int, default=120)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    print("| benchmark | photographs: CPU s an image | pages | charts | found |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as temporary:
        for n_benchmark in options.benchmark:
            index = index_of(options.folder or Path(temporary), n_benchmark)
            index.find(image_of(0, "another"), "")
            seconds: defaultdict[int, list[float]] = defaultdict(list)
            n_found = 0
            for number in range(options.images):
                data = encoded(training_image(number, n_benchmark), "JPEG", quality=88)
                began = time.process_time()
                n_found += bool(index.find(Image.open(io.BytesIO(data)), ""))
                seconds[number % 3].append(time.process_time() - began)
            means = (f"{np.mean(seconds[kind]):.3f}" for kind in range(3))
            print("|", " | ".join((f"{n_benchmark:,}", *means, f"{n_found} of {options.images}")), "|", flush=True)


if __name__ == "__main__":
    main()
