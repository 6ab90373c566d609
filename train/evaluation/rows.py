"""Rollouts as rows: ``rollouts.parquet``, one row each, and as trajectories of a shipped dataset for the gallery."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import sandbox
from pipelines.prompts import bundled_prompt
from pipelines.records import Check, Provenance, Trajectory, to_row
from pipelines.schemas import TRAJECTORY
from pipelines.stages import code_version
from train.evaluation.metrics import tools_by_round
from train.evaluation.playing import Contestant, Played
from train.evaluation.results import Findings

_text, _bool = pa.string(), pa.bool_()
_SEEN = pa.struct(
    [
        ("round", pa.int64()),
        ("image", _text),
        ("of", pa.int64()),
        ("box", pa.list_(pa.int64())),
        ("share", pa.float64()),
        ("shows_target_by_boxes", _bool),
        ("shows_target_by_judge", _bool),
    ]
)
SCHEMA = pa.schema(
    [
        ("benchmark", _text),
        ("category", _text),
        ("cycle", _text),
        ("number", pa.int64()),
        ("question", _text),
        ("choices", pa.list_(_text)),
        ("gold", _text),
        ("right", _bool),
        ("score", pa.float64()),
        ("detail", _text),
        ("fault", _text),
        ("fault_evidence", _text),
        ("tools", pa.list_(pa.list_(_text))),
        ("seen", pa.list_(_SEEN)),
        *TRAJECTORY,
    ]
)
"""What was asked and how it went, then a trajectory's columns. ``seen``: every picture that programs showed, with the
part of the question's picture ``of`` that it is (null: none of it). Images are in the store, by sha256."""


def write_rollouts(path: Path, found: Findings, contestant: Contestant) -> None:
    """Every rollout, in order."""
    rows = [_row(one, found, contestant) for one in found.played]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path, compression="zstd")


def trajectory(one: Played, found: Findings, contestant: Contestant) -> Trajectory:
    """The rollout as a trajectory; its checks say how it went."""
    return Trajectory(
        trajectory_id=one.task.trajectory_id,
        sample_id=one.question.sample.sample_id,
        family=one.question.benchmark,
        protocol=contestant.protocol_of(one.question).name,
        images=one.images,
        rounds=one.rollout.rounds,
        final_thought=one.rollout.final_thought,
        answer=one.rollout.answer,
        loss_policy="all_rounds",
        checks=tuple(_checks(one, found)),
        usage=one.rollout.usage,
        provenance=_provenance(one, contestant),
        mode=one.task.mode,
    )


def chosen(played: Sequence[Played], n: int) -> list[Played]:
    """Up to ``n`` rollouts to look at: half of them wrong where there are as many, spread over all."""
    wrong, right = ([one for one in played if one.score.right is is_right] for is_right in (False, True))
    n_wrong = min(len(wrong), max(n // 2, n - len(right)))
    return [*_spread(wrong, n_wrong), *_spread(right, n - n_wrong)]


def _spread(played: Sequence[Played], n: int) -> list[Played]:
    stride = max(1, len(played) // n) if n else 1
    return list(played[::stride][:n])


def _row(one: Played, found: Findings, contestant: Contestant) -> dict[str, Any]:
    sample, fault = one.question.sample, one.rollout.fault
    return {
        "benchmark": one.question.benchmark,
        "category": sample.category,
        "cycle": one.question.cycle,
        "number": one.number,
        "question": sample.question,
        "choices": list(sample.choices),
        "gold": sample.answer,
        "right": one.score.right,
        "score": one.score.value,
        "detail": one.score.detail,
        "fault": None if fault is None else str(fault.reason),
        "fault_evidence": None if fault is None else fault.evidence,
        "tools": [sorted(map(str, kinds)) for kinds in tools_by_round(one)],
        "seen": list(_seen(one, found)),
        **to_row(trajectory(one, found, contestant)),
    }


def _seen(one: Played, found: Findings) -> Iterator[dict[str, Any]]:
    knows = bool(one.question.sample.truth.boxes)
    for seen in one.seen:
        yield {
            "round": seen.round,
            "image": seen.image.sha256,
            "of": seen.of if seen.change else None,
            "box": list(seen.change.box) if seen.change else None,
            "share": seen.change.share if seen.change else None,
            "shows_target_by_boxes": found.by_boxes(one, seen) if knows else None,
            "shows_target_by_judge": None if found.words is None else found.by_judge(one, seen),
        }


def _checks(one: Played, found: Findings) -> Iterator[Check]:
    yield Check("answer", one.score.right, one.score.value, one.score.detail)
    if one.question.sample.truth.boxes and one.seen:
        crops = [seen for seen in one.seen if seen.is_part(found.whole_share)]
        shows = any(found.by_boxes(one, seen) for seen in crops)
        yield Check("faithful_by_boxes", shows, detail=f"{len(crops)} of {len(one.seen)} pictures are parts")
    if found.words is not None and one.seen:
        yield Check("faithful_by_judge", any(found.by_judge(one, seen) for seen in one.seen))


def _provenance(one: Played, contestant: Contestant) -> Provenance:
    identity = contestant.policy.identity
    return Provenance(
        policy=identity.policy,
        model=identity.model,
        revision=identity.revision,
        sampling=json.dumps(dict(identity.sampling), sort_keys=True),
        prompt_digest=bundled_prompt(contestant.protocol_of(one.question).name).digest,
        sandbox_digest=sandbox.sandbox_digest(),
        seed=one.task.seed,
        code_version=code_version(),
    )
