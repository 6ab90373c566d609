"""TRL: messages of parts, each part of the model saying whether it is trained; parquet with the images inside.

- ``trl_turns``: every observation is a user turn. GRPO produces just this, so a checkpoint trained on it goes on there.
- ``trl_inline``: one assistant turn with the observations inside it, as Thyme has it; they are kept out of the loss
  part by part, with the newline after ``</sandbox_output>`` (a token that straddles the border would be trained).

{"role": "assistant", "content": [{"type": "text", "text": "It says 42.", "train": true}]}
{"role": "user", "content": [{"type": "text", "text": "<sandbox_output>"}, {"type": "image"}, …]}

The flags are the chat template's work (``chat_template.jinja`` in the output): without it, TRL trains every part.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.layouts.base import Facts, Layout, Rendered, Said
from pipelines.layouts.text import plain
from pipelines.layouts.turns import Turn
from pipelines.messages import Part, Text

TEMPLATE = Path(__file__).with_name("qwen_vl_sft.jinja")
"""The chat template with loss flags, but for what the model types differ in."""
DEFAULT_SYSTEM: Mapping[str, str] = {
    "qwen2_vl": "You are a helpful assistant.",
    "qwen2_5_vl": "You are a helpful assistant.",
    "qwen3_vl": "",
}
"""The system turn that a model's stock template gives to a conversation without one; Qwen3-VL gives none."""

_FEATURES = {
    "trajectory_id": {"dtype": "string", "_type": "Value"},
    "messages": {
        "feature": {
            "role": {"dtype": "string", "_type": "Value"},
            "content": {
                "feature": {
                    "type": {"dtype": "string", "_type": "Value"},
                    "text": {"dtype": "string", "_type": "Value"},
                    "train": {"dtype": "bool", "_type": "Value"},
                },
                "_type": "List",
            },
        },
        "_type": "List",
    },
    "images": {"feature": {"_type": "Image"}, "_type": "List"},
}
_part = pa.struct([("type", pa.string()), ("text", pa.string()), ("train", pa.bool_())])
_message = pa.struct([("role", pa.string()), ("content", pa.list_(_part))])
_image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
SCHEMA = pa.schema(
    [("trajectory_id", pa.string()), ("messages", pa.list_(_message)), ("images", pa.list_(_image))],
    # what `datasets` itself would write: without it the images would be read as plain structs
    metadata={"huggingface": json.dumps({"info": {"features": _FEATURES}})},
)


def chat_template(source: str, model_type: str) -> str:
    """A template file's ``source`` for one model type, as a template of its own."""
    return f"{{%- set default_system = {json.dumps(DEFAULT_SYSTEM[model_type])} -%}}\n{source}"


def messages_of(turns: Iterable[Turn]) -> list[dict[str, Any]]:
    """Turns as TRL's messages."""
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


def _content(turn: Turn) -> list[dict[str, Any]]:
    parts = content_parts(turn.parts)
    return [{**part, "train": turn.trained} for part in parts] if turn.role == "assistant" else parts


def _record(said: Said, messages: list[dict[str, Any]]) -> Rendered:
    return Rendered({"trajectory_id": said.row["trajectory_id"], "messages": messages, "images": list(said.media)})


def _usage(facts: Facts) -> str:
    return f"""\
```python
from datasets import load_dataset
from trl import SFTConfig, SFTTrainer

rows = load_dataset("parquet", data_files="FOLDER/{facts.split}.parquet", split="train")
config = SFTConfig(
    # reads the `train` flags; for Qwen2-VL and Qwen2.5-VL. For Qwen3-VL: chat_template_qwen3_vl.jinja
    chat_template_path="FOLDER/chat_template.jinja",
    assistant_only_loss=True,
    max_length=None,  # the default cuts image tokens off
)
trainer = SFTTrainer(MODEL, args=config, train_dataset=rows)
```

Loss: exact, part by part, for both loss policies. With another chat template the flags are not read, and every word of
every assistant turn is trained (in `trl_inline` the observations, too): write the flags into that template first.
Nothing is lost in this layout. Of the escapes described below only those of special tokens are made: pictures are parts
here, and a literal `<image>` in a text is text.
"""


def _template(facts: Facts) -> dict[str, str]:
    source = TEMPLATE.read_text()
    return {
        "chat_template.jinja": chat_template(source, "qwen2_5_vl"),
        "chat_template_qwen3_vl.jinja": chat_template(source, "qwen3_vl"),
    }


TRL_TURNS = Layout(
    name="trl_turns",
    trainer="TRL",
    says="SFT; observations as user turns, as GRPO has them",
    messages="messages",
    media="bytes",
    render=lambda said: _record(said, messages_of(said.turns)),
    usage=_usage,
    schema=SCHEMA,
    extra_files=_template,
)
TRL_INLINE = Layout(
    name="trl_inline",
    trainer="TRL",
    says="SFT; one assistant turn with the observations inside, as Thyme has it",
    messages="messages",
    media="bytes",
    render=lambda said: _record(said, inline_messages(said.turns)),
    usage=_usage,
    schema=SCHEMA,
    extra_files=_template,
)
