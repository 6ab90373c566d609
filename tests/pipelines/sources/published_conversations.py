"""Conversations about images: LLaVA, the message parts of OpenAI and Qwen, ms-swift."""

from __future__ import annotations

import base64
from pathlib import Path

from tests.pipelines.sources.published_files import TEXT, Shapes, lines, picture, put, struct, table

CONVERSATIONS = Shapes()
published = CONVERSATIONS.add


@published("LLaVA, with rows of text alone", ("What colour?", "Red", 1), ("Say hello.", "Hello", 0))
def _(folder: Path) -> None:
    turns = [{"from": "human", "value": "<image>\nWhat colour?"}, {"from": "gpt", "value": "Red"}]
    words = [{"from": "human", "value": "Say hello."}, {"from": "gpt", "value": "Hello"}]
    rows = [{"id": "1", "image": "coco/train2017/1.jpg", "conversations": turns}, {"id": "2", "conversations": words}]
    put(folder, {"llava_v1_5_mix665k.json": rows, "coco/train2017/1.jpg": picture()})


@published("OpenAI's messages", ("What colour?", "Red", 1))
def _(folder: Path) -> Path:
    url = f"data:image/jpeg;base64,{base64.b64encode(picture()).decode()}"
    parts = [
        {"type": "text", "text": "What colour?"},
        {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
    ]
    put(
        folder,
        {
            "train.jsonl": lines(
                {"messages": [{"role": "user", "content": parts}, {"role": "assistant", "content": "Red"}]}
            )
        },
    )
    return folder / "train.jsonl"


@published("Qwen's messages", ("What colour?", "Red", 1))
def _(folder: Path) -> None:
    parts = [{"type": "image", "image": "images/b.jpg"}, {"type": "text", "text": "What colour?"}]
    reply = {"role": "assistant", "content": [{"type": "text", "text": "Red"}]}
    put(
        folder,
        {"train.jsonl": lines({"messages": [{"role": "user", "content": parts}, reply]}), "images/b.jpg": picture()},
    )


@published("ms-swift", ("What colour?", "Red", 1))
def _(folder: Path) -> None:
    messages = [{"role": "user", "content": "<image>What colour?"}, {"role": "assistant", "content": "Red"}]
    put(folder, {"train.jsonl": lines({"messages": messages, "images": ["b.jpg"]}), "b.jpg": picture()})


@published("LLaVA-OneVision", ("What colour?", "Red", 1))
def _(folder: Path) -> None:
    turns = [{"from": "human", "value": "<image>\nWhat colour?"}, {"from": "gpt", "value": "Red"}]
    row = {"id": "1", "image": struct(), "conversations": turns, "data_source": "sroie"}
    table(folder / "sroie" / "train-00000-of-00001.parquet", [row], conversations=[{"from": TEXT, "value": TEXT}])
