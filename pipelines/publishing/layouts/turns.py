r"""A row of a shipped dataset as turns, from which every layout is made: role, images, and whether the loss counts it.

Observations are turns of the user, as GRPO has them; their markers are the protocol's.

Texts: trainers count a literal ``<image>`` of a question as an image, and read a printed ``<|im_end|>`` as the end of a
turn. ``escaped`` gives both a blank, which ``unescaped`` takes out again:

    <image>        < image>         each blank that is there already is kept: < image> becomes <  image>
    <|im_end|>     <| im_end|>

An image is ``<image>`` in all layouts but TRL's, which have parts and escape special tokens only.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, get_args

from cattrs import BaseValidationError

from darkroom.pipelines.models.messages import ImagePart, Part, Role, Text, joined
from darkroom.pipelines.models.protocols import PROTOCOLS, Protocol
from darkroom.pipelines.records import ImageRef, LossPolicy, Observation, VideoRef, from_row
from darkroom.pipelines.records.reject_reasons import Refused, RowError
from darkroom.sandbox.errors import raised_as

Row = Mapping[str, Any]
"""A row with the columns of ``darkroom.pipelines.publishing.features.TRAJECTORIES``."""


class Unfit(StrEnum):
    """Every reason for which an export rejects a row."""

    MALFORMED_ROW = "malformed_row"
    UNKNOWN_PROTOCOL = "unknown_protocol"
    MALFORMED_TURN = "malformed_turn"
    MISSING_IMAGE = "missing_image"
    CHANGED_IMAGE = "changed_image"
    IMAGES_DIFFER = "images_differ"
    EMPTY_TURN = "empty_turn"
    ROLES_DIFFER = "roles_differ"
    IMAGES_UNSUPPORTED = "images_unsupported"
    VIDEOS_UNSUPPORTED = "videos_unsupported"
    DUPLICATE_PROMPT = "duplicate_prompt"


class Unrenderable(Refused[Unfit]):
    """A row that the layout cannot hold, with its reason: a line of ``rejects.jsonl``; the export continues."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a row. Only the model's own turns are ever ``trained``."""

    role: Role
    parts: tuple[Part, ...]
    trained: bool = False

    @property
    def images(self) -> tuple[ImageRef, ...]:
        """The images that it shows, in order."""
        return tuple(part.image for part in self.parts if isinstance(part, ImagePart))


def turns(row: Row) -> tuple[Turn, ...]:
    """The whole conversation. Raises ``Unrenderable`` when the row contradicts itself or its protocol."""
    conversation = (*opening(row), *_rollout(row))
    described, images = list(refs(row)), [image for turn in conversation for image in turn.images]
    if images != described:
        shown = [described.index(image) for image in images]
        found = f"its turns show the images {shown}; the row has {len(described)}"
        raise Unrenderable(Unfit.IMAGES_DIFFER, f"{found}, each to be shown once, in order; export the dataset again")
    return conversation


def opening(row: Row) -> tuple[Turn, ...]:
    """The conversation before the model's first turn."""
    texts = ("trajectory_id", "question", "final_thought", "answer", "mode")
    require_types(row, texts=texts, lists=("choices", "rounds", "image_refs"))
    if row["loss_policy"] not in get_args(LossPolicy):
        raise Unrenderable(Unfit.MALFORMED_ROW, f"unknown loss policy {row['loss_policy']!r}")
    for number, turn in enumerate(row["rounds"], start=1):
        if not all(isinstance(text, str) for text in (turn["thought"], turn["code"], turn["observation"]["text"])):
            raise Unrenderable(Unfit.MALFORMED_ROW, f"round {number} lacks its thought, code or observation")
    return question_turns(row, refs(row)[: row["n_question_images"]])


def question_turns(row: Row, images: tuple[ImageRef, ...]) -> tuple[Turn, ...]:
    """The row's question about ``images``, as its protocol opens in its mode."""
    protocol = protocol_of(row)
    if row["mode"] not in protocol.modes:
        raise Unrenderable(Unfit.MALFORMED_ROW, f"{protocol.name} has no mode {row['mode']!r}")
    question = "\n".join([row["question"], *row["choices"]])  # as darkroom.pipelines.models.tasks.question_text has it
    videos = tuple(record_of(VideoRef, ref) for ref in row.get("video_refs") or ())
    with raised_as(lambda error: Unrenderable(Unfit.VIDEOS_UNSUPPORTED, error.evidence), RowError):
        messages = protocol.opening(question, images, videos, mode=row["mode"])
    return tuple(Turn(message.role, message.parts) for message in messages)


