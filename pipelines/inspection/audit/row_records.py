"""A shipped row as records again: trajectory, sample, images as a store, and its case for checks.

``KnownTruth`` is what the workspace knows beside the dataset (samples with their truth, hints, votes). It waits on
disk: of each about 30 bytes are in memory. Whatever neither of them knows raises ``NotKnown`` where a check reads it.
"""

import json
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from darkroom.pipelines import records
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.records.digest import digest_bytes, key64
from darkroom.pipelines.rl import necessity, pass_rates, suitability
from darkroom.pipelines.storage.images import ImageMissing, ImageStore
from darkroom.pipelines.storage.row_files import KeyedSpill
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.verification.case import Case
from darkroom.sandbox.errors import raised_as

R = TypeVar("R")
_FORCED, _FORBIDDEN = "forced", "forbidden"


class KnownTruth:
    """Look-ups by id; ``None`` where the workspace does not know the row."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._lock = threading.Lock()
        self._families: set[str] = set()
        self._rows = KeyedSpill(Path(tempfile.gettempdir()))
        for sample in self._read(SAMPLES, records.Sample):
            self._put("sample", sample.sample_id, sample)
        for rate in self._read((pass_rates.ASSET,), records.PassRate):
            self._put(pass_rates.ASSET, rate.sample_id, _counted(rate.votes))
        for votes in self._read((suitability.VOTES,), records.SuitabilityVotes):
            self._put(suitability.VOTES, votes.sample_id, _counted(votes.votes))
        for measured in self._read((necessity.ASSET,), records.ToolNecessity):
            self._put(_FORCED, measured.sample_id, _counted(measured.forced))
            self._put(_FORBIDDEN, measured.sample_id, _counted(measured.forbidden))

    def sample(self, sample_id: str) -> records.Sample | None:
        return cast(records.Sample | None, self._get("sample", sample_id))

    def hint(self, family: str, trajectory_id: str) -> dict[str, Any] | None:
        """The recipe's hint to the policy when the row was drafted."""
        with self._lock:
            if family not in self._families:
                self._families.add(family)
                for draft in self._read((family, "drafts"), records.Draft):
                    self._put("hint", draft.trajectory_id, json.loads(draft.hint))
        return cast(dict[str, Any] | None, self._get("hint", trajectory_id))

    def votes(self, asset: str, sample_id: str) -> dict[str, int] | None:
        """``yes``, ``no`` and ``n`` of a stage's ballots; of necessity as ``forced`` and ``forbidden``."""
        return cast(dict[str, int] | None, self._get(asset, sample_id))

    def _read(self, asset: tuple[str, ...], kind: type[R]) -> Iterator[R]:
        for key in self.workspace.tables.keys(asset):
            yield from self.workspace.tables.read(key, kind)

    def _put(self, kind: str, row_id: str, value: Any) -> None:
        self._rows.add(key64(f"{kind}/{row_id}"), value)

    def _get(self, kind: str, row_id: str) -> Any:
        with self._lock:
            return self._rows.get(key64(f"{kind}/{row_id}"))


def _counted(votes: records.Votes) -> dict[str, int]:
    return {"yes": votes.n_yes, "no": votes.n_no, "n": votes.n}


Row = Mapping[str, Any]


class NotKnown(Exception):
    """Neither the dataset nor the workspace knows what a check needs; the message names it."""


class RowImages(ImageStore):
    """The row's own images and videos by their digests, and those of the workspace's store behind them."""

    def __init__(self, images: Mapping[str, bytes], behind: ImageStore | None) -> None:
        self._images, self._behind = images, behind

    def read(self, ref: records.ImageRef | records.VideoRef | str) -> bytes:
        sha256 = ref if isinstance(ref, str) else ref.sha256
        if (data := self._images.get(sha256)) is not None:
            return data
        if self._behind is None:
            raise NotKnown("an image that the dataset does not hold")
        with raised_as(lambda error: NotKnown("an image that the dataset does not hold"), ImageMissing):
            return self._behind.read(sha256)


def trajectory_of(row: Row) -> records.Trajectory:
    """The record that the row was written from, without what it cost."""
    refs = [records.from_row(records.ImageRef, ref) for ref in row["image_refs"]]
    names = ("trajectory_id", "sample_id", "family", "protocol", "final_thought", "answer", "loss_policy", "mode")
    rounds = [
        turn | {"observation": observation | {"images": [row["image_refs"][n] for n in observation["images"]]}}
        for turn, observation in ((turn, turn["observation"]) for turn in row["rounds"])
    ]
    record = {name: row[name] for name in names} | {
        "images": [],
        "rounds": rounds,
        "checks": row["checks"],
        "usage": {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "cost_usd": 0.0},
        "provenance": row["provenance"],
    }
    return replace(records.from_row(records.Trajectory, record), images=tuple(refs[: row["n_question_images"]]))


_SAMPLE = ("sample_id", "source", "source_row", "license", "question", "category")


def sample_of(row: Row, **known: Any) -> records.Sample:
    """The row's question as a sample; images, answer and truth are ``known``: kinds of rows have them elsewhere."""
    return records.Sample(**{name: row[name] for name in _SAMPLE}, choices=tuple(row["choices"]), **known)


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
    """The row's case, with its sample and hint where the workspace knows them; else the sample is the row's question
    and answer, without truth and unchanged images. Raises ``cattrs`` errors and ``KeyError`` for a malformed row."""
    trajectory = trajectory_of(row)
    media = [*zip(row["image_refs"], row["images"], strict=True)]
    media += zip(row.get("video_refs") or (), row.get("videos") or (), strict=True)
    store = RowImages({ref["sha256"]: file["bytes"] for ref, file in media}, truth.workspace.images if truth else None)
    sample = truth.sample(trajectory.sample_id) if truth else None
    hint = truth.hint(trajectory.family, trajectory.trajectory_id) if truth else None
    if sample is None:
        prepared = any(image.made_by for image in trajectory.images)
        sample = sample_of(
            row,
            images=_Unknown("the images before the recipe changed them") if prepared else trajectory.images,
            answer=trajectory.answer,
            truth=_Unknown("the truth about the sample"),
            videos=tuple(records.from_row(records.VideoRef, ref) for ref in row.get("video_refs") or ()),
        )
    return Case(sample, trajectory, UnknownHint() if hint is None else hint, store)


def changed_images(row: Row) -> list[int]:
    """Indexes of images whose bytes do not have the digest that the row states."""
    pairs = zip(row["image_refs"], row["images"], strict=True)
    return [n for n, (ref, image) in enumerate(pairs) if digest_bytes(image["bytes"]) != ref["sha256"]]
