"""A shipped row as records again: its trajectory, its sample, its images as a store, and its case for checks.

Whatever neither the dataset nor the workspace knows raises ``NotKnown`` where a check reads it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from darkroom.pipelines.inspection.audit.known_truth import KnownTruth
from darkroom.pipelines.records import ImageRef, Sample, Trajectory, VideoRef, from_row
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.storage.images import ImageMissing, ImageStore
from darkroom.pipelines.verification.case import Case

Row = Mapping[str, Any]


class NotKnown(Exception):
    """Neither the dataset nor the workspace knows what a check needs; the message names it."""


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
    """Indexes of an observation's images."""
    return list(turn["observation"]["images"])


class UnknownHint(Mapping[str, Any]):
    """A hint without numbers that could leak; looking one up by name raises ``NotKnown``."""

    def __getitem__(self, name: str) -> Any:
        raise NotKnown("the recipe's hint")

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class _Unknown:
    """Stand-in for a record that is not known: every access raises ``NotKnown``."""

    def __init__(self, what: str) -> None:
        object.__setattr__(self, "_what", what)

    def __getattr__(self, name: str) -> Any:
        raise NotKnown(object.__getattribute__(self, "_what"))

    def __getitem__(self, index: Any) -> Any:
        raise NotKnown(object.__getattribute__(self, "_what"))


def case_of(row: Row, truth: KnownTruth | None) -> Case:
    """The row's case: with its sample and hint where the workspace knows them.

    Else the sample is the row's question with the row's own answer; its truth, and the images as they were before the
    recipe changed them, are unknown. Raises ``cattrs`` errors and ``KeyError`` for a malformed row.
    """
    trajectory = trajectory_of(row)
    media = [*zip(row["image_refs"], row["images"], strict=True)]
    media += zip(row.get("video_refs") or (), row.get("videos") or (), strict=True)
    store = RowImages({ref["sha256"]: file["bytes"] for ref, file in media}, truth.workspace.images if truth else None)
    sample = truth.sample(trajectory.sample_id) if truth else None
    hint = truth.hint(trajectory.family, trajectory.trajectory_id) if truth else None
    return Case(sample or _sample_of(row, trajectory), trajectory, UnknownHint() if hint is None else hint, store)


def changed_images(row: Row) -> list[int]:
    """Indexes of images whose bytes do not have the digest that the row states."""
    pairs = zip(row["image_refs"], row["images"], strict=True)
    return [n for n, (ref, image) in enumerate(pairs) if digest_bytes(image["bytes"]) != ref["sha256"]]


def _sample_of(row: Row, trajectory: Trajectory) -> Sample:
    prepared = any(image.made_by for image in trajectory.images)
    return sample_of(
        row,
        images=_Unknown("the images before the recipe changed them") if prepared else trajectory.images,
        answer=trajectory.answer,
        truth=_Unknown("the truth about the sample"),
        videos=tuple(from_row(VideoRef, ref) for ref in row.get("video_refs") or ()),
    )
