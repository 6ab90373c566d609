"""TRL: messages of parts, each part of the model saying whether it is trained; parquet with the images inside.

- ``trl_turns``: every observation is a user turn. GRPO produces just this, so a checkpoint trained on it goes on there.
- ``trl_inline``: one assistant turn with the observations inside it, as Thyme has it; they are kept out of the loss
  part by part, with the newline after ``</sandbox_output>`` (a token that straddles the border would be trained).

{"role": "assistant", "content": [{"type": "text", "text": "It says 42.", "train": true}]}
{"role": "user", "content": [{"type": "text", "text": "<sandbox_output>"}, {"type": "image"}, …]}

The chat template reads the flags (``chat_template.jinja`` in the output): without it, TRL trains every part.

- ``trl_grpo``: prompts with images inside; every other column reaches the reward functions. Checked against
  ``GRPOTrainer`` of version 1.16.

{"prompt": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What …"}]}],
 "images": [{"bytes": …, "path": …}], "answer": "42", "grader": {"kind": …}, …}
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from darkroom.pipelines.models.messages import Part, Text
from darkroom.pipelines.publishing.layouts.base import (
    IMAGE,
    TEXT,
    Column,
    ExportFacts,
    declared,
    hf_schema,
    prompt_columns,
    prompt_record,
    sft_record,
    texts,
)
from darkroom.pipelines.publishing.layouts.turns import Turn, plain

TEMPLATE = Path(__file__).with_name("qwen_vl_sft.jinja")
"""The chat template with loss flags, but for what the model types differ in."""
DEFAULT_SYSTEM: Mapping[str, str] = yaml.safe_load(Path(__file__).with_name("default_system.yaml").read_text())
"""The system turn that a model's stock template gives to a conversation without one."""


def messages_type(*flags: Column) -> pa.DataType:
    """The column of messages of parts; ``flags``: columns of a part besides its type and text."""
    part = pa.struct([*texts("type", "text"), *flags])
    return pa.list_(pa.struct([("role", TEXT), ("content", pa.list_(part))]))


_MESSAGES = ("messages", messages_type(("train", pa.bool_())))
SFT_SCHEMA = hf_schema([("trajectory_id", TEXT), _MESSAGES, ("images", pa.list_(IMAGE))])
GRPO_SCHEMA = hf_schema(prompt_columns(("prompt", messages_type()), image=IMAGE, answer="answer"))


def chat_template(source: str, model_type: str) -> str:
    """A template file's ``source`` for one model type, as a template of its own."""
    return f"{{%- set default_system = {json.dumps(DEFAULT_SYSTEM[model_type])} -%}}\n{source}"


def messages_of(turns: Iterable[Turn]) -> list[dict[str, Any]]:
    return [{"role": turn.role, "content": _content(turn)} for turn in turns]


def inline_messages(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Turns as TRL's messages, all that follows the question in one assistant turn."""
    start = next(index for index, turn in enumerate(turns) if turn.role == "assistant")
    content: list[dict[str, Any]] = []
    for turn in turns[start:]:
        if turn.role == "assistant":
            content += _content(turn)
        else:
            # the model writes the newline after </code>, the sandbox the one after </sandbox_output>
            content[-1]["text"] += "\n"
            content += [{**part, "train": False} for part in (*_content(turn), {"type": "text", "text": "\n"})]
    return [*messages_of(turns[:start]), {"role": "assistant", "content": content}]


def content_parts(parts: Iterable[Part], images: Iterable[Any] = ()) -> list[dict[str, Any]]:
    """Parts as TRL content; images carry the next of ``images`` when there are any."""
    pixels = iter(images)

    def content(part: Part) -> dict[str, Any]:
        if isinstance(part, Text):
            return {"type": "text", "text": plain(part.text)}
        return {"type": "image"} if (image := next(pixels, None)) is None else {"type": "image", "image": image}

    return [content(part) for part in parts]


def _content(turn: Turn) -> list[dict[str, Any]]:
    parts = content_parts(turn.parts)
    return [{**part, "train": turn.trained} for part in parts] if turn.role == "assistant" else parts


def _template(facts: ExportFacts) -> dict[str, str]:
    types = {"chat_template.jinja": "qwen2_5_vl", "chat_template_qwen3_vl.jinja": "qwen3_vl"}
    return {name: chat_template(TEMPLATE.read_text(), model_type) for name, model_type in types.items()}


_SFT: dict[str, Any] = {"schema": SFT_SCHEMA, "extra_files": _template}
TRL_TURNS = declared("trajectories", "trl_turns", lambda row: sft_record(row, messages_of(row.turns)), **_SFT)
TRL_INLINE = declared("trajectories", "trl_inline", lambda row: sft_record(row, inline_messages(row.turns)), **_SFT)
TRL_GRPO = declared(
    "prompts",
    "trl_grpo",
    lambda row: prompt_record(row, prompt=messages_of(row.turns), answer=row.row["answer"]),
    schema=GRPO_SCHEMA,
)
