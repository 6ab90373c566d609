"""Replay: every program of a shipped dataset, executed again, gives what its row says.

The row's images and videos, its seed and its protocol's setup open a fresh session; its programs run in order. Status,
text, error and the pixels of every image are compared. Nothing is looked up: no ledger, no store, only the dataset.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

import sandbox
from pipelines.decoding import decode, eight_bit
from pipelines.execution import process_pool
from pipelines.protocols import PROTOCOLS
from pipelines.shipped import count_rows, read_rows
from pipelines.stages import Progress
from pipelines.threads import in_threads

What = Literal["status", "text", "error", "images", "pixels", "session"]
_EXCERPT = 120


@dataclass(frozen=True, slots=True)
class Difference:
    """A thing that came out otherwise. ``round`` counts from 1; of a ``session`` that ended: the last that ran."""

    family: str
    trajectory_id: str
    source_row: str
    round: int
    what: What
    recorded: str
    replayed: str
    other_sandbox: bool
    """Whether the row was made by another version of the sandbox than replayed it."""


@dataclass(frozen=True, slots=True)
class Replay:
    """How a dataset came out. A row is the same when each of its programs gave what the row says.

    >>> replay([Path("data/datasets/sft/crop")]).rate
    1.0
    """

    n_rows: int
    n_same: int
    differences: tuple[Difference, ...]
    n_programs: int = 0
    n_other_sandbox: int = 0
    """Rows made by another version of the sandbox, the same or not."""

    @property
    def rate(self) -> float:
        """The share of rows that are the same; 1.0 where there is none."""
        return self.n_same / self.n_rows if self.n_rows else 1.0


@dataclass(frozen=True, slots=True)
class _Replayed:
    n_programs: int
    other_sandbox: bool
    differences: tuple[Difference, ...]


def replay(folders: Sequence[Path], *, limit: int | None = None, progress: Progress | None = None) -> Replay:
    """Executes every program of the datasets in ``folders`` again (at most ``limit`` rows of each).

    As many sessions at a time as the machine has CPUs. A row whose session fails is a difference; raises
    ``sandbox.SandboxUnavailable`` when none can be had on this machine.
    """
    n_rows, replayed = count_rows(folders, limit=limit), []
    pool, rows = process_pool(sandbox.Limits()), read_rows(folders, limit=limit)
    for one in in_threads(rows, partial(replay_row, pool=pool), n_threads=os.cpu_count() or 1):
        replayed.append(one)
        if progress is not None:
            progress(len(replayed), n_rows)
    return Replay(
        n_rows=len(replayed),
        n_same=sum(not one.differences for one in replayed),
        differences=tuple(difference for one in replayed for difference in one.differences),
        n_programs=sum(one.n_programs for one in replayed),
        n_other_sandbox=sum(one.other_sandbox for one in replayed),
    )


def replay_row(row: Mapping[str, Any], *, pool: sandbox.SandboxPool) -> _Replayed:
    """One row, in a session of its own. Rows without programs have nothing that could differ."""
    other = row["provenance"]["sandbox_digest"] != sandbox.sandbox_digest()
    found: list[Difference] = []

    def differs(number: int, what: What, recorded: str, replayed: str) -> None:
        names = (row["family"], row["trajectory_id"], row["source_row"])
        found.append(Difference(*names, number, what, recorded, replayed, other))

    number = 0
    try:
        for number, seen in enumerate(_executed(row, pool), start=1):
            observation = row["rounds"][number - 1]["observation"]
            for what, recorded, replayed in _compared(row, observation, seen):
                differs(number, what, recorded, replayed)
    except sandbox.SandboxUnavailable:
        raise
    except (sandbox.SandboxError, _SetupFailed) as fault:
        differs(number, "session", f"{len(row['rounds'])} programs", f"{type(fault).__name__}: {fault}")
    return _Replayed(len(row["rounds"]), other, tuple(found))


class _SetupFailed(Exception):
    """The protocol's program did not run, or nobody knows the protocol."""


def _executed(row: Mapping[str, Any], pool: sandbox.SandboxPool) -> Iterator[sandbox.Observation]:
    if not row["rounds"]:
        return
    images = [image["bytes"] for image in row["images"][: row["n_question_images"]]]
    videos = [video["bytes"] for video in row.get("videos") or ()]
    with pool.group(images=images, videos=videos) as group, group.session(seed=row["provenance"]["seed"]) as session:
        _set_up(session, row["protocol"])
        for turn in row["rounds"]:
            yield session.run(turn["code"])


def _set_up(session: sandbox.Session, protocol: str) -> None:
    if protocol not in PROTOCOLS:
        raise _SetupFailed(f"no protocol {protocol!r} here; there are {', '.join(PROTOCOLS)}")
    program = PROTOCOLS[protocol].setup
    if program and not (seen := session.run(program)).ok:
        raise _SetupFailed(f"{protocol}: {seen.status}: {seen.error or seen.text}")


def _compared(
    row: Mapping[str, Any], recorded: Mapping[str, Any], seen: sandbox.Observation
) -> Iterator[tuple[What, str, str]]:
    """What differs between an observation of the row and one of now, as both say it."""
    if recorded["status"] != seen.status:
        yield "status", recorded["status"], seen.status
    if recorded["text"] != seen.text:
        yield "text", *_first_difference(recorded["text"], seen.text)
    if (recorded["error"] or "") != (seen.error or ""):
        yield "error", *_first_difference(recorded["error"] or "", seen.error or "")
    if len(recorded["images"]) != len(seen.images):
        yield "images", str(len(recorded["images"])), str(len(seen.images))
        return
    for place, shown in zip(recorded["images"], seen.images, strict=True):
        before, after = decode(row["images"][place]["bytes"]), eight_bit(shown.pixels)
        if said := _other_pixels(before, after):
            yield "pixels", f"image {place}: {_described(before)}", said


def _other_pixels(before: Image.Image, after: Image.Image) -> str:
    """Empty where every pixel is the same."""
    if (before.size, before.mode) != (after.size, after.mode):
        return _described(after)
    most = int(np.abs(np.asarray(before, np.int16) - np.asarray(after, np.int16)).max())
    return f"differs by up to {most} of 255" if most else ""


def _described(image: Image.Image) -> str:
    return f"{image.width}x{image.height} {image.mode}"


def _first_difference(before: str, after: str) -> tuple[str, str]:
    """Both texts around the first character in which they differ."""
    at = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    begin = max(0, at - _EXCERPT // 3)
    return before[begin : begin + _EXCERPT], after[begin : begin + _EXCERPT]
