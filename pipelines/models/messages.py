"""Messages of text and images to a policy, in no vendor's format; observations as a model reads them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

from PIL import Image

from darkroom.pipelines.records import Edit, ImageRef, Observation
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.records.samples import IMAGE_MARK
from darkroom.sandbox import Observation as Seen
from darkroom.sandbox.neutral import neutralise

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image of the store."""

    image: ImageRef


Part = Text | ImagePart


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    parts: tuple[Part, ...]


def message(role: Role, *parts: Part | str) -> Message:
    return Message(role, tuple(Text(part) if isinstance(part, str) else part for part in parts))


def opening_messages(
    system: str, images: Iterable[ImageRef], user: str, *, question: str = ""
) -> tuple[Message, Message]:
    """A system message, and one of the user: the images, then the text, or each image at its mark in ``question``."""
    shown = [[ImagePart(image)] for image in images]
    return message("system", system), message("user", *with_images(user, question, shown))


def with_images(user: str, question: str, images: Sequence[Sequence[Part]]) -> tuple[Part, ...]:
    """The user's text with ``images``, each an image with what belongs to it: at the marks of ``question``, a part of
    the text, where it has one for each, else before the text."""
    pieces = question.split(IMAGE_MARK)
    if not images or len(pieces) != len(images) + 1 or question not in user:
        return joined([*chain.from_iterable(images), Text(user)])
    before, _, after = user.partition(question)
    placed = (part for image, piece in zip(images, pieces[1:], strict=True) for part in (*image, Text(piece)))
    return joined([Text(before + pieces[0]), *placed, Text(after)])


def as_json(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Messages with images as their sha256, for the ledger's keys."""

    def as_part(part: Part) -> str | dict[str, str]:
        return part.text if isinstance(part, Text) else {"image": part.image.sha256}

    return [{"role": each.role, "parts": [*map(as_part, each.parts)]} for each in messages]


def joined(parts: Iterable[Part]) -> tuple[Part, ...]:
    result: list[Part] = []
    for part in parts:
        last = result[-1] if result else None
        if isinstance(part, Text) and isinstance(last, Text):
            result[-1] = Text(last.text + part.text)
        else:
            result.append(part)
    return tuple(result)


THINNEST = 200
"""Ratio of an image's longer side to its shorter from which Qwen's processors raise an error."""


def observed(
    observation: Seen, special_tokens: Sequence[str] = (), *, ref: Callable[[Image.Image], ImageRef] | None = None
) -> Observation:
    """Make a record of an observation. ``special_tokens`` are those of the tokenizer that reads the text. ``ref`` names
    an image; by default it is the digest of its pixels."""
    edits = tuple(Edit(edit.kind, edit.before, edit.after) for edit in observation.edits)
    images = tuple((ref or pixel_ref)(image.pixels) for image in observation.images)
    text = neutralise(observation.text, special_tokens)
    error = observation.error and neutralise(observation.error, special_tokens)
    return viewable(Observation(observation.status, text, images, error, edits))


def pixel_ref(image: Image.Image) -> ImageRef:
    """An image of no store, by the digest of its pixels, as the sandbox shows them: RGB."""
    plain = image.convert("RGB")
    return ImageRef(digest_bytes(plain.tobytes()), plain.width, plain.height, plain.mode, "PNG")


def is_too_thin(width: int, height: int) -> bool:
    """Return whether Qwen's processors refuse an image of so many pixels; Thyme's released code takes none of these."""
    return max(width, height) >= THINNEST * min(width, height)


def viewable(observation: Observation) -> Observation:
    """Replace an observation that has an image too thin for the model by the error that the model reads."""
    if not (thin := [image for image in observation.images if is_too_thin(image.width, image.height)]):
        return observation
    error = f"ValueError: an image of {thin[0].width}x{thin[0].height} pixels is too thin to be shown"
    return replace(observation, status="error", images=(), error=error)
