"""The tables that the stages of data leave, written directly: rows of the real records, images by reference only.

A partition has 1,000 samples, each with an image and a question of its own. One in fifty is asked again in nearly the
same words, half of these about the same image. There are their trajectories with two images more each, one in ten
rejected by a check, and what the RL stages measured. Partitions are made once; a size takes the first ones, as hard
links.
"""

import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from darkroom.pipelines.generation.engine import STAGES
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.records import (
    CheckedLabel,
    Grader,
    PassRate,
    Reject,
    RLCandidate,
    Sample,
    SuitabilityLabel,
    SuitabilityVotes,
    ToolNecessity,
    Trajectory,
    Usage,
    Votes,
    to_row,
)
from darkroom.pipelines.records.reject_reasons import Reason, reject
from darkroom.pipelines.rl import candidates, labels, necessity, pass_rates, suitability
from darkroom.pipelines.storage.tables import TableKey, Tables
from measurements.million.rows import FAMILY, made_sample, made_trajectory

PER_PARTITION = 1_000
_SYLLABLES = ("ba", "do", "fi", "gu", "ke", "lam", "mor", "nis", "pel", "rut", "sov", "tan", "vek", "wil", "zor")
_AGAIN = 50


def partition(number: int) -> str:
    return f"made-{number:05}"


def make_home(store: Path, home: Path, n_rows: int) -> list[str]:
    """A home with ``n_rows`` rows of every table, and its partitions; made from those of ``store``, or in it."""
    partitions = [partition(number) for number in range(n_rows // PER_PARTITION)]
    tables = Tables(store / "tables")
    for number, name in enumerate(partitions):
        if not tables.exists(TableKey((labels.ASSET,), name)):
            _write_partition(tables, number, name)
    for path in sorted((store / "tables").rglob("*.parquet")):
        name, own = path.name.split(".")[0], home / path.relative_to(store)
        if name in partitions and not own.exists():
            own.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, own)
    return partitions


def question(n: int) -> str:
    """About twelve words, unlike others; every fiftieth is the one before with a word added."""
    rng = random.Random(n - (n % _AGAIN == _AGAIN - 1))
    words = ["".join(rng.choices(_SYLLABLES, k=3)) for _ in range(rng.randint(10, 16))]
    return f"What does the {' '.join(words)} show{' here' if n % _AGAIN == _AGAIN - 1 else ''}?"


def _write_partition(tables: Tables, number: int, name: str) -> None:
    first = number * PER_PARTITION
    numbers = range(first, first + PER_PARTITION)
    samples = [made_sample(n, question(n), image=n - (n % (2 * _AGAIN) == 2 * _AGAIN - 1)) for n in numbers]
    rows = [made_trajectory(n, sample) for n, sample in zip(numbers, samples, strict=True)]
    kept, failed = [row for n, row in enumerate(rows) if n % 10], rows[::10]
    _write(tables, SAMPLES, name, Sample, samples)
    for stage in STAGES:
        _write(tables, (FAMILY, stage), name, Trajectory, kept if stage == STAGES[-1] else ())
    rejects = [
        _reject(f"{FAMILY}/verdicts", row.sample_id, to_row(row), trajectory_id=row.trajectory_id) for row in failed
    ]
    _write(tables, (FAMILY, "verdicts"), name, Trajectory, kept, rejects)
    _write_rl(tables, name, [sample.sample_id for sample in samples])


def _write_rl(tables: Tables, name: str, ids: Sequence[str]) -> None:
    votes = [Votes("simulated", (True,) * (n % 7) + (False,) * (8 - n % 7), 8) for n in range(len(ids))]
    _write(
        tables, (candidates.ASSET,), name, RLCandidate, [RLCandidate(one, Grader("text"), (), Usage()) for one in ids]
    )
    rates = [PassRate(one, vote, vote.n_yes == 0) for one, vote in zip(ids, votes, strict=True)]
    rejects = [_reject(pass_rates.ASSET, rate.sample_id, to_row(rate)) for rate in rates[::10]]
    _write(tables, (pass_rates.ASSET,), name, PassRate, [rate for n, rate in enumerate(rates) if n % 10], rejects)
    pairs = list(zip(ids, votes, strict=True))
    _write(tables, (necessity.ASSET,), name, ToolNecessity, [ToolNecessity(one, vote, vote) for one, vote in pairs])
    _write(tables, (suitability.VOTES,), name, SuitabilityVotes, [SuitabilityVotes(one, vote) for one, vote in pairs])
    suitable = [SuitabilityLabel(one, True, "yes", 5, 3, 0, "simulated") for one in ids]
    _write(tables, (suitability.LABELS,), name, SuitabilityLabel, suitable)
    _write(tables, (labels.ASSET,), name, CheckedLabel, [CheckedLabel(one, vote) for one, vote in pairs])


def _reject(stage: str, sample_id: str, row: dict[str, Any], *, trajectory_id: str = "") -> Reject:
    reason, family = Reason.CHECK_FAILED, stage.partition("/")[0] if "/" in stage else ""
    names = {"family": family, "check": "crop_shows_target", "source": "made", "sample_id": sample_id}
    return reject(reason, "the crop misses the box", stage=stage, row=row, trajectory_id=trajectory_id, **names)


def _write(
    tables: Tables,
    asset: tuple[str, ...],
    name: str,
    kind: type[Any],
    rows: Sequence[Any],
    rejects: Sequence[Reject] = (),
) -> None:
    n_rejected = len(rejects)
    reasons = {"check_failed: crop_shows_target": n_rejected} if n_rejected else {}
    facts = {
        "n_in": len(rows) + n_rejected, "n_out": len(rows), "n_rejected": n_rejected, "n_quarantined": 0,
        "n_retryable": 0, "reasons": reasons, "usage": to_row(Usage(len(rows), 3000, 300, 0.001)),
        "notes": {"settings": {"n_answers": 8, "n_votes": 8, "tie": "unsuitable"}},
    }  # fmt: skip
    tables.write(TableKey(asset, name), kind, rows, rejects, inputs=json.dumps(name), facts=facts)
