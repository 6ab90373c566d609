"""Material of the source: images, textures, prose, tables and fonts that PyPI packages carry, read as files.

Nothing is imported to be read (importing scikit-learn costs a second) and nothing is downloaded. Licences are those
that scikit-image states in the docstrings of ``skimage.data`` and scikit-learn in ``datasets/images/README.txt``:
``china.jpg`` and ``flower.jpg`` are CC BY 2.0 (flickr: danielbuechele, vultilion). matplotlib's ``grace_hopper.jpg``
is a work of the United States Navy (J. S. Davis, 1984) and so in the public domain. A statement of "no known copyright
restrictions" without a licence is written as such. Left out, as nothing is stated: scikit-image's motorcycle (tests
alone read it), moon, colour wheel, phantom and logo, matplotlib's logo and parcel. The wheels of
SciPy and OpenCV carry no images.

And rows before they are built, with lettered choices: the right one at a place that the caller balances.

And questions about the photographs as they are (easy ones, and those for a glance at the whole) and as snapshots. The
target of an easy question is in ``truth.boxes`` where it was measured; most boxes are large on purpose, so that a crop
of them would be a lazy step. The coins have a count instead. Snapshots are turned on their side, underexposed, or both:
``truth.angle`` is how far, in degrees counter-clockwise; ``truth.contrast`` the share of the tonal range that is left.
No file says so: there is no EXIF orientation to put it right.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from PIL import Image, ImageFont

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.records import Truth, TruthBox
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.storage.media_validation import encode
from darkroom.sandbox.errors import require_extra

PUBLIC_DOMAIN = "public-domain"


class MaterialError(Exception):
    """A package or one of its files is not there."""


class Photograph(NamedTuple):
    """A packaged image: its name here, where it lies, what it shows ("the cat"), and its licence."""

    name: str
    package: str
    path: str
    phrase: str
    license: str


PHOTOGRAPHS = {name: Photograph(name, **facts) for name, facts in data_beside(__file__).items()}
TEXTURE_LICENSE = "CC0-1.0"


def require_packages() -> None:
    """Raises ``ExtraMissing`` unless everything that the embedded sources are made of is installed."""
    for module in ("av", "reasoning_gym", "skimage", "sklearn"):
        require_extra(module, "demo", "the embedded source")


def packaged_bytes(package: str, path: str) -> bytes:
    """The bytes of a file inside an installed package. Raises ``MaterialError`` when there is no such file."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise MaterialError(f"the demo needs the package {package!r}, which is not installed; install it")
    file = Path(spec.origin).parent / path
    if not file.is_file():
        raise MaterialError(f"the demo needs {path!r} inside the package {package!r}; this version does not carry it")
    return file.read_bytes()


def photograph_bytes(name: str) -> bytes:
    photograph = PHOTOGRAPHS[name]
    return packaged_bytes(photograph.package, photograph.path)


@cache
def photograph_image(name: str) -> Image.Image:
    """A photograph as RGB, transparency over off-white. Shared: don't draw on it."""
    image = Image.open(io.BytesIO(photograph_bytes(name))).convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, (244, 240, 230, 255)), image).convert("RGB")


@cache
def texture(name: str) -> Image.Image:
    """The grey 512 x 512 texture ``brick``, ``grass`` or ``gravel``. Shared: don't draw on it."""
    return Image.open(io.BytesIO(packaged_bytes("skimage", f"data/{name}.png"))).convert("L")


@cache
def font(name: str, size: int) -> ImageFont.FreeTypeFont:
    """A font that matplotlib bundles (``DejaVuSans-Bold``); basic layout, since raqm may come from the system."""
    file = io.BytesIO(packaged_bytes("matplotlib", f"mpl-data/fonts/ttf/{name}.ttf"))
    return ImageFont.truetype(file, size, layout_engine=ImageFont.Layout.BASIC)


@cache
def table(name: str) -> tuple[tuple[str, ...], ...]:
    """The rows of a CSV file in scikit-learn's ``datasets/data``, the heading first."""
    text = packaged_bytes("sklearn", f"datasets/data/{name}.csv").decode("ascii")
    return tuple(tuple(row) for row in csv.reader(io.StringIO(text), delimiter="," if "," in text else " "))


def covering(image: Image.Image, width: float, height: float) -> Image.Image:
    """The image as small as it can be where it covers a rectangle."""
    scale = max(width / image.width, height / image.height)
    return image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.LANCZOS)


def joint_license(licenses: Iterable[str]) -> str:
    """The licences of all that went into an image, each once, sorted."""
    return " AND ".join(sorted(set(licenses)))


def jpeg_bytes(image: Image.Image, *, quality: int = 90) -> bytes:
    """An image as a JPEG without metadata."""
    return encode(image, "JPEG", quality=quality)


LETTERS = "ABCDEFGH"


class Choices(NamedTuple):
    """Options as shown (``"B. blue"``) and the right one's letter; without options, the answer itself."""

    options: tuple[str, ...]
    answer: str


