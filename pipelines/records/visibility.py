"""Visibility of a sample's target as a model sees it: one measurement for all families.

Measured by ``pipelines/vision/visibility.py``. A target between ``SMALL_SIDE`` and ``LARGE_SIDE`` may be looked at
closer or not; the embedded policy says of it neither that it cannot be seen nor that it is plain to see.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

Size = Literal["small", "between", "large", "unknown"]

SMALL_SIDE = 28.0
"""Pixels of the model, the square of one visual token: what is smaller is not seen reliably."""

LARGE_SIDE = 84.0
"""Three tokens: a thing of this size is seen as it is."""

FAINT_LEVELS, CLEAR_LEVELS = 48.0, 64.0
"""Of 255. Faded and dark images of ours spread over 20 to 34 levels, print, charts and photographs over 70 to 255."""

SEEN_SIDE = 2 * SMALL_SIDE
"""What has so many pixels of the model is not too small."""

SEEN_LEVELS = 2 * FAINT_LEVELS
"""What spreads over so many grey levels is neither too faint nor too dark."""

SMALL_SHARE = 0.05
"""Of the image: Thyme's bound on small targets in its high-resolution data (§4.1)."""

DETAIL_SHARE, DETAIL_SIDE = 0.01, 1000
"""A thing below this share of an image with a longer side over ``DETAIL_SIDE`` pixels is a detail of it."""

TURNED_DEGREES = 2.0


@dataclass(frozen=True, slots=True)
class Visibility:
    """The target, or the whole image where none is known.

    ``side``: its shorter side in pixels of the model's view. ``share``: of the image's area. ``levels``: between the
    0.5th and the 99.5th percentile of the grey levels in it, as the model sees it. ``angle``: degrees by which the
    image is known to be turned. None: not known.
    """

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
        return "small" if self.side < SMALL_SIDE else "large" if self.side >= LARGE_SIDE else "between"

    @property
    def is_faint(self) -> bool:
        return self.levels is not None and self.levels < FAINT_LEVELS

    @property
    def is_turned(self) -> bool:
        return self.angle is not None and abs((self.angle + 180) % 360 - 180) > TURNED_DEGREES

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
