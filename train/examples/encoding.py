"""Rows as conversations, token ids and labels: one processor, one chat template, one layout, one loss.

Training, the conformance gate and the mask views all use the same ``RowReader``, so that the inspected tokens are the
trained ones. ``RowCache`` keeps its tensors for the next epoch: decoding and resizing images again takes as long as a
step of a small model.

Two layouts of one trajectory have the same words (``pipelines/publishing/layouts/trl.py``): ``turns``, where every
observation is a user turn, as in GRPO, and ``inline``, one assistant turn with the observations inside, as in Thyme.
Parts of an assistant turn are trained or not: ``{"type": "text", "text": "It says 42.", "train": True}``. Observations
and their markers never are. Images are ``{"type": "image"}``, in the order of ``images``.
"""

import bisect
import hashlib
import io
import pickle
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from darkroom.pipelines.publishing.layouts import turns as rendering
from darkroom.pipelines.publishing.layouts.trl import inline_messages, messages_of
from darkroom.pipelines.publishing.layouts.turns import Row, Unrenderable
from darkroom.pipelines.records import ImageRef, Sample, Truth, TruthBox, VideoRef
from darkroom.pipelines.records.trajectories import LossPolicy
from darkroom.sandbox.errors import raised_as
from darkroom.train.runs import TrainError


def uncommented(code: str) -> str:
    """Remove comments and the lines that held nothing else. Code that is no Python is unchanged."""
    lines = [*io.StringIO(code)]
    try:
        comments = [token for token in tokenize.generate_tokens(iter(lines).__next__) if token.type == tokenize.COMMENT]
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return code
    for token in comments:
        number, column = token.start
        line = lines[number - 1]
        code_before, end = line[:column].rstrip(), line[len(line.rstrip("\r\n")) :]
        lines[number - 1] = code_before + end if code_before else ""
    return "".join(lines)


Layout = Literal["turns", "inline"]


def conversation(row: Row, *, layout: Layout) -> list[dict[str, Any]]:
    """Convert the trajectory of ``row`` to messages in TRL's form, with placeholders for its images in their order.
    Raises ``TrainError`` with the row's id when the row contradicts itself."""
    with raised_as(lambda error: TrainError(f"row {row['trajectory_id']}: {error.evidence}"), Unrenderable):
        turns = rendering.turns(row)
    return messages_of(turns) if layout == "turns" else inline_messages(turns)


def sample_of(row: Row, images: tuple[ImageRef, ...], videos: tuple[VideoRef, ...]) -> Sample:
    """Convert a row of either dataset to its sample, with these media. Raises ``Unrenderable`` for a malformed box."""
    texts = ("sample_id", "source", "source_row", "license", "question", "answer", "category")
    truth = Truth(boxes=tuple(rendering.record_of(TruthBox, box) for box in row.get("boxes") or ()))
    choices = tuple(row["choices"] or ())
    return Sample(**{name: row[name] for name in texts}, images=images, choices=choices, truth=truth, videos=videos)


IGNORED = -100
"""The label of a token that is not trained."""
Span = tuple[int, int]
"""Characters, from the first to behind the last."""