def first_trained(n_rounds: int, loss_policy: str) -> int:
    """The index of the first round that is trained; ``n_rounds`` stands for the final thought and answer.
    ``last_round`` is Thyme §3.2: of two or more rounds of code, everything up to and including the last observation is
    out of the loss; with one there is no earlier attempt to unlearn: all is trained."""
    return n_rounds if loss_policy == "last_round" and n_rounds >= 2 else 0


def protocol_of(row: Row) -> Protocol:
    if (name := row["protocol"]) not in PROTOCOLS:
        known = ", ".join(sorted(PROTOCOLS))
        raise Unrenderable(Unfit.UNKNOWN_PROTOCOL, f"unknown protocol {name!r}; known: {known}")
    return PROTOCOLS[name]


def refs(row: Row) -> tuple[ImageRef, ...]:
    """The row's images, in the order in which it shows them."""
    return tuple(record_of(ImageRef, ref) for ref in row["image_refs"])


def _rollout(row: Row) -> list[Turn]:
    protocol, rounds = protocol_of(row), row["rounds"]
    start = first_trained(len(rounds), row["loss_policy"])
    rollout: list[Turn] = []
    with raised_as(lambda error: Unrenderable(Unfit.MALFORMED_TURN, error.evidence), RowError):
        for index, turn in enumerate(rounds):
            written = protocol.write_round(turn["thought"], turn["code"], first=index == 0)
            rollout.append(Turn("assistant", (Text(written),), trained=index >= start))
            rollout.append(Turn("user", tuple(protocol.wrap(_observation(turn, row)))))
        answer = protocol.write_answer(row["final_thought"], row["answer"], first=not rounds)
    return [*rollout, Turn("assistant", (Text(answer),), trained=True)]


def _observation(turn: Mapping[str, Any], row: Row) -> Observation:
    observation, images = turn["observation"], refs(row)
    if any(not 0 <= index < len(images) for index in observation["images"]):
        found = f"an observation names images {list(observation['images'])}, the row has {len(images)}"
        raise Unrenderable(Unfit.IMAGES_DIFFER, f"{found}; export the dataset again")
    visible = tuple(images[index] for index in observation["images"])
    return Observation(observation["status"], observation["text"], visible, observation["error"])


def require_types(row: Row, *, texts: Iterable[str], lists: Iterable[str]) -> None:
    """Raises ``Unrenderable`` for a text or list column of another type, and for an empty question."""
    for names, types, expected in ((texts, str, "a text"), (lists, (list, tuple), "a list")):
        for name in names:
            if not isinstance(row[name], types):
                raise Unrenderable(Unfit.MALFORMED_ROW, f"`{name}` is {row[name]!r}; expected {expected}")
    if not row["question"].strip():
        raise Unrenderable(Unfit.EMPTY_TURN, "the question is empty")


def record_of(kind: type[Any], ref: Mapping[str, Any]) -> Any:
    """A part of a row as a record. Raises ``Unrenderable`` (malformed_row)."""
    try:
        return from_row(kind, ref)
    except BaseValidationError as error:
        raise Unrenderable(Unfit.MALFORMED_ROW, f"{kind.__name__} expected; found {dict(ref)}") from error


IMAGE = "<image>"
PLACEHOLDERS = ("image", "video", "audio", "img", "bbox", "ref-object", "cot-process", "start-image")
"""Names that LLaMA-Factory 0.9.5, ms-swift 4.6, verl 0.9 or OpenRLHF 0.11 replace when they stand in ``<>``."""

_TOKEN = re.compile(r"<\|( *)(\w+)\|>")
_TOKEN_ESCAPED = re.compile(r"<\| ( *)(\w+)\|>")
_NAMES = "|".join(PLACEHOLDERS)
_PLACEHOLDER = re.compile(rf"<( *)({_NAMES})>")
_PLACEHOLDER_ESCAPED = re.compile(rf"< ( *)({_NAMES})>")


def plain(text: str) -> str:
    """Make special tokens, which would end turns or stand for images, plain text: ``<| im_end|>``."""
    return _TOKEN.sub(r"<| \1\2|>", text)


def escaped(text: str) -> str:
    """``plain`` text in which no placeholder is left either."""
    return _PLACEHOLDER.sub(r"< \1\2>", plain(text))


def unescaped(text: str) -> str:
    return _TOKEN_ESCAPED.sub(r"<|\1\2|>", _PLACEHOLDER_ESCAPED.sub(r"<\1\2>", text))


def with_placeholders(parts: Iterable[Part]) -> str:
    """Parts as one string, an image as ``<image>``."""
    return "".join(escaped(part.text) if isinstance(part, Text) else IMAGE for part in joined(parts))
