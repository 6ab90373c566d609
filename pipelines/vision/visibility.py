"""Visibility of an image's target as a model sees it, after its resize; and whether a turn of the image can be seen.

One measurement of the target for all families. Between ``SMALL_SIDE`` and ``LARGE_SIDE`` it may be looked at closer or
not; the embedded policy says of it neither that it cannot be seen nor that it is plain to see.

Qwen's rule: both sides become multiples of a token's side (28 pixels for Qwen2.5-VL, 32 for Qwen3-VL), and the area is
brought between the least and the most pixels with the ratio of the sides kept as nearly as that allows.

Three measures of the grey levels tell whether a turn can be seen. Photographs vary coarsely (sky above, ground below),
which textures don't; print, walls and charts run along two directions; and what looks the same after a quarter or a
half turn has no upper side, whatever else it has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Literal, Self, cast, get_args

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from darkroom.pipelines.records import ImageRef, Sample
from darkroom.pipelines.records.geometry import Box, PixelLimits
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.records.samples import FOUND, details_of
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.vision.image_transform import TURNED_DEGREES, residual
from darkroom.pipelines.vision.registration import correlation, scaled_gray

Size = Literal["small", "between", "large", "unknown"]
Findability = Literal["named", "visible", "searched"]
"""How one finds a target: the question says where; it is seen; or only a closer look tells it from others like it."""

SMALL_SIDE = 28.0
"""Pixels of the model, the square of one visual token: what is smaller is not seen reliably."""

LARGE_SIDE = 84.0
"""Three tokens: a thing of this size is seen as it is."""

FAINT_LEVELS = 48.0
CLEAR_LEVELS = 64.0
"""Of 255. Faded and dark images of ours spread over 20 to 34 levels, print, charts and photographs over 70 to 255."""

SEEN_SIDE = 2 * SMALL_SIDE
"""What has so many pixels of the model is not too small."""

SEEN_LEVELS = 2 * FAINT_LEVELS
"""What spreads over so many grey levels is neither too faint nor too dark."""

UNSEEN_SIDE, UNSEEN_LEVELS = SMALL_SIDE / 4, FAINT_LEVELS / 4
"""A smaller or fainter target leaves no trace in the model's view: it has to be searched for."""

SMALL_SHARE = 0.05
"""Of the image: Thyme's bound on small targets in its high-resolution data (§4.1)."""

DETAIL_SHARE = 0.01
DETAIL_SIDE = 1000
"""A thing below this share of an image with a longer side over ``DETAIL_SIDE`` pixels is a detail of it."""


@dataclass(frozen=True, slots=True)
class Visibility:
    """The target, or the whole image where none is known; None is an unknown value. ``side``: its shorter side in
    pixels of the model's view. ``share``: of the image's area. ``levels``: between the 0.5th and the 99.5th percentile
    of the grey levels in it, as the model sees it. ``angle``: degrees by which the image is known to be turned."""

    side: float | None = None
    share: float | None = None
    levels: float | None = None
    angle: float | None = None
    longest: int = 0
    """The image's longer side, in its own pixels."""

    @classmethod
    def from_json(cls, values: Mapping[str, Any] | None) -> Self:
        """Read what ``as_json`` returned; nothing is known of None."""
        return cls(**(values or {}))

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def size(self) -> Size:
        if self.side is None:
            return "unknown"
        if self.side < SMALL_SIDE:
            return "small"
        return "large" if self.side >= LARGE_SIDE else "between"

    @property
    def is_faint(self) -> bool:
        return self.levels is not None and self.levels < FAINT_LEVELS

    @property
    def is_turned(self) -> bool:
        return self.angle is not None and residual(self.angle) > TURNED_DEGREES

    @property
    def is_detail(self) -> bool:
        """True if the target is a detail of a large image."""
        return self.share is not None and self.share < DETAIL_SHARE and self.longest > DETAIL_SIDE

    @property
    def needs_closer_look(self) -> bool:
        """True if a part has to be cut out or enlarged: the target is small, or a detail and not large."""
        return self.size == "small" or (self.size == "between" and self.is_detail)

    @property
    def is_plain(self) -> bool:
        """True if one may say that the target is plain to see."""
        clear = self.levels is not None and self.levels >= CLEAR_LEVELS
        return self.size == "large" and clear and not self.is_turned


