"""What people do to an image that stays the same image, and two disjoint sets of images that are not the same.

``TUNING`` chose the thresholds of the search; ``HELD_OUT`` is what is reported. They share no photograph, no generator
and no template. Each holds hard negatives: parts of one photograph that do not overlap or only by a fifth, charts of
one template with other numbers, pages of one document, scenes of one kind, photographs of like subjects, smooth images
(``measurements/smooth_images.py``).
"""

import io
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageOps

from darkroom.pipelines.demo.images.charts import charts
from darkroom.pipelines.demo.images.diagrams import diagrams
from darkroom.pipelines.demo.images.material import font, packaged_bytes
from darkroom.pipelines.demo.images.pages import pages
from darkroom.pipelines.demo.images.walls import backdrop
from measurements.smooth_images import balloons, birds, defocused, glows, hazes, lit_surfaces, relief, skies, studio
from tests.image_files import jpeg

Change = Callable[[Image.Image, random.Random], Image.Image]
_TUNING_PHOTOGRAPHS = ("astronaut", "camera", "chelsea", "coffee", "coins", "grass", "ihc", "page", "text", "cell")
_HELD_OUT_PHOTOGRAPHS = {
    "skimage": (
        *("data/hubble_deep_field.jpg", "data/motorcycle_left.png", "data/retina.jpg", "data/rocket.jpg"),
        *("data/moon.png", "data/gravel.png", "data/brick.png", "data/color.png", "data/clock_motion.png"),
    ),
    "sklearn": ("datasets/images/china.jpg", "datasets/images/flower.jpg"),
    "matplotlib": ("mpl-data/sample_data/grace_hopper.jpg",),
}
_DOCUMENT = ("docs/sandbox.md", "docs/sources.md")


class Item(NamedTuple):
    """An image and what kind it is; those of one ``kind`` are the hard negatives of one another."""

    kind: str
    image: Image.Image


def _re_encoded(image: Image.Image, chance: random.Random) -> Image.Image:
    return jpeg(image, chance.choice((30, 50, 70)))


def _brighter(image: Image.Image, chance: random.Random) -> Image.Image:
    return ImageEnhance.Brightness(image).enhance(chance.uniform(1.15, 1.4))


def _half(image: Image.Image, chance: random.Random) -> Image.Image:
    return image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)


def _crop(share: float) -> Change:
    """A part with ``share`` of both sides, at a random place."""

    def cut(image: Image.Image, chance: random.Random) -> Image.Image:
        width, height = round(image.width * share), round(image.height * share)
        left, top = chance.randint(0, image.width - width), chance.randint(0, image.height - height)
        return image.crop((left, top, left + width, top + height))

    return cut


def _overlay(image: Image.Image, chance: random.Random) -> Image.Image:
    """A caption or a stamp somewhere: text, with or without a plate behind it."""
    copy = image.copy()
    draw = ImageDraw.Draw(copy, "RGBA")
    text = chance.choice(("SAMPLE 2026", "© example.org", "do not copy", "Figure 12: as supplied", "PREVIEW"))
    letters = font("DejaVuSans-Bold", max(10, round(image.width * chance.uniform(0.05, 0.09))))
    left, top, right, bottom = draw.textbbox((0, 0), text, font=letters)
    x = chance.randint(0, max(0, image.width - (right - left)))
    y = chance.randint(0, max(0, image.height - (bottom - top) * 2))
    if chance.random() < 0.5:
        draw.rectangle((x - 8, y - 6, x + right + 8, y + bottom + 6), fill=(0, 0, 0, chance.choice((160, 255))))
    draw.text((x, y), text, font=letters, fill=chance.choice(((255, 255, 255, 255), (220, 30, 30, 255))))
    return copy


def _turned(image: Image.Image, chance: random.Random) -> Image.Image:
    return image.rotate(chance.choice((-2, 2)), Image.Resampling.BICUBIC, fillcolor=(255, 255, 255))


def _quarter(image: Image.Image, chance: random.Random) -> Image.Image:
    return image.rotate(chance.choice((90, 180, 270)), expand=True)


CHANGES: dict[str, Change] = {
    "re-encoded (JPEG 30 to 70)": _re_encoded,
    "brighter (15 to 40 %)": _brighter,
    "half the size": _half,
    "97 % crop (of each side)": _crop(0.97),
    "90 % crop (of each side)": _crop(0.9),
    "text overlay": _overlay,
    "turned by 2°": _turned,
    "mirrored": lambda image, chance: ImageOps.mirror(image),
    "quarter turns": _quarter,
}


