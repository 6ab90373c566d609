"""The course of an evaluation: rollouts, scores, what pictures are, the judge's word, controls; all on the ledger."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from pipelines.execution import Sandboxes
from pipelines.policies import Policy, PolicyUnavailable, RecordedPolicy
from pipelines.progress import Pace, Stand
from pipelines.records import ImageRef
from pipelines.rejects import RowFault
from pipelines.stages import Progress, map_rows
from pipelines.visual_tokens import Vision
from pipelines.workspace import Workspace
from sandbox import SandboxUnavailable
from train.evaluation.controls import CONTROLS, Control, Controlled, Stage, eligible
from train.evaluation.faithfulness import shown_to
from train.evaluation.pictures import Looker
from train.evaluation.playing import Contestant, Played, play, task_of
from train.evaluation.questions import Asked, Question
from train.evaluation.results import Findings
from train.evaluation.scoring import score
from train.evaluation.settings import Settings
from train.faults import TrainFault
from train.reporting import Report

_TELL_SECONDS = 10.0


class Done(NamedTuple):
    """What was found out, and the questions that could not be asked, by reason."""

    findings: Findings
    unasked: Sequence[str]


@dataclass(frozen=True, slots=True)
class Course:
    """One evaluation at work in a workspace."""

    workspace: Workspace
    settings: Settings
    contestant: Contestant
    judge: Policy | None
    vision: Vision
    report: Report

    def run(self, asked: Sequence[Asked]) -> Done:
        """Everything. Raises ``TrainFault`` where the policy, the judge or the sandbox cannot be had at all."""
        try:
            return asyncio.run(self._run(asked))
        except PolicyUnavailable as fault:
            raise TrainFault(str(fault)) from fault
        except SandboxUnavailable as fault:
            raise TrainFault(f"no program can be executed here: {fault}") from fault

    async def _run(self, asked: Sequence[Asked]) -> Done:
        async with self._opened() as (contestant, judge):
            made = await self._played(asked, contestant, judge)
            played = [one for one in made if isinstance(one, Played)]
            counted = [one for one in played if not one.failed]
            words = await self._words(counted, judge)
            controlled = await self._controlled(counted, contestant)
        settings = self.settings
        found = Findings(played, controlled, words, self.vision, settings.cover, settings.whole_share)
        return Done(found, [one for one in made if isinstance(one, str)])

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[tuple[Contestant, RecordedPolicy | None]]:
        """Contestant and judge with the ledger as their memory."""
        async with AsyncExitStack() as stack:
            policy = await stack.enter_async_context(RecordedPolicy(self.contestant.policy, self.workspace.ledger))
            await policy.check()
            judge = None
            if self.judge is not None:
                judge = await stack.enter_async_context(RecordedPolicy(self.judge, self.workspace.ledger))
                await judge.check()
            yield replace(self.contestant, policy=policy), judge

    async def _played(self, asked: Sequence[Asked], contestant: Contestant, judge: Policy | None) -> list[Played | str]:
        rows = [
            (question, number)
            for origin in asked
            for question in origin.questions
            for number in range(self.settings.rollouts)
        ]
        sandboxes = Sandboxes(self.workspace.images, self.workspace.ledger)
        looker = Looker(self.workspace.images, self.workspace.ledger)

        async def perform(row: tuple[Question, int]) -> Played | str:
            return await self._play(*row, contestant, sandboxes, looker, judge)

        return await map_rows(
            rows, perform, concurrency=contestant.policy.concurrency, progress=told(self.report, "rollouts")
        )

    async def _play(
        self,
        question: Question,
        number: int,
        contestant: Contestant,
        sandboxes: Sandboxes,
        looker: Looker,
        judge: Policy | None,
    ) -> Played | str:
        try:
            task = task_of(question, number, contestant)
        except RowFault as fault:
            return str(fault.reason)
        made = await play(question, task, contestant, sandboxes)
        try:
            scored = await score(made, question, judge)
        except RowFault as fault:  # the judge's vote could not be had
            made = replace(made, fault=fault)
            scored = await score(made, question)
        return Played(question, number, task, made, scored, await looker.look(task.images, made))

    async def _words(self, played: Sequence[Played], judge: Policy | None) -> dict[tuple[str, str], bool] | None:
        if judge is None:
            return None
        from train.judging.judges import shows_target

        async def shows(question: str, image: ImageRef) -> bool:
            return (await shows_target(question, image, judge, n_votes=self.settings.judge_votes)).says_yes

        return await shown_to(shows, played)

    async def _controlled(self, played: Sequence[Played], contestant: Contestant) -> list[Controlled]:
        chosen = eligible([one for one in played if one.number == 0])[: self.settings.controls]
        if not chosen:
            return []
        store, ledger = self.workspace.images, self.workspace.ledger
        stage = Stage(contestant, Sandboxes(store, ledger), store, Looker(store, ledger), played)
        drawn = self.settings.temperature > 0
        rows = [(one, control) for control in CONTROLS if drawn or control != "other_draw" for one in chosen]

        async def perform(row: tuple[Played, Control]) -> Controlled:
            return await stage.play(*row)

        return await map_rows(
            rows, perform, concurrency=contestant.policy.concurrency, progress=told(self.report, "controls")
        )


def told(report: Report, what: str) -> Progress:
    """A line every ten seconds and at the end: ``rollouts: 24 of 100 rows (24%), 3.1 a second, …``."""
    pace, last = Pace(), [time.monotonic()]

    def tell(n_done: int, n_rows: int) -> None:
        if n_done == n_rows or time.monotonic() - last[0] >= _TELL_SECONDS:
            last[0] = time.monotonic()
            report.line(f"{what}: {pace.words(Stand(n_done, n_rows))}")

    return tell