SURROUNDINGS = 0.1
"""What is around the target belongs to its contrast: a share of its longer side."""


def visibility_hint(sample: Sample, store: ImageStore) -> dict[str, Any]:
    """A sample's measurement as the hint keeps it: ``visibility``, as JSON; nothing without an image."""
    return {"visibility": visibility_of(sample, store).as_json()} if sample.images else {}


def visibility_of(sample: Sample, store: ImageStore) -> Visibility:
    """Visibility of the first target, else of the first image, if any. Raises what opening the image raises."""
    if not sample.images:
        return Visibility()
    target = sample.truth.boxes[0] if sample.truth.boxes else None
    image = sample.images[target.image if target else 0]
    return visibility_in(image, target.box if target else None, store, angle=sample.truth.angle)


def findability(sample: Sample, store: ImageStore) -> Findability | None:
    """The way to find the first target, as the source states it, else as measured; None without one. Raises
    ``RowError`` (malformed_row) for another statement, and what opening its image raises."""
    if not sample.truth.boxes:
        return None
    if stated := details_of(sample).get(FOUND):
        if stated not in get_args(Findability):
            expected = ", ".join(get_args(Findability))
            raise RowError(Reason.MALFORMED_ROW, f"truth.details.{FOUND} is one of {expected}; found {stated!r}")
        return cast(Findability, stated)
    if ", ".join(map(str, sample.truth.boxes[0].box)) in sample.question:
        return "named"
    view = visibility_of(sample, store)
    is_unseen = (view.side or 0) < UNSEEN_SIDE or (view.levels or 0) < UNSEEN_LEVELS
    return "searched" if is_unseen else "visible"


def candidates(sample: Sample) -> list[Box]:
    """The first target and all that the truth calls by its name in the same image, from left to right."""
    target = sample.truth.boxes[0]
    return sorted(each.box for each in sample.truth.boxes if (each.label, each.image) == (target.label, target.image))


def visibility_as_given(
    sample: Sample, images: Sequence[ImageRef], hint: Mapping[str, Any], store: ImageStore
) -> Visibility:
    """The target in ``images``, which a recipe made of the sample's: at its size on them, the whole image's contrast.
    ``hint``: has the ``angle`` by which the recipe turned the image, if it did."""
    target = sample.truth.boxes[0] if sample.truth.boxes else None
    index = target.image if target and target.image < len(images) else 0
    image = images[index]
    known = hint.get("angle", sample.truth.angle)
    angle = None if known is None else float(known)
    if target is None or image == sample.images[index]:
        return visibility_in(image, target.box if target else None, store, angle=angle)
    whole = visibility_in(image, None, store, angle=angle)
    return replace(whole, side=shown_side(target.box, image.width, image.height))


def visibility_in(image: ImageRef, target: Box | None, store: ImageStore, *, angle: float | None = None) -> Visibility:
    """Visibility of ``target``, in pixels of ``image``, or of the whole image."""
    whole = Visibility(levels=_stored_levels(store, image, target), angle=angle, longest=max(image.width, image.height))
    if target is None:
        return whole
    share = round(target.area / (image.width * image.height), 6)
    return replace(whole, side=shown_side(target, image.width, image.height), share=share)


@dataclass(frozen=True, slots=True)
class VisionModel:
    """A model's view: ``side`` of the square that one token stands for, bounds on an image's pixels."""

    name: str
    side: int
    min_pixels: int = 3_136
    max_pixels: int = 2_000_000
    """Both as PyVision-RL §3.4 has them."""


QWEN2_5_VL = VisionModel("Qwen2.5-VL", 28)
QWEN3_VL = VisionModel("Qwen3-VL", 32)


def resized(width: int, height: int, vision: VisionModel) -> tuple[int, int]:
    """The size at which the model sees an image of ``width`` x ``height`` pixels, both at least 1."""
    return PixelLimits(vision.min_pixels, vision.max_pixels, vision.side).fit(width, height)


