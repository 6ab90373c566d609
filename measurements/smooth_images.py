"""Images with hardly a corner, of which local features tell little: defocused photographs, skies, relief, lit surfaces.

Those of one function are hard negatives of one another: neighbouring parts of one photograph or one landscape, skies
and surfaces of one kind under one light, things before one backdrop or in one sky. ``skies``, ``glows``, ``studio`` and
``birds`` are for tuning only, the other generators for the held-out set only; ``defocused`` gets the photographs of the
set that it is for.
"""

import io
import random
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from darkroom.pipelines.demo.images.material import packaged_bytes

Levels = NDArray[np.float64]

_WIDTH, _HEIGHT = 640, 480
_BLUR = 3.0
"""Standard deviation, pixels; half of it to twice."""
_PLAIN = 4.0
"""Standard deviation, grey levels: what varies less shows too little to be called the same."""


def defocused(photographs: Sequence[Image.Image], chance: random.Random, *, n: int) -> Iterator[Image.Image]:
    """Of every photograph ``n`` of its nine ninths, as wide as other images and out of focus; none that is plain."""
    for image in photographs:
        width, height = image.width // 3, image.height // 3
        cells = [(column * width, row * height) for row in range(3) for column in range(3)]
        parts = [image.crop((left, top, left + width, top + height)) for left, top in cells]
        shown = [part for part in parts if np.asarray(part.convert("L")).std() >= _PLAIN]
        for part in chance.sample(shown, min(n, len(shown))):
            large = part.resize((_WIDTH, _WIDTH * height // width), Image.Resampling.BICUBIC)
            yield large.filter(ImageFilter.GaussianBlur(_BLUR * chance.uniform(0.5, 2)))


def skies(chance: random.Random, *, n: int) -> Iterator[Image.Image]:
    """The same blue above the same haze, with other soft clouds, some with the grain of a camera."""
    down = np.linspace(0, 1, _HEIGHT)[:, None, None]
    blue = (1 - down) * (70, 120, 190) + down * (190, 205, 215)
    for _ in range(n):
        rng = np.random.default_rng(chance.randrange(2**32))
        clouds = sum(_soft(rng, 2 * 2**k, 3 * 2**k) / 2**k for k in range(3))
        share = np.clip(clouds * chance.uniform(0.2, 0.4) + 0.2, 0, 0.8)[..., None]
        yield _image(blue * (1 - share) + 240 * share + rng.normal(0, chance.choice((0, 2)), (_HEIGHT, _WIDTH, 1)))


def glows(chance: random.Random, *, n: int) -> Iterator[Image.Image]:
    """Lights out of focus before a dark gradient."""
    down, across = np.mgrid[0:_HEIGHT, 0:_WIDTH]
    for _ in range(n):
        light = np.repeat((40 + 30 * across / _WIDTH)[..., None], 3, axis=2)
        for _ in range(chance.randint(6, 12)):
            x, y, radius = chance.uniform(0, _WIDTH), chance.uniform(0, _HEIGHT), chance.uniform(20, 110)
            colour = [chance.uniform(10, 90) for _ in range(3)]
            light += np.exp(-((across - x) ** 2 + (down - y) ** 2) / (2 * radius**2))[..., None] * colour
        yield _image(light)


def studio(chance: random.Random, *, n: int) -> Iterator[Image.Image]:
    """One backdrop under one light, and before its middle another thing each time."""
    down, across = np.mgrid[0:_HEIGHT, 0:_WIDTH]
    light = np.exp(-np.hypot(across - 400, down - 60) / 450) + 0.3 * np.exp(-np.hypot(across - 60, down - 400) / 90)
    folds = _soft(np.random.default_rng(1), 4, 7) * 8
    backdrop = _image((60 + 150 * light + folds)[..., None] * (1.0, 0.97, 0.9))
    for _ in range(n):
        image, left, top = backdrop.copy(), chance.randint(220, 260), chance.randint(160, 200)
        draw = ImageDraw.Draw(image)
        for _ in range(12):
            x, y = left + chance.randint(0, 110), top + chance.randint(0, 110)
            shape = chance.choice((draw.ellipse, draw.rectangle))
            colour = tuple(chance.randint(20, 235) for _ in range(3))
            shape((x, y, x + chance.randint(12, 60), y + chance.randint(12, 60)), fill=colour)
        yield image


def birds(chance: random.Random, *, n: int) -> Iterator[Image.Image]:
    """One sky, and in it one to four birds, elsewhere each time; some are small."""
    (sky,) = skies(random.Random(5), n=1)
    for _ in range(n):
        image = sky.copy()
        draw = ImageDraw.Draw(image)
        for _ in range(chance.randint(1, 4)):
            x, y, size = chance.randint(40, 560), chance.randint(40, 420), chance.randint(12, 40)
            wings = [(x - size, y - size // 2), (x, y), (x + size, y - chance.randint(0, size))]
            draw.line(wings, fill=(30, 30, 40), width=max(3, size // 5))
            draw.ellipse((x - size // 4, y - size // 5, x + size // 4, y + size // 3), fill=(40, 35, 35))
        yield image


def balloons(chance: random.Random, *, n: int) -> Iterator[Image.Image]:
    """One soft sky, and in it one to three balloons, elsewhere each time."""
    rng = np.random.default_rng(11)
    sky = _image((150 + _soft(rng, 5, 6) * 14 + _soft(rng, 9, 13) * 6)[..., None] * (0.8, 0.95, 1.15))
    for _ in range(n):
        image = sky.copy()
        draw = ImageDraw.Draw(image)
        for _ in range(chance.randint(1, 3)):
            x, y, radius = chance.randint(30, 560), chance.randint(30, 360), chance.randint(14, 40)
            draw.ellipse((x, y, x + 2 * radius, y + 2 * radius), fill=tuple(chance.randint(20, 235) for _ in range(3)))
            draw.line((x + radius, y + 2 * radius, x + radius, y + 3 * radius), fill="black", width=3)
        yield image


def relief(chance: random.Random, *, n: int) -> Iterator[Image.Image]:
    """Parts of a mountain range and of a coast (matplotlib's sample data), lit from the north-west."""
    for name, key in (("jacksboro_fault_dem", "elevation"), ("topobathy", "topo")):
        file = io.BytesIO(packaged_bytes("matplotlib", f"mpl-data/sample_data/{name}.npz"))
        heights = np.asarray(np.load(file)[key], np.float64)
        slope_down, slope_across = np.gradient(heights / heights.std())
        shade = -(slope_down + slope_across)
        levels = np.clip(128 + 40 * shade / shade.std(), 0, 255).astype(np.uint8)
        whole = Image.fromarray(levels).filter(ImageFilter.GaussianBlur(min(levels.shape) / 100))
        yield from _cuts(whole, chance, n=n // 2)


def hazes(chance: random.Random, *, n: int) -> Iterator[Image.Image]:
    """Noise whose amplitude falls with the frequency to the power of 2.2, between two colours."""
    frequency = np.hypot(np.fft.fftfreq(_HEIGHT)[:, None] * _HEIGHT, np.fft.rfftfreq(_WIDTH)[None] * _WIDTH)
    fall = 1 / np.maximum(frequency, 1) ** 2.2
    fall[0, 0] = 0
    for _ in range(n):
        rng = np.random.default_rng(chance.randrange(2**32))
        noise = np.fft.irfft2(fall * np.fft.rfft2(rng.normal(size=(_HEIGHT, _WIDTH))), (_HEIGHT, _WIDTH))
        share = 1 / (1 + np.exp(-2 * noise / noise.std()))[..., None]
        yield _image(share * (235, 220, 200) + (1 - share) * (90, 110, 130))


def lit_surfaces(chance: random.Random, *, n: int) -> Iterator[Image.Image]:
    """A painted wall in a corner of a room: light from one lamp, and the faint dents of the plaster."""
    down, across = np.mgrid[0:_HEIGHT, 0:_WIDTH]
    for _ in range(n):
        rng = np.random.default_rng(chance.randrange(2**32))
        lamp = np.exp(-np.hypot(across - 200, down - 100) / 500)[..., None]
        dents = (_soft(rng, 12, 16) * 4 + _soft(rng, 5, 7) * 6)[..., None]
        yield _image(lamp * (225, 215, 190) + dents)


def _cuts(whole: Image.Image, chance: random.Random, *, n: int) -> Iterator[Image.Image]:
    width, height = round(whole.width * 0.3), round(whole.height * 0.3)
    cells = [(column, row) for column in range(3) for row in range(3)]
    for column, row in chance.sample(cells, n):
        left, top = round(whole.width * 0.33 * column), round(whole.height * 0.33 * row)
        part = whole.crop((left, top, left + width, top + height))
        yield part.resize((_WIDTH, _WIDTH * height // width), Image.Resampling.BICUBIC).convert("RGB")


def _soft(rng: np.random.Generator, rows: int, columns: int) -> Levels:
    coarse = Image.fromarray(rng.normal(0, 1, (rows, columns)).astype(np.float32))
    return np.asarray(coarse.resize((_WIDTH, _HEIGHT), Image.Resampling.BICUBIC), np.float64)


def _image(levels: Levels) -> Image.Image:
    return Image.fromarray(np.clip(np.broadcast_to(levels, (_HEIGHT, _WIDTH, 3)), 0, 255).astype(np.uint8))
