"""A row of a shipped dataset as turns: who says what, with which pictures, and whether the loss counts it.

What every layout is made of. Observations are turns of the user, as GRPO has them; their markers are the protocol's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from cattrs import BaseValidationError

from pipelines.layouts.faults import Unfit, Unrenderable
from pipelines.messages import Part, Picture, Role, Text
from pipelines.protocols import PROTOCOLS, Protocol
from pipelines.records import ImageRef, LossPolicy, Observation, VideoRef, from_row
from pipelines.rejects import RowFault

Row = Mapping[str, Any]
"""A row with the columns of ``pipelines.export.FEATURES``."""

_WORDS = ("trajectory_id", "question", "final_thought", "answer", "mode")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a row. Only the model's own turns are ever ``trained``."""

    role: Role
    parts: tuple[Part, ...]
    trained: bool = False

    @property
    def images(self) -> tuple[ImageRef, ...]:
        """The pictures that it shows, in order."""
        return tuple(part.image for part in self.parts if isinstance(part, Picture))


def turns(row: Row) -> tuple[Turn, ...]:
    """The whole conversation. Raises ``Unrenderable`` when the row contradicts itself or its protocol."""
    said = (*opening(row), *_rollout(row))
    described, shown = list(refs(row)), [image for turn in said for image in turn.images]
    if shown != described:
        raise Unrenderable(
            Unfit.IMAGES_DIFFER,
            f"its turns show the images {[described.index(image) for image in shown]}; the row has {len(described)}, "
            "each to be shown once, in order; export the dataset again",
        )
    return said


def opening(row: Row) -> tuple[Turn, ...]:
    """The conversation before the model's first turn."""
    _require_words(row)
    return asked(row, refs(row)[: row["n_question_images"]])


def asked(row: Row, images: tuple[ImageRef, ...]) -> tuple[Turn, ...]:
    """The row's question about ``images``, as its protocol opens in its mode."""
    protocol = protocol_of(row)
    if row["mode"] not in protocol.modes:
        raise Unrenderable(Unfit.MALFORMED_ROW, f"{protocol.name} has no mode {row['mode']!r}")
    question = "\n".join([row["question"], *row["choices"]])  # as pipelines.tasks.question_text has it
    videos = tuple(record_of(VideoRef, ref) for ref in row.get("video_refs") or ())
    try:
        said = protocol.opening(question, images, videos, mode=row["mode"])
    except RowFault as fault:
        raise Unrenderable(Unfit.VIDEOS_UNSUPPORTED, fault.evidence) from fault
    return tuple(Turn(message.role, message.parts) for message in said)


def first_trained(n_rounds: int, loss_policy: str) -> int:
    """The index of the first round that is trained; ``n_rounds`` stands for the final thought and answer.

    ``last_round`` is Thyme §3.2: of samples with two or more rounds of code, everything up to and including the last
    observation is out of the loss. With one round of code there is no earlier attempt to unlearn: all is trained.
    """
    return n_rounds if loss_policy == "last_round" and n_rounds >= 2 else 0


def protocol_of(row: Row) -> Protocol:
    """The protocol that the row was written in."""
    try:
        return PROTOCOLS[row["protocol"]]
    except KeyError:
        known = ", ".join(sorted(PROTOCOLS))
        raise Unrenderable(Unfit.UNKNOWN_PROTOCOL, f"unknown protocol {row['protocol']!r}; known: {known}") from None


def refs(row: Row) -> tuple[ImageRef, ...]:
    """The row's images, in the order in which it shows them."""
    return tuple(record_of(ImageRef, ref) for ref in row["image_refs"])


def _rollout(row: Row) -> list[Turn]:
    protocol, rounds = protocol_of(row), row["rounds"]
    start = first_trained(len(rounds), row["loss_policy"])
    said: list[Turn] = []
    try:
        for index, turn in enumerate(rounds):
            written = protocol.write_round(turn["thought"], turn["code"], first=index == 0)
            said.append(Turn("assistant", (Text(written),), trained=index >= start))
            said.append(Turn("user", tuple(protocol.wrap(_observation(turn, row)))))
        answer = protocol.write_answer(row["final_thought"], row["answer"], first=not rounds)
    except RowFault as fault:
        raise Unrenderable(Unfit.MALFORMED_TURN, fault.evidence) from fault
    return [*said, Turn("assistant", (Text(answer),), trained=True)]


def _observation(turn: Mapping[str, Any], row: Row) -> Observation:
    seen, images = turn["observation"], refs(row)
    if any(not 0 <= index < len(images) for index in seen["images"]):
        raise Unrenderable(
            Unfit.IMAGES_DIFFER,
            f"an observation names images {list(seen['images'])}, the row has {len(images)}; export the dataset again",
        )
    return Observation(
        status=seen["status"],
        text=seen["text"],
        images=tuple(images[index] for index in seen["images"]),
        error=seen["error"],
    )


def _require_words(row: Row) -> None:
    for name in _WORDS:
        if not isinstance(row[name], str):
            raise Unrenderable(Unfit.MALFORMED_ROW, f"`{name}` is {row[name]!r}; expected a text")
    if not row["question"].strip():
        raise Unrenderable(Unfit.EMPTY_TURN, "the question is empty")
    if row["loss_policy"] not in get_args(LossPolicy):
        raise Unrenderable(Unfit.MALFORMED_ROW, f"unknown loss policy {row['loss_policy']!r}")
    for name in ("choices", "rounds", "image_refs"):
        if not isinstance(row[name], list | tuple):
            raise Unrenderable(Unfit.MALFORMED_ROW, f"`{name}` is {row[name]!r}; expected a list")
    for number, turn in enumerate(row["rounds"], start=1):
        words = (turn["thought"], turn["code"], turn["observation"]["text"])
        if not all(isinstance(word, str) for word in words):
            raise Unrenderable(Unfit.MALFORMED_ROW, f"round {number} lacks its thought, code or observation")


def record_of(kind: type[Any], ref: Mapping[str, Any]) -> Any:
    """A part of a row as a record. Raises ``Unrenderable`` (malformed_row)."""
    try:
        return from_row(kind, ref)
    except BaseValidationError as fault:
        raise Unrenderable(Unfit.MALFORMED_ROW, f"{kind.__name__} expected; found {dict(ref)}") from fault
