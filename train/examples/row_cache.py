"""Rows as tensors, kept for the next epoch: decoding and resizing images again takes a small model's time to train."""

import hashlib
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from darkroom.pipelines.publishing.layouts.turns import Row
from darkroom.train.examples.encoding import IGNORED, RowReader

ROOM = 2**29
"""Bytes of tensors that a process keeps; rows beyond them are read anew in every epoch."""


@dataclass(slots=True)
class RowCache:
    """What ``reader`` makes of rows, whose images are still encoded: each as tensors, then batches of them."""

    reader: RowReader
    room: int = ROOM
    _kept: dict[bytes, dict[str, Any]] = field(default_factory=dict)

    def present(self, row: Row) -> dict[str, Any]:
        """As ``RowReader.present``, the images as they are stored, with the row's tensors."""
        key = hashlib.blake2b(pickle.dumps({**row, "videos": None})).digest()  # no tensor depends on a video
        tensors = self._kept.get(key)
        example = self.reader.present(row)
        if tensors is None:
            tensors = self.reader.collate([{**example, "images": [_decoded(image) for image in example["images"]]}])
            size = sum(tensor.nbytes for tensor in tensors.values())
            if size <= self.room:
                self.room -= size
                self._kept[key] = tensors
        return {**example, "tensors": tensors}

    def collate(self, examples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Presented rows as one batch: the tensors that ``RowReader.read`` makes of the same rows."""
        import torch
        from torch.nn.utils.rnn import pad_sequence

        rows = [example["tensors"] for example in examples]
        padding = {"input_ids": self.reader.processor.tokenizer.pad_token_id, "labels": IGNORED}
        batch: dict[str, Any] = {}
        for name in dict.fromkeys(name for row in rows for name in row):
            values = [row[name] for row in rows if name in row]
            if name in _OF_IMAGES:
                batch[name] = torch.cat(values)
            else:
                sequences = [value[0] for value in values]
                batch[name] = pad_sequence(sequences, batch_first=True, padding_value=padding.get(name, 0))
        return batch


_OF_IMAGES = frozenset({"pixel_values", "image_grid_thw"})
"""One below the other, whatever row they are of."""


def _decoded(image: Mapping[str, Any]) -> Any:
    from datasets import Image

    return Image().decode_example(dict(image))
