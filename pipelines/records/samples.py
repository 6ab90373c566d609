"""A sample, and what it shows."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.geometry import Box


@dataclass(frozen=True, slots=True)
class ImageRef:
    """An image of the store: ``sha256`` of its bytes; a derived one names its parent and what made it."""

    sha256: str
    width: int
    height: int
    mode: str
    format: str
    parent: str | None = None
    made_by: str | None = None


@dataclass(frozen=True, slots=True)
class VideoRef:
    """A video of the store: ``sha256`` of its bytes. ``n_frames`` counts what decodes; ``fps`` is their average."""

    sha256: str
    format: str
    width: int
    height: int
    n_frames: int
    fps: float


@dataclass(frozen=True, slots=True)
class TruthBox:
    """Where something is: pixels of ``images[image]``, top-left origin, right and bottom exclusive."""

    label: str
    x1: int
    y1: int
    x2: int
    y2: int
    image: int = 0

    @property
    def box(self) -> Box:
        """The rectangle alone."""
        return Box(self.x1, self.y1, self.x2, self.y2)


@dataclass(frozen=True, slots=True)
class Truth:
    """What is known about a sample. Privileged: no policy sees it unless the recipe says so."""

    boxes: tuple[TruthBox, ...] = ()
    angle: float | None = None
    contrast: float | None = None
    count: int | None = None
    details: str | None = None
    """Anything else, as JSON (a maths problem's verifier and its parameters, for instance)."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A question about images. ``sample_id`` is the digest of its content, wherever it came from."""

    sample_id: str
    source: str
    source_row: str
    license: str
    images: tuple[ImageRef, ...]
    question: str
    choices: tuple[str, ...]
    answer: str
    truth: Truth
    category: str
    videos: tuple[VideoRef, ...] = ()
