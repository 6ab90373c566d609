"""A shipped row as the case that checks look at; what is unknown here raises ``NotKnown`` where a check reads it."""

from collections.abc import Iterator, Mapping
from typing import Any

from darkroom.pipelines.inspection.audit.known_truth import KnownTruth
from darkroom.pipelines.inspection.audit.row_images import NotKnown, Row, RowImages, sample_of, trajectory_of
from darkroom.pipelines.records import Sample, Trajectory, VideoRef, from_row
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.verification.case import Case


class UnknownHint(Mapping[str, Any]):
    """Has no numbers that could leak; whoever wants one by name learns that it is not known."""

    def __getitem__(self, name: str) -> Any:
        raise NotKnown("the recipe's hint")

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class _Unknown:
    """Stands for a record of which nothing is known."""

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
    """The places of images whose bytes do not have the digest that the row states."""
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
