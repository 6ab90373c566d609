"""Chat templates for Qwen2-VL and Qwen2.5-VL: the stock rendering, with loss flags (SFT) and code as a tool (GRPO).

Both render the same bytes as the stock template wherever the stock template has something to render.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

TemplateName = Literal["sft", "grpo"]


def template(name: TemplateName) -> str:
    """The Jinja source of a template: ``qwen_vl_<name>.jinja``."""
    return Path(__file__).with_name(f"qwen_vl_{name}.jinja").read_text()