def tuning() -> list[Item]:
    """Photographs of scikit-image and their parts, and what the embedded source draws, with four seeds."""
    names = [f"data/{name}.png" for name in _TUNING_PHOTOGRAPHS]
    photographs = [_opened("skimage", name) for name in names]
    items = [Item("photograph", image) for image in photographs]
    items += [Item("part", part) for image in photographs[:6] for part in _parts(image)]
    for kind, rows in (("chart", charts(0)), ("diagram", diagrams(0)), ("page", pages(0))):
        items += [Item(kind, Image.open(io.BytesIO(row.build().images[0])).convert("RGB")) for row in rows]
    items += [Item("wall", backdrop(n, 960, 720, random.Random(0)).image) for n in range(3)]
    chance = random.Random(3)
    items += [
        Item(name, _chart(template, chance)) for name, template in (("line chart", 1), ("table", 2)) for _ in range(9)
    ]
    items += [Item("document", page) for page in _document(Path("docs/families.md").read_text())]
    items += [Item("smooth part", part) for part in defocused(photographs, chance, n=2)]
    items += [Item("smooth sky", sky) for sky in skies(chance, n=8)]
    items += [Item("smooth glow", glow) for glow in glows(chance, n=8)]
    items += [Item("smooth backdrop", thing) for thing in studio(chance, n=8)]
    items += [Item("smooth sky", sky) for sky in birds(chance, n=16)]
    return _each_once(items)


def held_out(seed: int = 7) -> list[Item]:
    """Other photographs and their parts; charts, documents, scenes and textures that are drawn here."""
    photographs = [_opened(package, name) for package, names in _HELD_OUT_PHOTOGRAPHS.items() for name in names]
    items = [Item("photograph", image) for image in photographs]
    items += [Item("part", part) for image in photographs for part in _parts(image)]
    chance = random.Random(seed)
    items += [Item(f"chart {template}", _chart(template, chance)) for template in (0, 3) for _ in range(12)]
    items += [Item("document", page) for path in _DOCUMENT for page in _document(Path(path).read_text())]
    items += [Item("scene", _scene(chance)) for _ in range(24)]
    items += [Item("texture", _texture(chance)) for _ in range(16)]
    items += [Item("smooth part", part) for part in defocused(photographs, chance, n=3)]
    items += [Item("smooth relief", part) for part in relief(chance, n=12)]
    items += [Item("smooth haze", haze) for haze in hazes(chance, n=12)]
    items += [Item("smooth surface", surface) for surface in lit_surfaces(chance, n=12)]
    items += [Item("smooth sky", sky) for sky in balloons(chance, n=12)]
    return _each_once(items)


def of_folder(folder: Path) -> list[Item]:
    """The images of a folder and their parts, by name."""
    images = [(path.name, Image.open(path).convert("RGB")) for path in sorted(folder.iterdir())]
    return [Item(name, image) for name, whole in images for image in (whole, *_parts(whole))]


def _each_once(items: Sequence[Item]) -> list[Item]:
    return list({item.image.tobytes(): item for item in items}.values())


def _opened(package: str, path: str) -> Image.Image:
    return Image.open(io.BytesIO(packaged_bytes(package, path))).convert("RGB")


