"""A shard of questions: signs in images, and problems in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.stage import Shard
from darkroom.pipelines.models.policies import CompletionRequest
from darkroom.pipelines.records import Truth, TruthBox
from darkroom.pipelines.rl.candidates import Candidates
from darkroom.pipelines.rl.labels import CheckedLabels
from darkroom.pipelines.rl.pass_rates import PassRates
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.storage.workspace import Workspace
from tests.conftest import signed
from tests.pipelines.scripted import Scripted

YES, NO = '{"reason": "so it is", "verdict": true}', '{"reason": "not at all", "verdict": false}'
N_SIGNS, N_PROBLEMS = 4, 4


@dataclass(frozen=True)
class Questions:
    """``sign/n`` shows a sign that says ``S<n>X``; ``sum/n`` asks for a sum."""

    name: str = "questions"
    n_shards: int = 1
    fingerprint: str = "questions"
    extra: tuple[SourceRow, ...] = ()

    def rows(self, shard: int) -> Iterator[SourceRow]:
        for n in range(N_SIGNS):
            box = (40 + 60 * n, 60 + 30 * n, 88 + 60 * n, 84 + 30 * n)
            yield SourceRow(
                row=f"sign/{n}",
                images=(signed(n, f"S{n}X", box),),
                question=f"What does sign number {n} say?",
                answer=f"S{n}X",
                truth=Truth(boxes=(TruthBox("sign", *box),)),
                category="OCR",
                license="CC0-1.0",
            )
        for n in range(N_PROBLEMS):
            question = f"What is the sum of {17 * n + 3}, {n + 40} and the number of sides of {_FIGURES[n]}?"
            answer = str(17 * n + 3 + n + 40 + _SIDES[n])
            yield SourceRow(f"sum/{n}", (), question, answer, category="algebra", license="CC0-1.0")
        yield from self.extra


_FIGURES, _SIDES = ("a triangle", "one square in the plane", "some pentagon", "this regular hexagon"), (3, 4, 5, 6)


@pytest.fixture
def shard(workspace: Workspace) -> Shard:
    """Its samples are taken in."""
    return taken_in(workspace, Questions())


def taken_in(workspace: Workspace, source: Any, partition: str = "questions-0000") -> Shard:
    with workspace:
        pass
    engine.intake(workspace, source, 0, partition)
    return Shard(workspace, partition)


def answering(right: Callable[[CompletionRequest], bool], *, name: str = "student") -> Scripted:
    """Answers rightly where ``right`` says so."""
    return Scripted(lambda turn: f"<answer>{turn.task.sample.answer if right(turn) else 'nothing'}</answer>", name=name)


def judging(says: Callable[[CompletionRequest], bool]) -> Scripted:
    """Votes as ``says``."""
    return Scripted(lambda turn: YES if says(turn) else NO, name="judge")


def source_row(turn: CompletionRequest) -> str:
    return turn.task.sample.source_row


@pytest.fixture
def candidates(shard: Shard) -> Shard:
    """The shard with its candidates: all samples."""
    shard.materialize(Candidates(judge=judging(lambda turn: True)))
    return shard


@pytest.fixture
def checked(candidates: Shard) -> Shard:
    """And all labels confirmed."""
    candidates.materialize(CheckedLabels(judge=answering(lambda turn: True, name="judge")))
    return candidates


@pytest.fixture
def rated(checked: Shard) -> Shard:
    """And all of them solved in about half of the answers."""
    checked.materialize(PassRates(student=answering(lambda turn: bool(turn.seed % 2))))
    return checked