class LazyRow(NamedTuple):
    """A row's name, and what builds the row on demand."""

    name: str
    build: Callable[[], SourceRow]


def image_row(
    name: str, image: bytes, question: str, answer: str | Choices, truth: Truth, *, category: str, license: str = ""
) -> SourceRow:
    """A row with one image; a text is the answer of an open question."""
    options, right = answer if isinstance(answer, Choices) else ((), answer)
    return SourceRow(name, (image,), question, right, options, truth=truth, category=category, license=license)


def with_details(row: SourceRow, **known: object) -> SourceRow:
    details = {**json.loads(row.truth.details or "{}"), **known}
    return replace(row, truth=replace(row.truth, details=json.dumps(details, sort_keys=True, ensure_ascii=False)))


def lazy_rows(kind: str, build: Callable[..., SourceRow], of: Iterable[object], seed: int) -> list[LazyRow]:
    """A row ``kind/00``, ``kind/01`` … for each thing in ``of``: ``build(name, thing, seed)``."""
    names = ((f"{kind}/{number:02d}", thing) for number, thing in enumerate(of))
    return [LazyRow(name, partial(build, name, thing, seed)) for name, thing in names]


def rows_by_image(kind: str, build: Callable[..., SourceRow], n_questions: Iterable[int], seed: int) -> list[LazyRow]:
    """The rows of numbered images with ``n_questions`` each, ``kind/00``, ``kind/00/1`` …; those of an image follow
    each other, so that it is made once. ``build(name, number, n, seed)`` makes one."""
    numbers = [(number, n) for number, n_of_image in enumerate(n_questions) for n in range(n_of_image)]
    names = [(f"{kind}/{number:02d}" + (f"/{n}" if n else ""), number, n) for number, n in numbers]
    rows = [LazyRow(name, partial(build, name, number, n, seed)) for name, number, n in names]
    return sorted(rows, key=lambda row: row.name.split("/"))


def built(row: LazyRow) -> SourceRow | BadRow:
    """The row; one whose material is not installed says so."""
    try:
        return row.build()
    except MaterialError as error:
        return BadRow(row.name, Reason.MATERIAL_MISSING, str(error), {})


def installed(package: str) -> str:
    """The version of a package whose files or code determine the rows' bytes."""
    with suppress(PackageNotFoundError):
        return version(package)
    return "missing"


def lettered(right: str, wrong: Sequence[str], *, place: int, rng: Random) -> Choices:
    """All options in a seeded order, ``right`` at ``place`` modulo their number."""
    options = rng.sample(list(wrong), len(wrong))
    place %= len(options) + 1
    options.insert(place, right)
    return in_order(right, options)


def in_order(right: str, options: Sequence[str]) -> Choices:
    """Options that have an order of their own (numbers, a chart's bars), left in it."""
    lines = tuple(f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False))
    return Choices(lines, LETTERS[list(options).index(right)])


QUESTIONS = data_beside(__file__, "photographs")
DARKEST = 9
"""The grey level that black has in an underexposed image."""
_TURNS = {90: Image.Transpose.ROTATE_90, 180: Image.Transpose.ROTATE_180, 270: Image.Transpose.ROTATE_270}


def photographs(kind: str, seed: int) -> list[LazyRow]:
    """The easy questions (``photo``), those at a glance (``overview``) or the snapshots by name, not made yet."""
    questions = QUESTIONS[kind]
    own = (f"{number:02d}" if kind == "snapshot" else each["photograph"] for number, each in enumerate(questions))
    rows = ((f"{kind}/{name}", number) for number, name in enumerate(own))
    return [LazyRow(name, partial(_row, name, number, questions[number], seed)) for name, number in rows]


def _row(name: str, number: int, question: Mapping[str, Any], seed: int) -> SourceRow:
    answer: str | Choices = question["answer"]
    if "wrong" in question:
        answer = lettered(question["answer"], question["wrong"], place=number + seed, rng=Random(f"{seed}/{name}"))
    boxes = (TruthBox(question["box"]["label"], *question["box"]["sides"]),) if "box" in question else ()
    truth = Truth(boxes, count=question.get("count"), angle=question.get("angle"), contrast=question.get("contrast"))
    image, license = _image(question["photograph"], truth), PHOTOGRAPHS[question["photograph"]].license
    return image_row(name, image, question["question"], answer, truth, category=question["category"], license=license)


def _image(photograph: str, truth: Truth) -> bytes:
    """The packaged file, or a snapshot of it, as ``truth`` says."""
    if truth.angle is None and truth.contrast is None:
        return photograph_bytes(photograph)
    image = photograph_image(photograph)
    if truth.contrast is not None:
        levels = [DARKEST + round(level * truth.contrast) for level in range(256)]
        image = image.point(levels * len(image.getbands()))
    return jpeg_bytes(image if truth.angle is None else image.transpose(_TURNS[int(truth.angle)]), quality=95)