def _parts(image: Image.Image) -> Iterator[Image.Image]:
    """The four quarters, and two halves of the middle that overlap by a fifth."""
    width, height = image.size
    for left, top in ((0, 0), (0.5, 0), (0, 0.5), (0.5, 0.5)):
        yield image.crop(
            (round(left * width), round(top * height), round((left + 0.5) * width), round((top + 0.5) * height))
        )
    for left in (0.1, 0.5):
        yield image.crop((round(left * width), height // 5, round((left + 0.45) * width), height * 4 // 5))


_WORDS = ("north", "south", "mill", "harbour", "depot", "union", "valley", "bridge", "garden", "market", "park")


def _chart(template: int, chance: random.Random) -> Image.Image:
    """Bars, lines, a table or a timetable of fixed size, title and axes: only numbers and some names change."""
    image = Image.new("RGB", (720, 480), "white")
    draw, small, large = ImageDraw.Draw(image), font("DejaVuSans", 14), font("DejaVuSans-Bold", 20)
    draw.text(
        (60, 16),
        ("Sales by branch", "Temperature by hour", "Stock at the end of the month", "Departures")[template],
        "black",
        large,
    )
    names = chance.sample(_WORDS, 8)
    values = [chance.randint(10, 99) for _ in range(24)]
    if template == 3:
        for row in range(11):
            name, value = names[row % 8], values[row]
            draw.text((60, 60 + 36 * row), f"{value % 24:02}:{values[row + 11] % 60:02}  {name}", "black", large)
            draw.text((420, 62 + 36 * row), f"platform {value % 9 + 1}, line {value}", "black", small)
        return image
    if template == 2:
        for row in range(9):
            for column in range(5):
                text = (
                    names[row - 1]
                    if row and not column
                    else str(values[(row * 3 + column) % 24])
                    if row
                    else f"Q{column}"
                )
                draw.rectangle((60 + column * 120, 60 + row * 42, 180 + column * 120, 102 + row * 42), outline="grey")
                draw.text((70 + column * 120, 72 + row * 42), text, "black", small)
        return image
    draw.line((60, 60, 60, 420, 690, 420), "black", 2)
    for tick in range(0, 101, 20):
        draw.text((28, 410 - tick * 3.4), str(tick), "black", small)
        draw.line((60, 420 - tick * 3.4, 690, 420 - tick * 3.4), (220, 220, 220))
    if template:
        draw.line([(70 + 26 * n, 420 - 3.4 * value) for n, value in enumerate(values)], "firebrick", 3)
        return image
    for n, value in enumerate(values[:8]):
        draw.rectangle((80 + 76 * n, 420 - 3.4 * value, 130 + 76 * n, 419), "steelblue")
        draw.text((92 + 76 * n, 400 - 3.4 * value), str(value), "black", small)
        draw.text((78 + 76 * n, 428), names[n], "black", small)
    return image


def _document(text: str) -> Iterator[Image.Image]:
    """The pages of a document: 38 lines of print below one running head."""
    lines = [line[start : start + 78] for line in text.splitlines() for start in range(0, max(1, len(line)), 78)]
    for number, start in enumerate(range(0, len(lines) - 20, 38), 1):
        image = Image.new("RGB", (760, 1000), "white")
        draw, letters = ImageDraw.Draw(image), font("DejaVuSansMono", 14)
        draw.text((40, 20), f"Handbook of the toolkit, third edition               page {number}", "black", letters)
        draw.line((40, 44, 720, 44), "black")
        for at, line in enumerate(lines[start : start + 38]):
            draw.text((40, 60 + 24 * at), line, "black", letters)
        yield image


def _scene(chance: random.Random) -> Image.Image:
    """A room: the same wall, floor and window, with other things in other places, and grain."""
    image = Image.new("RGB", (800, 600), (205, 198, 180))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 420, 800, 600), fill=(150, 110, 75))
    draw.rectangle((520, 60, 720, 240), fill=(170, 205, 235), outline=(90, 70, 50), width=8)
    for _ in range(chance.randint(8, 14)):
        x, y, size = chance.randint(0, 720), chance.randint(180, 540), chance.randint(30, 140)
        colour = tuple(chance.randint(20, 235) for _ in range(3))
        draw_shape = chance.choice((draw.ellipse, draw.rectangle, draw.rounded_rectangle))
        draw_shape(
            (x, y, x + size, y + round(size * chance.uniform(0.4, 1.5))), fill=colour, outline=(40, 40, 40), width=2
        )
    grain = np.random.default_rng(chance.randrange(2**32)).normal(0, 4, (600, 800, 1))
    return Image.fromarray(np.clip(np.asarray(image) + grain, 0, 255).astype(np.uint8))


def _texture(chance: random.Random) -> Image.Image:
    """Clouds of one kind: noise of four sizes, added."""
    rng = np.random.default_rng(chance.randrange(2**32))
    layers = [
        np.asarray(
            Image.fromarray(rng.normal(0, 40 / 2**k, (3 * 2**k, 4 * 2**k)).astype(np.float32)).resize(
                (640, 480), Image.Resampling.BICUBIC
            )
        )
        for k in range(1, 6)
    ]
    total = np.clip(128 + sum(layers), 0, 255).astype(np.uint8)
    return Image.fromarray(np.asarray(total)).filter(ImageFilter.GaussianBlur(0.6)).convert("RGB")
