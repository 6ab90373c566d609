"""A shipped row as records again: its trajectory, its sample, and its images as a store."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from darkroom.pipelines.records import ImageRef, Sample, Trajectory, VideoRef, from_row
from darkroom.pipelines.storage.images import ImageMissing, ImageStore

Row = Mapping[str, Any]


class NotKnown(Exception):
    """A check needs what neither the dataset nor the workspace knows: what it is."""


class RowImages(ImageStore):
    """The row's own images and videos by their digests, and those of the workspace's store behind them."""

    def __init__(self, images: Mapping[str, bytes], behind: ImageStore | None) -> None:
        self._images, self._behind = images, behind

    def read(self, ref: ImageRef | VideoRef | str) -> bytes:
        sha256 = ref if isinstance(ref, str) else ref.sha256
        if (data := self._images.get(sha256)) is not None:
            return data
        if self._behind is None:
            raise NotKnown("an image that the dataset does not hold")
        try:
            return self._behind.read(sha256)
        except ImageMissing as error:
            raise NotKnown("an image that the dataset does not hold") from error


def trajectory_of(row: Row) -> Trajectory:
    """The record that the row was written from, without what it cost."""
    refs = [from_row(ImageRef, ref) for ref in row["image_refs"]]
    names = ("trajectory_id", "sample_id", "family", "protocol", "final_thought", "answer", "loss_policy", "mode")
    rounds = [
        {**turn, "observation": {**turn["observation"], "images": [row["image_refs"][n] for n in shown_by(turn)]}}
        for turn in row["rounds"]
    ]
    record = {name: row[name] for name in names} | {
        "images": [],
        "rounds": rounds,
        "checks": row["checks"],
        "usage": {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "cost_usd": 0.0},
        "provenance": row["provenance"],
    }
    return replace(from_row(Trajectory, record), images=tuple(refs[: row["n_question_images"]]))


_SAMPLE = ("sample_id", "source", "source_row", "license", "question", "category")


def sample_of(row: Row, **known: Any) -> Sample:
    """The row's question as a sample; images, answer and truth are ``known``: kinds of rows have them elsewhere."""
    return Sample(**{name: row[name] for name in _SAMPLE}, choices=tuple(row["choices"]), **known)


def shown_by(turn: Mapping[str, Any]) -> list[int]:
    """The places of an observation's images."""
    return list(turn["observation"]["images"])