def visual_tokens(width: int, height: int, vision: VisionModel) -> int:
    """The tokens that an image of ``width`` x ``height`` pixels costs."""
    wide, high = resized(width, height, vision)
    return wide * high // vision.side**2


def shown_side(target: Box, width: int, height: int) -> float:
    """The shorter side of ``target`` in pixels of the model, which resizes the image of ``width`` x ``height``."""
    wide, high = resized(width, height, QWEN2_5_VL)
    return round(min(target.width * wide / width, target.height * high / height), 1)


def levels_shown(part: Image.Image, scale: float) -> float:
    """Between which grey levels ``part`` lies after a resize by ``scale``, without the darkest and lightest 0.5 %."""
    size = (max(1, round(part.width * scale)), max(1, round(part.height * scale)))
    grey = part.convert("L")
    levels = np.asarray(grey.resize(size, Image.Resampling.BOX) if scale < 1 else grey)
    low, high = np.percentile(levels, (0.5, 99.5))
    return round(float(high - low), 1)


@lru_cache(maxsize=4096)
def _stored_levels(store: ImageStore, image: ImageRef, target: Box | None) -> float:
    pixels = store.open(image)
    scale = resized(image.width, image.height, QWEN2_5_VL)[0] / image.width
    if target is None:
        return levels_shown(pixels, scale)
    margin = max(2, round(SURROUNDINGS * max(target.width, target.height)))
    return levels_shown(pixels.crop(target.grown(margin).clipped(image.width, image.height)), scale)


Levels = NDArray[np.float32]

MIN_LAYOUT = 0.05
"""Share of the variance in an 8 x 8 copy. Gravel, grass, noise: up to 0.03; photographs 0.17 to 0.78."""

MIN_GRID = 0.25
"""How far edges run along two perpendicular directions. Noise: up to 0.2; print 0.3; charts 0.4 to 0.9."""

MAX_SYMMETRY = 0.85
"""Correlation with the image's own quarter and half turns. Photographs: up to 0.6."""


@dataclass(frozen=True, slots=True)
class Orientation:
    """Evidence of an upper side, each 0..1 (``symmetry``: against it, -1..1)."""

    layout: float
    grid: float
    symmetry: float

    @property
    def visible(self) -> bool:
        """True if a turn of the image can be seen."""
        return (self.layout >= MIN_LAYOUT or self.grid >= MIN_GRID) and self.symmetry <= MAX_SYMMETRY

    @property
    def words(self) -> str:
        """The measures beside their bars, for a rejected row."""
        layout = f"layout {self.layout:g}, grid {self.grid:g} (needed: {MIN_LAYOUT:g} or {MIN_GRID:g})"
        return f"{layout}, symmetry {self.symmetry:g} (at most {MAX_SYMMETRY:g})"


def orientation(image: Image.Image) -> Orientation:
    levels = scaled_gray(image, min(1.0, 512 / max(image.size)), min_side=8).astype(np.float32)
    if (variance := float(levels.var())) < 1:
        return Orientation(0.0, 0.0, 0.0)
    layout = float(_copy(levels, 8).var()) / variance
    # the length of the mean of the edges' directions, four-fold, weighted by the edges' energy
    edges = cv2.Sobel(levels, cv2.CV_32F, 1, 0) + 1j * cv2.Sobel(levels, cv2.CV_32F, 0, 1)
    energy = np.abs(edges) ** 2
    total = float(energy.sum())
    grid = float(np.abs((edges**4 / np.maximum(energy, 1e-6)).sum())) / total if total else 0.0
    return Orientation(round(layout, 4), round(grid, 4), round(_symmetry(levels), 4))


def _copy(levels: Levels, side: int) -> Levels:
    return np.asarray(cv2.resize(levels, (side, side), interpolation=cv2.INTER_AREA), np.float32)


def _symmetry(levels: Levels) -> float:
    """The best correlation of the disc in the middle with one of its own turns."""
    side = 32
    copy = _copy(levels, side)
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    disc = x**2 + y**2 <= (side / 2) ** 2
    return max(correlation(copy[disc], np.rot90(copy, turns)[disc]) for turns in (1, 2, 3))
