"""Chat templates of the Qwen-VL models: the stock rendering, with loss flags (SFT) and code as a tool (GRPO).

Both render the same bytes as the model's stock template wherever that has something to render; images in assistant
turns, which Qwen3-VL's leaves out, are rendered, too. The one for SFT ships with exports for TRL, and lies there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pipelines.layouts.trl import DEFAULT_SYSTEM, TEMPLATE, chat_template

TemplateName = Literal["sft", "grpo"]
MODEL_TYPES = tuple(DEFAULT_SYSTEM)
"""The model types that the templates fit."""


def template(name: TemplateName, model_type: str = "qwen2_5_vl") -> str:
    """The Jinja source for one of ``MODEL_TYPES``; ``train.models.model_type`` reads a folder's."""
    path = TEMPLATE if name == "sft" else Path(__file__).with_name("qwen_vl_grpo.jinja")
    return chat_template(path.read_text(), model_type)
