"""Messages of text and images to a policy, in no vendor's format."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from darkroom.pipelines.records import ImageRef
from darkroom.pipelines.records.samples import IMAGE_MARK

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
    return message("system", system), message(
        "user", *with_images(user, question, [[ImagePart(image)] for image in images])
    )


def with_images(user: str, question: str, images: Sequence[Sequence[Part]]) -> tuple[Part, ...]:
    """The user's text with ``images``, each an image with what belongs to it.

    They stand at the marks of ``question``, a part of the text, where it has one for each, and else before the text.
    """
    pieces = question.split(IMAGE_MARK)
    if not images or len(pieces) != len(images) + 1 or question not in user:
        return joined([*chain.from_iterable(images), Text(user)])
    before, _, after = user.partition(question)
    placed = (part for image, piece in zip(images, pieces[1:], strict=True) for part in (*image, Text(piece)))
    return joined([Text(before + pieces[0]), *placed, Text(after)])


def as_json(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Messages with images as their sha256, for the ledger's keys."""
    return [
        {
            "role": each.role,
            "parts": [part.text if isinstance(part, Text) else {"image": part.image.sha256} for part in each.parts],
        }
        for each in messages
    ]


def joined(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The parts, with adjacent texts joined."""
    result: list[Part] = []
    for part in parts:
        last = result[-1] if result else None
        if isinstance(part, Text) and isinstance(last, Text):
            result[-1] = Text(last.text + part.text)
        else:
            result.append(part)
    return tuple(result)
