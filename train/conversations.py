"""Rows of a shipped dataset as conversations that TRL trains on.

Two layouts of one trajectory, with the same words:

- ``turns``: every observation is a user turn. This is what GRPO produces, so a checkpoint trained on it goes on there.
- ``inline``: one assistant turn with the observations inside it, as Thyme has it; they are kept out of the loss part
  by part, together with the newline after ``</sandbox_output>`` (a token that straddles the border would be trained).

Parts of an assistant turn say whether they are trained: ``{"type": "text", "text": "It says 42.", "train": True}``.
Observations and their markers never are. Images are ``{"type": "image"}``, in the order of ``images``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipelines.messages import Part, Text
from pipelines.protocols import PROTOCOLS, Protocol
from pipelines.records import ImageRef, Observation, VideoRef, from_row
from pipelines.rejects import RowFault
from train.faults import TrainFault

Layout = Literal["turns", "inline"]
Row = Mapping[str, Any]
"""A row with the columns of ``pipelines.export.FEATURES``."""

_SPECIAL_TOKEN = re.compile(r"<\|(\w+)\|>")


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages in TRL's form and the images that their placeholders stand for, in order."""

    messages: list[dict[str, Any]]
    images: list[Any]


def conversation(row: Row, *, layout: Layout) -> Conversation:
    """The whole trajectory of ``row``. Raises ``TrainFault`` with the row's id when the row contradicts itself."""
    try:
        turns = _turns(row)
    except RowFault as fault:
        raise TrainFault(f"row {row['trajectory_id']}: {fault.evidence}") from fault
    messages = opening(row) + (turns if layout == "turns" else [_inline(turns)])
    return Conversation(messages, list(row["images"] or []))


def _turns(row: Row) -> list[dict[str, Any]]:
    protocol, rounds = protocol_of(row), row["rounds"]
    start = first_trained(len(rounds), row["loss_policy"])
    turns: list[dict[str, Any]] = []
    for index, turn in enumerate(rounds):
        written = protocol.write_round(turn["thought"], turn["code"], first=index == 0)
        turns.append({"role": "assistant", "content": [_trainable(written, train=index >= start)]})
        turns.append({"role": "user", "content": content_parts(protocol.wrap(_observation(turn, row)))})
    answer = protocol.write_answer(row["final_thought"], row["answer"], first=not rounds)
    return [*turns, {"role": "assistant", "content": [_trainable(answer, train=True)]}]


def opening(row: Row) -> list[dict[str, Any]]:
    """The conversation before the model's first turn, as GRPO prompts with it."""
    refs = _refs(row)[: row["n_question_images"]]
    question = "\n".join([row["question"], *row["choices"]])  # as pipelines.tasks.question_text has it
    videos = tuple(from_row(VideoRef, ref) for ref in row["video_refs"])
    said = protocol_of(row).opening(question, refs, videos, mode=row["mode"])
    return [{"role": message.role, "content": content_parts(message.parts)} for message in said]


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
        raise TrainFault(f"row {row['trajectory_id']}: unknown protocol {row['protocol']!r}; known: {known}") from None


def plain(text: str) -> str:
    """``text`` with the model's special tokens made ordinary text: ``<|im_end|>`` becomes ``<| im_end|>``.

    A question or a program may contain them; tokenized as they are, they would end turns or stand for images.
    """
    return _SPECIAL_TOKEN.sub(r"<| \1|>", text)


def content_parts(parts: Iterable[Part], images: Iterable[Any] = ()) -> list[dict[str, Any]]:
    """Parts as TRL content; pictures carry the next of ``images`` when there are any."""
    pixels = iter(images)
    content: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Text):
            content.append({"type": "text", "text": plain(part.text)})
        else:
            image = next(pixels, None)
            content.append({"type": "image"} if image is None else {"type": "image", "image": image})
    return content


def _trainable(text: str, *, train: bool) -> dict[str, Any]:
    return {"type": "text", "text": plain(text), "train": train}


def _inline(turns: list[dict[str, Any]]) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    for turn in turns:
        if turn["role"] == "assistant":
            content += turn["content"]
        else:
            # the model writes the newline after </code>, the sandbox the one after </sandbox_output>
            content[-1]["text"] += "\n"
            content += [{**part, "train": False} for part in (*turn["content"], {"type": "text", "text": "\n"})]
    return {"role": "assistant", "content": content}


def _observation(turn: Mapping[str, Any], row: Row) -> Observation:
    seen, refs = turn["observation"], _refs(row)
    if any(not 0 <= index < len(refs) for index in seen["images"]):
        raise TrainFault(
            f"row {row['trajectory_id']}: an observation names images {list(seen['images'])}, the row has {len(refs)}; "
            "export the dataset again"
        )
    return Observation(
        status=seen["status"],
        text=seen["text"],
        images=tuple(refs[index] for index in seen["images"]),
        error=seen["error"],
    )


def _refs(row: Row) -> tuple[ImageRef, ...]:
    return tuple(from_row(ImageRef, ref) for ref in row["image_refs"])
