"""Replay: all code of a shipped dataset, executed again and compared with the observations of its rows.

The row's images and videos, its seed and its protocol's setup open a fresh session; its code runs in order. Status,
text, error and the pixels of every image are compared. It needs the dataset alone: no ledger, no image store.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from PIL import Image

from darkroom import sandbox
from darkroom.pipelines.generation.sandbox_sessions import process_pool
from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.models.tasks import image_names
from darkroom.pipelines.publishing.dataset_reader import map_in_threads, read_rows
from darkroom.pipelines.storage.media_validation import decode, eight_bit
from darkroom.pipelines.storage.store_paths import StorePath

What = Literal["status", "text", "error", "images", "pixels", "session"]
Execute = Callable[[Mapping[str, Any]], Iterator[sandbox.Observation]]
"""Runs the code of a row, round by round. Raises ``SetupFailed``, ``NotComparable``, ``sandbox.SandboxError``."""
_EXCERPT = 120


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. ``round`` counts from 1; of a ``session`` that ended: the last that ran."""

    round: int
    what: What
    recorded: str
    replayed: str


@dataclass(frozen=True, slots=True)
class Replay:
    """The replay of a dataset. A row is the same when all of its code gives its recorded observations.

    >>> replay([Path("data/datasets/sft/crop")]).rate
    1.0
    """

    n_rows: int
    n_same: int
    n_programs: int

    @property
    def rate(self) -> float:
        """The share of rows that are the same; 1.0 where there is none."""
        return self.n_same / self.n_rows if self.n_rows else 1.0


def replay(folders: Sequence[StorePath], *, limit: int | None = None) -> Replay:
    """Executes all code of the datasets in ``folders`` again (at most ``limit`` rows of each), a session per CPU at a
    time. A session that fails is a difference; raises ``sandbox.SandboxUnavailable`` when none can be had."""

    def replayed(row: Mapping[str, Any]) -> tuple[int, bool]:
        return len(row["rounds"]), not replay_row(row, execute=in_sandbox)

    rows = list(map_in_threads(read_rows(folders, limit=limit), replayed))
    return Replay(len(rows), n_same=sum(is_same for _, is_same in rows), n_programs=sum(n for n, _ in rows))


def replay_row(row: Mapping[str, Any], *, execute: Execute) -> list[Difference]:
    """The differences of one row, by ``execute``. Rows without code have nothing that could differ."""
    differences: list[Difference] = []
    number = 0
    try:
        for number, replayed in enumerate(execute(row), start=1):
            recorded = row["rounds"][number - 1]["observation"]
            differences += [Difference(number, *found) for found in _compared(row["images"], recorded, replayed)]
    except sandbox.SandboxUnavailable:
        raise
    except (sandbox.SandboxError, SetupFailed) as error:
        expected = f"{len(row['rounds'])} rounds of code"
        differences.append(Difference(number, "session", expected, f"{type(error).__name__}: {error}"))
    return differences


class NotComparable(Exception):
    """Why the observations of a row cannot be had a second time."""


class SetupFailed(Exception):
    """The protocol's setup did not run, or the protocol is unknown."""


def in_sandbox(row: Mapping[str, Any]) -> Iterator[sandbox.Observation]:
    """Runs a row in this process's pool, in a session of its own; the pool starts with the first code."""
    if not row["rounds"]:
        return
    pool = process_pool(sandbox.Limits())
    images = [image["bytes"] for image in row["images"][: row["n_question_images"]]]
    videos = [video["bytes"] for video in row.get("videos") or ()]
    with (
        pool.group(images=images, videos=videos, names=image_names(row["question"])) as group,
        group.session(seed=row["provenance"]["seed"]) as session,
    ):
        if (setup := setup_of(row["protocol"])) and not (observation := session.run(setup)).ok:
            raise SetupFailed(f"{row['protocol']}: {observation.status}: {observation.error or observation.text}")
        for turn in row["rounds"]:
            yield session.run(turn["code"])


def setup_of(protocol: str) -> str:
    """The code that a protocol runs before the row's own; empty for none. Raises ``SetupFailed``."""
    if protocol not in PROTOCOLS:
        raise SetupFailed(f"no protocol {protocol!r} here; there are {', '.join(PROTOCOLS)}")
    return PROTOCOLS[protocol].setup


def _compared(
    images: Sequence[Mapping[str, Any]], recorded: Mapping[str, Any], replayed: sandbox.Observation
) -> Iterator[tuple[What, str, str]]:
    """Differences between the recorded observation and today's, with both versions."""
    if recorded["status"] != replayed.status:
        yield "status", recorded["status"], replayed.status
    if recorded["text"] != replayed.text:
        yield "text", *_first_difference(recorded["text"], replayed.text)
    if (recorded["error"] or "") != (replayed.error or ""):
        yield "error", *_first_difference(recorded["error"] or "", replayed.error or "")
    if len(recorded["images"]) != len(replayed.images):
        yield "images", str(len(recorded["images"])), str(len(replayed.images))
        return
    for place, image in zip(recorded["images"], replayed.images, strict=True):
        before, after = decode(images[place]["bytes"]), eight_bit(image.pixels)
        if (before.size, before.mode) != (after.size, after.mode):
            yield "pixels", f"image {place}: {_described(before)}", _described(after)
        elif most := int(np.abs(np.asarray(before, np.int16) - np.asarray(after, np.int16)).max()):
            yield "pixels", f"image {place}: {_described(before)}", f"differs by up to {most} of 255"


def _described(image: Image.Image) -> str:
    return f"{image.width}x{image.height} {image.mode}"


def _first_difference(before: str, after: str) -> tuple[str, str]:
    """Both texts around the first character in which they differ."""
    at = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    begin = max(0, at - _EXCERPT // 3)
    return before[begin : begin + _EXCERPT], after[begin : begin + _EXCERPT]
