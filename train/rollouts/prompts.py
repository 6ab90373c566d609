"""Questions that GRPO asks, from either of the datasets that Darkroom ships.

The ``rl`` dataset (``pipelines/rl/export.py``) says how answers are graded and whether a drawing would help. Of an
``sft`` dataset (``pipelines/export.py``) every sample's question is asked once; its trajectory is not used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from datasets import Dataset, Features, Image, List, load_dataset

from pipelines.export import FEATURES as SFT_FEATURES
from pipelines.grading import grader_of
from pipelines.layouts.faults import Unrenderable
from pipelines.layouts.trl import messages_of
from pipelines.layouts.turns import Turn, record_of
from pipelines.protocols import PROTOCOLS
from pipelines.records import Grader, ImageRef, Sample, Truth, TruthBox, VideoRef
from pipelines.rejects import RowFault
from pipelines.rl.export import FEATURES as RL_FEATURES
from train.faults import TrainFault
from train.rows import dataset_files, presented, without_pixels

Row = Mapping[str, Any]
_STORED = Image(decode=False)
"""A picture as the bytes of its file: the sandbox is given them as they are."""
_DECODED = Image()


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with what rewards need to know of it."""

    sample: Sample
    grader: Grader
    suitable: bool | None
    """Whether a drawing would help; None where nobody was asked."""


def open_prompts(folder: Path) -> Dataset:
    """The rows of a dataset folder, one per sample, their images as stored bytes.

    Raises ``TrainFault`` for wrong columns and for no rows.
    """
    files = dataset_files(folder)
    features = {_features_of(path): path for path in files}
    if len(features) > 1:
        raise TrainFault(f"{folder} mixes rl and sft rows: {' and '.join(map(str, features.values()))}; split them")
    (kind,) = features
    if not sum(pq.read_metadata(path).num_rows for path in files):
        raise TrainFault(f"{folder} has no rows: look at the rejects of the stages that made it")
    names = [str(path) for path in files]
    wanted = Features({**(RL_FEATURES if kind == "rl" else SFT_FEATURES), "images": List(_STORED)})
    rows = load_dataset("parquet", data_files={"train": names}, split="train", features=wanted)
    first = {sample: index for index, sample in reversed(list(enumerate(rows["sample_id"])))}
    return rows.select(sorted(first.values()))


def prompts(rows: Dataset, *, protocol: str) -> Dataset:
    """``rows`` as TRL asks them, in the words of a protocol; an sft row keeps the protocol that it was written in."""
    return presented(rows, lambda row: prompt(row, protocol=row.get("protocol") or protocol))


def prompt(row: Row, *, protocol: str) -> dict[str, Any]:
    """One row of ``open_prompts`` as it is asked.

    ``images`` are what the model sees; ``image_files`` and ``videos`` are the bytes that the sandbox opens (no prompt
    shows a video).
    """
    question = asked_of(row)
    stored = list(row["images"] or [])[: len(question.sample.images)]
    return {
        "prompt": opening(question, protocol=protocol),
        "images": [_DECODED.decode_example(image) for image in stored],
        "image_files": [image["bytes"] for image in stored],
        "videos": [video["bytes"] for video in row.get("videos") or ()],
        "sample_id": row["sample_id"],
        "protocol": protocol,
        "mode": "free",
        "asked": question,
    }


def asked_of(row: Row) -> Asked:
    """The question of a row. Raises ``TrainFault`` with the row's id when it contradicts itself."""
    n_images = row.get("n_question_images", len(row["image_refs"]))
    try:
        sample = Sample(
            sample_id=row["sample_id"],
            source=row["source"],
            source_row=row["source_row"],
            license=row["license"],
            images=tuple(record_of(ImageRef, ref) for ref in row["image_refs"][:n_images]),
            question=row["question"],
            choices=tuple(row["choices"] or ()),
            answer=row["answer"],
            truth=Truth(boxes=tuple(record_of(TruthBox, box) for box in row.get("boxes") or ())),
            category=row["category"],
            videos=tuple(record_of(VideoRef, ref) for ref in row.get("video_refs") or ()),
        )
        grader = record_of(Grader, row["grader"]) if row.get("grader") else grader_of(sample)
    except (Unrenderable, RowFault) as fault:
        raise TrainFault(f"row {row['sample_id']}: {fault.evidence}; export the dataset again") from fault
    return Asked(sample, grader, row.get("suitable"))


def opening(question: Asked, *, protocol: str, mode: str = "free") -> list[dict[str, Any]]:
    """The conversation before the model's first turn, in TRL's form. Raises ``TrainFault``."""
    sample = question.sample
    said = "\n".join([sample.question, *sample.choices])
    try:
        messages = PROTOCOLS[protocol].opening(said, sample.images, sample.videos, mode=mode)
    except (RowFault, ValueError) as fault:
        raise TrainFault(f"row {sample.sample_id} cannot be asked in {protocol}: {fault}") from fault
    return messages_of(Turn(message.role, message.parts) for message in messages)


def check_prompts(folder: Path, *, protocol: str, modes: Iterable[str] = ("free",)) -> None:
    """Asks every row in every mode, before any is trained. Raises ``TrainFault`` for the first that cannot be."""
    for row in without_pixels(dataset_files(folder)):
        question = asked_of(row)
        for mode in modes:
            opening(question, protocol=row.get("protocol") or protocol, mode=mode)


def _features_of(path: Path) -> str:
    found = set(pq.read_schema(path).names)
    for kind, features in (("rl", RL_FEATURES), ("sft", SFT_FEATURES)):
        if found == set(features):
            return kind
    nearest = min((RL_FEATURES, SFT_FEATURES), key=lambda features: len(set(features) ^ found))
    raise TrainFault(
        f"{path} has the columns of neither the rl nor the sft dataset: missing {sorted(set(nearest) - found)}, "
        f"unknown {sorted(found - set(nearest))}; materialise `rl_dataset` or `sft_dataset`"
    )
