"""An observation in the order in which a model reads it: texts, and images by their numbers."""

from collections.abc import Iterator, Sequence
from typing import Literal, Self

from pydantic import BaseModel

from darkroom.pipelines.models.messages import Text
from darkroom.pipelines.models.protocols import Protocol
from darkroom.pipelines.records import Observation

Parts = Sequence[str | int]
"""Texts, and numbers of the observation's images, from 0."""


class ObservationPart(BaseModel):
    """A piece of what a model reads: text, or the number of an image in ``images``, counted from 0."""

    type: Literal["text", "image"]
    text: str | None = None
    image: int | None = None

    @classmethod
    def of(cls, parts: Parts) -> list[Self]:
        """As JSON has them."""
        return [
            cls(type="text", text=part) if isinstance(part, str) else cls(type="image", image=part) for part in parts
        ]


def numbered(protocol: Protocol, observation: Observation) -> tuple[str | int, ...]:
    """What a protocol makes of an observation, its tag included."""
    numbers: Iterator[int] = iter(range(len(observation.images)))
    return tuple(part.text if isinstance(part, Text) else next(numbers) for part in protocol.wrap(observation))


def without_marker(parts: Parts, protocol: Protocol) -> list[str | int]:
    """The parts without the tag around them, where that is the client's to write."""
    first, *others = parts
    if isinstance(first, str):
        first = first.removeprefix(f"<{protocol.marker}>").removeprefix("\n")
    *inner, last = [first, *others]
    if isinstance(last, str):
        last = last.removesuffix(f"</{protocol.marker}>")
    return [part for part in (*inner, last) if part != ""]
