"""The work that is measured: open a 2000x1500 photograph, crop 300x200, enlarge twice, save as JPEG, print the path.

The reference pixels are computed here, in the benchmark's own process and without the sandbox, once per library; every
variant must return exactly these.
"""

import random
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
from PIL import Image

from darkroom.sandbox import Observation

Library = Literal["PIL", "cv2"]
LIBRARIES: tuple[Library, ...] = ("PIL", "cv2")

_SIZE, _BOX, _ZOOMED = (2000, 1500), (800, 600, 1100, 800), (600, 400)
_JPEG_QUALITY = 92

_PIL_CODE = """\
import random
from PIL import Image

image = Image.open(IMAGE)
x1, y1, x2, y2 = 800, 600, 1100, 800
crop = image.crop((x1, y1, x2, y2))
zoomed = crop.resize((crop.width * 2, crop.height * 2), Image.LANCZOS)
path = f"crop_{random.randint(1000, 1007)}.jpg"
zoomed.save(path)
print(path)
"""
_CV2_CODE = """\
import random
import cv2

image = cv2.imread(IMAGE)
x1, y1, x2, y2 = 800, 600, 1100, 800
crop = image[y1:y2, x1:x2]
zoomed = cv2.resize(crop, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC)
path = f"crop_{random.randint(1000, 1007)}.jpg"
cv2.imwrite(path, zoomed)
print(path)
"""
_CODES: dict[Library, str] = {"PIL": _PIL_CODE, "cv2": _CV2_CODE}

COPY_IMAGE = "import shutil; shutil.copyfile(image_path, 'own.jpg')"
"""In a session: a file that the sandbox has not decoded, so that every open decodes it."""


def code_of(library: Library, image: str = "image_path") -> str:
    """The program; `image` is the expression that names the file."""
    return _CODES[library].replace("IMAGE", image)


def make_photo(path: Path) -> None:
    """A photograph's entropy without a download: blurred blobs, edges, sensor noise. 0.85 MB, always the same."""
    rng = np.random.default_rng(20261121)
    coarse = rng.integers(0, 256, (30, 40, 3), dtype=np.uint8)
    image = cv2.resize(coarse, _SIZE, interpolation=cv2.INTER_CUBIC)
    draw = random.Random(1)
    for _ in range(60):
        corner = (draw.randrange(_SIZE[0]), draw.randrange(_SIZE[1]))
        colour = [draw.randrange(256) for _ in range(3)]
        cv2.circle(image, corner, draw.randrange(10, 120), colour, draw.choice([2, 6, -1]))
    pixels = np.clip(image + rng.normal(0, 5, image.shape), 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(path, quality=_JPEG_QUALITY)


def reference(library: Library, photo: Path) -> bytes:
    """RGB bytes of the zoomed crop, as a reader of the saved JPEG sees them."""
    if library == "PIL":
        crop = Image.open(photo).crop(_BOX)
        saved = BytesIO()
        crop.resize(_ZOOMED, Image.Resampling.LANCZOS).save(saved, "JPEG")
    else:
        left, top, right, bottom = _BOX
        pixels = np.asarray(cv2.imread(str(photo)))
        zoomed = cv2.resize(pixels[top:bottom, left:right], None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC)
        saved = BytesIO(cv2.imencode(".jpg", zoomed)[1].tobytes())
    return Image.open(saved).convert("RGB").tobytes()


def require_right(results: Iterable[Observation | Path], expected: bytes) -> None:
    """Every observation carries the one right image, every file holds it. Ends the program otherwise."""
    for result in results:
        if isinstance(result, Path):
            found = Image.open(result).convert("RGB").tobytes()
        else:
            require_ok([result])
            found = b"".join(image.pixels.tobytes() for image in result.images)
        if found != expected:
            raise SystemExit(f"other pixels than the reference: {result}")


def require_ok(observations: Iterable[Observation]) -> None:
    for observation in observations:
        if not observation.ok:
            raise SystemExit(f"a call went wrong: {observation}")