def _shifted(spans: Sequence[Span], replaced: Sequence[Mapping[str, Span]]) -> list[Span]:
    """Move spans to the text in which every image's placeholder is as many as it has tokens."""
    ends = [replacement["span"][1] for replacement in replaced]
    gained = [0, *(replacement["new_span"][1] - replacement["span"][1] for replacement in replaced)]

    def moved(character: int) -> int:
        return character + gained[bisect.bisect_right(ends, character)]

    return [(moved(start), moved(end)) for start, end in spans]


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reader of rows of a shipped dataset for one model. ``train_observations`` is an ablation, the loss of a trainer
    without masks: every token after the question counts, observations and their markers as well, whatever the rows'
    loss policy, but not the tokens that stand for images. The other two: ``RowReader.ablated``."""

    processor: Any
    template: str
    layout: Layout = "turns"
    train_observations: bool = False
    loss_policy: LossPolicy | None = None
    without_comments: bool = False

    def ablated(self, row: Row) -> Row:
        """Read ``row`` as Thyme's ablations (table 6): with this loss policy (None: its own), without comments."""
        if self.loss_policy is not None:
            row = {**row, "loss_policy": self.loss_policy}
        if self.without_comments:
            row = {**row, "rounds": [{**turn, "code": uncommented(turn["code"])} for turn in row["rounds"]]}
        return row

    def present(self, row: Row) -> dict[str, Any]:
        """Convert a row to TRL's example: messages whose parts are trained or not, and their images in order."""
        messages = conversation(self.ablated(row), layout=self.layout)
        for message in messages:
            if self.train_observations and message["role"] == "assistant":
                message["content"] = [{**part, "train": True} for part in message["content"]]
        return {"messages": messages, "images": list(row["images"] or [])}

    def collate(self, examples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Encode ``examples`` (``messages``, and ``images`` in the order of their placeholders) as tensors (rows,
        tokens). The same as TRL's ``DataCollatorForVisionLanguageModeling`` with ``assistant_only_loss``, tensor by
        tensor, without its loop over every token: half a second a row of 7,000. Raises ``ValueError`` for placeholders
        that are not as many as the images."""
        from transformers.utils.chat_template_utils import render_jinja_template

        rendered: Any = render_jinja_template(
            conversations=[example["messages"] for example in examples],
            chat_template=self.template,
            return_assistant_tokens_mask=True,
            **self.processor.tokenizer.special_tokens_map,
        )
        texts, spans = rendered
        images = [list(example["images"]) for example in examples]
        batch: dict[str, Any] = dict(
            self.processor(
                text=texts,
                images=images if any(images) else None,  # the processor refuses a batch whose every list is empty
                return_tensors="pt",
                padding=True,
                padding_side="right",
                add_special_tokens=False,
                return_offsets_mapping=True,
                return_text_replacement_offsets=True,
            )
        )
        offsets, replaced = batch.pop("offset_mapping"), batch.pop("text_replacement_offsets", None)
        ids = batch["input_ids"]
        trained = ids.new_zeros(ids.shape, dtype=bool)
        for row, row_spans in enumerate(spans):
            for start, end in _shifted(row_spans, replaced[row] if replaced else ()):
                trained[row] |= (offsets[row, :, 0] < end) & (offsets[row, :, 1] > start)
        batch["labels"] = ids.masked_fill(~trained | (batch["attention_mask"] == 0), IGNORED)
        if self.train_observations:  # every token from the first trained one on
            import torch

            from darkroom.train.models.loading import suppressed_tokens

            begun = (batch["labels"] != IGNORED).cumsum(dim=1) > 0
            of_images = torch.isin(ids, torch.tensor(suppressed_tokens(self.processor)))
            batch["labels"] = torch.where(begun & batch["attention_mask"].bool() & ~of_images, ids, IGNORED)
        return batch

    def read(self, rows: Sequence[Row]) -> dict[str, Any]:
        return self.collate([self.present(row) for row in rows])


def open_reader(
    model: Path,
    *,
    layout: Layout = "turns",
    min_pixels: int | None = None,
    max_pixels: int | None = None,
    **ablations: Any,
) -> RowReader:
    """Open the reader of a model's folder; ``ablations``: its fields. Raises ``TrainError`` for other templates."""
    from darkroom.train.models.loading import load_processor, model_type, template

    source = template("sft", model_type(model))
    return RowReader(load_processor(model, min_pixels=min_pixels, max_pixels=max_pixels), source, layout, **ablations)


ROOM = 2**29
"""Bytes of tensors that a process keeps; rows beyond them are read anew in every epoch."""


@dataclass(slots=True)
class RowCache:
    """Tensors of rows whose images are still encoded: of each row, then of batches."""

    reader: RowReader
    room: int = ROOM
    _kept: dict[bytes, dict[str, Any]] = field(default_factory=dict)

    def present(self, row: Row) -> dict[str, Any]:
        """Convert a row as ``RowReader.present`` does, its images as they are stored, with its tensors."""
        from datasets import Image

        key = hashlib.blake2b(pickle.dumps({**row, "videos": None})).digest()  # no tensor depends on a video
        tensors = self._kept.get(key)
        example = self.reader.present(row)
        if tensors is None:
            images = [Image().decode_example(dict(image)) for image in example["images"]]
            tensors = self.reader.collate([{**example, "images": images}])
            size = sum(tensor.nbytes for tensor in tensors.values())
            if size <= self.room:
                self.room -= size
                self._kept[key] = tensors
        return {**example, "tensors": tensors}

    def collate(self, examples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Join presented rows to one batch: the tensors of ``RowReader.read`` for the same rows."""
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
"""Joined one below the other, whatever their row."""
