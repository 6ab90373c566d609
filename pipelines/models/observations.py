"""Observations as a model reads them: text without meaning to a tokenizer, images that a processor takes."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from PIL import Image

from darkroom.pipelines.records import Edit, ImageRef, Observation
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.sandbox import Observation as Seen
from darkroom.sandbox.neutral import neutralise

THINNEST = 200
"""Ratio of an image's longer side to its shorter from which Qwen's processors raise an error."""


def observed(
    observation: Seen, special_tokens: Sequence[str] = (), *, ref: Callable[[Image.Image], ImageRef] | None = None
) -> Observation:
    """Make a record of an observation. ``special_tokens`` are those of the tokenizer that reads the text.

    ``ref`` names an image; by default it is the digest of its pixels.
    """
    edits = tuple(Edit(edit.kind, edit.before, edit.after) for edit in observation.edits)
    images = tuple((ref or pixel_ref)(image.pixels) for image in observation.images)
    text, error = (
        neutralise(observation.text, special_tokens),
        observation.error and neutralise(observation.error, special_tokens),
    )
    return viewable(Observation(observation.status, text, images, error, edits))


def pixel_ref(image: Image.Image) -> ImageRef:
    """An image of no store, by the digest of its pixels, as the sandbox shows them: RGB."""
    plain = image.convert("RGB")
    return ImageRef(digest_bytes(plain.tobytes()), plain.width, plain.height, plain.mode, "PNG")


def is_too_thin(width: int, height: int) -> bool:
    """Return whether Qwen's processors refuse an image of so many pixels; the released code of Thyme takes none of
    these."""
    return max(width, height) >= THINNEST * min(width, height)


def viewable(observation: Observation) -> Observation:
    """Replace an observation that has an image too thin for the model by the error that the model reads."""
    thin = [image for image in observation.images if is_too_thin(image.width, image.height)]
    if not thin:
        return observation
    error = f"ValueError: an image of {thin[0].width}x{thin[0].height} pixels is too thin to be shown"
    return replace(observation, status="error", images=(), error=error)
