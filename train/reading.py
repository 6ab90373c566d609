"""How rows become what a model reads and what is trained of it: one processor, one chat template, one layout, one loss.

The training program, the conformance gate and the mask views all read rows through the same ``Reader``, so that what
was looked at is what is trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.layouts.turns import Row
from train.collating import IGNORED, collate
from train.conversations import Layout, conversation


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads rows of a shipped dataset for one model.

    ``train_observations`` is an ablation, the loss that a trainer without masks has: every token after the question
    counts, what the sandbox showed and its markers as well, whatever the rows' loss policy; only the tokens that stand
    for images have no label. A model trained so learns to write observations itself.
    """

    processor: Any
    template: str
    layout: Layout = "turns"
    train_observations: bool = False

    def present(self, row: Row) -> dict[str, Any]:
        """A row as TRL's example: messages whose parts say whether they are trained, and their images in order."""
        said = conversation(row, layout=self.layout)
        messages = [_all_trained(message) for message in said.messages] if self.train_observations else said.messages
        return {"messages": messages, "images": said.images}

    def collate(self, examples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Presented rows as one batch of tensors."""
        batch = collate(examples, processor=self.processor, template=self.template)
        if self.train_observations:
            batch["labels"] = self._labels_after_the_question(batch)
        return batch

    def read(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Rows as one batch of tensors."""
        return self.collate([self.present(row) for row in rows])

    def _labels_after_the_question(self, batch: Mapping[str, Any]) -> Any:
        """From the first trained token on, every token is its own label."""
        import torch

        from train.models import suppressed_tokens

        ids = batch["input_ids"]
        begun = (batch["labels"] != IGNORED).cumsum(dim=1) > 0
        images = torch.isin(ids, torch.tensor(suppressed_tokens(self.processor)))
        return torch.where(begun & batch["attention_mask"].bool() & ~images, ids, IGNORED)


def open_reader(
    model: Path,
    *,
    layout: Layout = "turns",
    min_pixels: int | None = None,
    max_pixels: int | None = None,
    train_observations: bool = False,
) -> Reader:
    """The reader of a model's folder. Raises ``TrainFault`` when the templates do not fit the model."""
    from train.models import load_processor, model_type
    from train.templates import template

    source = template("sft", model_type(model))
    processor = load_processor(model, min_pixels=min_pixels, max_pixels=max_pixels)
    return Reader(processor, source, layout, train_observations)


def _all_trained(message: Mapping[str, Any]) -> dict[str, Any]:
    if message["role"] != "assistant":
        return dict(message)
    return {**message, "content": [{**part, "train": True} for part in message["content"]]}
