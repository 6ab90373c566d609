"""Chat templates for Qwen2-VL and Qwen2.5-VL: the stock rendering, with loss flags (SFT) and code as a tool (GRPO).

Both render the same bytes as the stock template wherever the stock template has something to render. The one for SFT
ships with exports for TRL, and lies there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pipelines.layouts.trl import TEMPLATE

TemplateName = Literal["sft", "grpo"]


def template(name: TemplateName) -> str:
    """The Jinja source of a template."""
    return TEMPLATE.read_text() if name == "sft" else Path(__file__).with_name("qwen_vl_grpo.jinja").read_text()
