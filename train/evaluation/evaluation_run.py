"""One evaluation run: rollouts, scores, image regions, judge verdicts and controls, all recorded on the ledger.

With several processes (``torchrun``, ``accelerate launch``) each rolls out its share of the questions for the ledger.
The first then does the whole evaluation, in which the others' rollouts cost nothing.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import chain, product
from typing import Any, TypeVar

from darkroom.pipelines.generation.sandbox_sessions import Sandboxes
from darkroom.pipelines.models.policies import Policy, RecordedPolicy
from darkroom.pipelines.records import ImageRef, Usage, to_row
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.storage.stage_runs import map_rows
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.vision.visibility import VisionModel
from darkroom.sandbox import SandboxUnavailable
from darkroom.sandbox.errors import raised_as
from darkroom.train.evaluation.counterfactuals import CONTROLS, Counterfactual, CounterfactualRunner, eligible
from darkroom.train.evaluation.observed_images import ImageTracer
from darkroom.train.evaluation.questions import Question, QuestionSet
from darkroom.train.evaluation.results import Findings, results, shown_to
from darkroom.train.evaluation.rollouts import EvaluatedPolicy, ScoredRollout, run_rollout, score, task_of
from darkroom.train.evaluation.settings import EvaluationSettings
from darkroom.train.runs import TrainError
from darkroom.train.runs.command_line import n_processes
from darkroom.train.runs.reporting import RunReporter, progress_lines

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EvaluationRun:
    """One evaluation in a workspace."""

    workspace: Workspace
    settings: EvaluationSettings
    evaluated: EvaluatedPolicy
    judge: Policy | None
    vision: VisionModel
    report: RunReporter

    def run(self, question_sets: Sequence[QuestionSet]) -> Findings:
        """Run everything. Raises ``PolicyUnavailable`` for policy and judge, ``TrainError`` without a sandbox."""
        return self._until_done(self._run(question_sets))

    def roll_out(self, question_sets: Sequence[QuestionSet]) -> None:
        """Run only the rollouts and their scores, for the ledger. Raises as ``run``."""
        self._until_done(self._roll_out(question_sets))

    async def _roll_out(self, question_sets: Sequence[QuestionSet]) -> None:
        async with self._opened() as (evaluated, judge):
            await self._rollouts(question_sets, evaluated, judge)

    def _until_done(self, work: Coroutine[Any, Any, T]) -> T:
        with raised_as(lambda error: TrainError(f"no code can be executed here: {error}"), SandboxUnavailable):
            return asyncio.run(work)

    async def _run(self, question_sets: Sequence[QuestionSet]) -> Findings:
        async with self._opened() as (evaluated, judge):
            outcomes = await self._rollouts(question_sets, evaluated, judge)
            rollouts = [scored for scored in outcomes if isinstance(scored, ScoredRollout)]
            counted = [scored for scored in rollouts if not scored.failed]
            verdicts = await self._verdicts(counted, judge)
            controlled = await self._controls(counted, evaluated)
        settings, unasked = self.settings, [reason for reason in outcomes if isinstance(reason, str)]
        return Findings(rollouts, controlled, verdicts, self.vision, settings.cover, settings.whole_share, unasked)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[tuple[EvaluatedPolicy, RecordedPolicy | None]]:
        async with AsyncExitStack() as stack:
            policy = await stack.enter_async_context(RecordedPolicy(self.evaluated.policy, self.workspace.ledger))
            await policy.check()
            judge = None
            if self.judge is not None:
                judge = await stack.enter_async_context(RecordedPolicy(self.judge, self.workspace.ledger))
                await judge.check()
            yield replace(self.evaluated, policy=policy), judge

    async def _rollouts(
        self, question_sets: Sequence[QuestionSet], evaluated: EvaluatedPolicy, judge: Policy | None
    ) -> list[ScoredRollout | str]:
        questions = chain.from_iterable(origin.questions for origin in question_sets)
        rows = list(product(questions, range(self.settings.rollouts)))
        sandboxes = Sandboxes(self.workspace.images, self.workspace.ledger)
        tracer = ImageTracer(self.workspace.images, self.workspace.ledger)

        async def perform(row: tuple[Question, int]) -> ScoredRollout | str:
            question, number = row
            try:
                task = task_of(question, number, evaluated)
            except RowError as error:
                return str(error.reason)
            rollout = await run_rollout(question, task, evaluated, sandboxes)
            try:
                scored = await score(rollout, question, judge)
            except RowError as error:  # the judge gave no vote
                rollout = replace(rollout, error=error)
                scored = await score(rollout, question)
            return ScoredRollout(question, number, task, rollout, scored, await tracer.trace(task.images, rollout))

        n_at_once, progress = evaluated.policy.concurrency, progress_lines(self.report, "rollouts")
        return await map_rows(rows, perform, concurrency=n_at_once, progress=progress)

    async def _verdicts(
        self, rollouts: Sequence[ScoredRollout], judge: Policy | None
    ) -> dict[tuple[str, str], bool] | None:
        if judge is None:
            return None
        from darkroom.train.rl.judging.judges import shows_target

        async def shows(question: str, image: ImageRef) -> bool:
            return (await shows_target(question, image, judge, n_votes=self.settings.judge_votes)).says_yes

        return await shown_to(shows, rollouts)

    async def _controls(self, rollouts: Sequence[ScoredRollout], evaluated: EvaluatedPolicy) -> list[Counterfactual]:
        chosen = eligible([scored for scored in rollouts if scored.number == 0])[: self.settings.controls]
        if not chosen:
            return []
        runner = CounterfactualRunner(evaluated, self.workspace.images, self.workspace.ledger, rollouts)
        is_sampled = self.settings.temperature > 0
        rows = [(scored, control) for control in CONTROLS if is_sampled or control != "other_draw" for scored in chosen]
        return await map_rows(
            rows,
            lambda row: runner.run(*row),
            concurrency=evaluated.policy.concurrency,
            progress=progress_lines(self.report, "controls"),
        )


def report_record(
    settings: EvaluationSettings, evaluated: EvaluatedPolicy, question_sets: Sequence[QuestionSet], findings: Findings
) -> dict[str, Any]:
    """The content of ``report.json``, but for the digest of its inputs and how long it took."""
    identity = evaluated.policy.identity
    protocols = sorted({evaluated.protocol_of(scored.question).name for scored in findings.rollouts})
    modes = sorted({scored.task.mode for scored in findings.rollouts})
    origins = [{"name": part.name, "n": len(part.questions), "left_out": dict(part.left_out)} for part in question_sets]
    errors = Counter(str(scored.rollout.error.reason) for scored in findings.failed if scored.rollout.error)
    return {
        "program": "evaluate",
        "settings": settings.as_json(),
        "who": {
            "label": f"the oracle of {settings.oracle}" if settings.oracle else identity.model,
            **identity.as_json(),
            "protocol": ", ".join(protocols),
            "mode": ", ".join(modes),
            "max_rounds": evaluated.max_rounds,
            **({"prompt": evaluated.wording.record} if evaluated.wording else {}),
            "rollouts": settings.rollouts,
        },
        "asked": origins,
        "official": [part.name for part in question_sets if any(question.official for question in part.questions)],
        "unasked": {reason: n // settings.rollouts for reason, n in Counter(findings.unasked).items()},
        "n_failed": len(findings.failed),
        "failures": dict(errors),
        "results": results(findings),
        "usage": to_row(sum((scored.rollout.usage for scored in findings.rollouts), Usage())),
    }


_LONGEST_WAIT = timedelta(days=7)
"""Longest wait of a process that has finished, for the last one."""


def roll_out_share(run: EvaluationRun, question_sets: Sequence[QuestionSet]) -> None:
    """Roll out this process's questions, then wait for the other processes. Raises as ``EvaluationRun.run``."""
    import torch.distributed as dist  # heavy, and for several processes only

    rank, n = int(os.environ["RANK"]), n_processes()
    dist.init_process_group("gloo", timeout=_LONGEST_WAIT)
    try:
        run.roll_out([replace(questions, questions=questions.questions[rank::n]) for questions in question_sets])
        dist.barrier()
    finally:
        dist.destroy_process_group()
