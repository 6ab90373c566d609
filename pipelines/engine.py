"""The one engine that runs every recipe: prepare -> draft -> run -> check -> keep, one partition at a time.

    samples                     what intake gave
    <family>/drafts             prepared, and the policy's opening turn written
    <family>/runs               rolled out: programs executed, turns written until there is an answer
    <family>/verdicts           every check's verdict on every run
    <family>/trajectories       those that passed all of them
    <family>/rejects            everything that a stage of the family took out, in one table

Each is a table (``pipelines/tables.py``); each can be killed and run again (``pipelines/ledger.py``).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sandbox
from pipelines.cases import Case
from pipelines.checks.necessity import Necessity
from pipelines.digest import digest
from pipelines.drafting import Drafter, Spent, provenance, task_of
from pipelines.draw import Draw
from pipelines.execution import Sandboxes
from pipelines.intake import take_in
from pipelines.isolation import row_fault
from pipelines.policies import Completion, Policy, RecordedPolicy
from pipelines.reader import reader_version
from pipelines.recipes.base import Recipe
from pipelines.records import Draft, Reject, Sample, Trajectory, Usage, from_row, to_row
from pipelines.rejects import Reason, RowFault, reject
from pipelines.rollout import rollout
from pipelines.sources.base import Source
from pipelines.stages import Outcome, Progress, Report, code_digest, map_rows, run_stage
from pipelines.tables import TableKey, TableStale
from pipelines.verdicts import Examiner, Panel
from pipelines.workspace import Workspace

_NOTHING = Usage()
SAMPLES = ("samples",)
STAGES = ("drafts", "runs", "verdicts", "trajectories")
"""A family's stages, in order. ``rejects`` collects what they took out."""


def intake(workspace: Workspace, source: Source, shard: int, partition: str) -> Report:
    """The samples of one shard of a source."""
    inputs = digest(["samples", source.fingerprint, shard, code_digest()])

    def perform() -> Outcome[Sample]:
        taken = take_in(source, shard, workspace.images)
        return Outcome(taken.samples, taken.rejects, taken.n_in)

    return run_stage(workspace.tables, TableKey(SAMPLES, partition), Sample, inputs=inputs, perform=perform)


@dataclass(frozen=True, slots=True)
class Family:
    """One recipe at work on one partition, with the policy that writes."""

    workspace: Workspace
    recipe: Recipe
    partition: str
    progress: Progress | None = None

    def key(self, stage: str) -> TableKey:
        """The table of a stage of this family."""
        return TableKey((self.recipe.family, stage), self.partition)

    @property
    def samples_key(self) -> TableKey:
        """The samples that the family works on."""
        return TableKey(SAMPLES, self.partition)

    def draft(self, policy: Policy, planner: Policy | None = None, *, n_most: int | None = None) -> Report:
        """Prepares every sample and has the opening turn written; ``planner`` writes the recipe's plans, if it has any.

        Where ``n_most`` drafts are enough, no more samples are drawn (``pipelines/draw.py``) and paid for. Raises
        ``PolicyUnavailable`` before any work when a policy cannot be reached.
        """
        identities = [policy.identity.as_json()]
        if self.recipe.plan is not None:
            identities.append((planner or policy).identity.as_json())
        limit = [] if n_most is None else [n_most]
        inputs = self._inputs("drafts", self.samples_key, *identities, sandbox.sandbox_digest(), *limit)
        return self._run("drafts", Draft, inputs, lambda: asyncio.run(self._draft(policy, planner, n_most)))

    def run(self, policy: Policy) -> Report:
        """Rolls every draft out: executes its program, shows the policy the result, until there is an answer."""
        identity = policy.identity.as_json()
        inputs = self._inputs("runs", self.key("drafts"), identity, sandbox.sandbox_digest())
        return self._run("runs", Trajectory, inputs, lambda: asyncio.run(self._roll_out(policy)))

    def check(
        self,
        judge: Policy | None = None,
        *,
        n_votes: int = 1,
        unaided: Policy | None = None,
        necessity: Necessity | None = None,
    ) -> Report:
        """Every check on every run; a run with failed checks stays in the table, with its verdicts.

        ``judge`` votes ``n_votes`` times in the checks that ask a judge; None is the embedded one. Each judge has the
        threshold of its calibration, if it has one. ``unaided`` answers without tools and without the image, as
        ``necessity`` (default: the recipe's) says; without one of the two that is not measured. Raises
        ``PolicyUnavailable`` before any work when a policy is needed and cannot be reached.
        """
        panel = Panel.of(self.recipe, self.workspace, judge, n_votes=n_votes, unaided=unaided, necessity=necessity)
        inputs = self._inputs("verdicts", self.key("runs"), panel.identity, reader_version())
        return self._run("verdicts", Trajectory, inputs, lambda: asyncio.run(self._check(panel)))

    def keep(self) -> Report:
        """The runs that passed every check."""
        return self._run("trajectories", Trajectory, self._inputs("trajectories", self.key("verdicts")), self._keep)

    def collect_rejects(self) -> Report:
        """What the family's stages took out of this partition, in one table."""
        tables = self.workspace.tables
        fingerprints = [tables.fingerprint(self.key(stage)) for stage in STAGES]
        rejects = [rejected for stage in STAGES for rejected in tables.read_rejects(self.key(stage))]
        inputs = digest(["rejects", fingerprints, code_digest()])
        return self._run("rejects", Reject, inputs, lambda: Outcome(rejects, (), len(rejects)))

    def _inputs(self, stage: str, upstream: TableKey, *rest: Any) -> str:
        fingerprint = self.workspace.tables.fingerprint(upstream)
        return digest([stage, fingerprint, self.recipe.digest, code_digest(), *rest])

    def _run(self, stage: str, kind: type[Any], inputs: str, perform: Callable[[], Outcome[Any]]) -> Report:
        return run_stage(self.workspace.tables, self.key(stage), kind, inputs=inputs, perform=perform)

    async def _draft(self, policy: Policy, planner: Policy | None, n_most: int | None) -> Outcome[Draft]:
        samples = self.workspace.tables.read(self.samples_key, Sample)
        ledger = self.workspace.ledger
        async with RecordedPolicy(policy, ledger) as writer, RecordedPolicy(planner or policy, ledger) as planning:
            await writer.check()
            if planner is not None and self.recipe.plan is not None:
                await planning.check()
            drafter = Drafter(self.recipe, self.workspace.images, writer, planning)
            drawn = Draw(samples, n_most)
            while batch := drawn.next():
                made = await map_rows(
                    batch,
                    lambda sample: self._draft_one(sample, drafter),
                    concurrency=policy.concurrency,
                    progress=self.progress,
                )
                drawn.take(batch, made)
        performed = writer.n_written + planning.n_written
        return _outcome(drawn.rows(self._not_drawn), len(samples), performed=performed)

    def _not_drawn(self, sample: Sample) -> Reject:
        fault = RowFault(Reason.NOT_DRAWN, "enough samples were drafted without this one")
        return self._reject("drafts", fault, sample, to_row(sample))

    async def _draft_one(self, sample: Sample, drafter: Drafter) -> Draft | Reject:
        spent = Spent()
        try:
            return await drafter.draft(sample, spent)
        except Exception as fault:  # noqa: BLE001  # sorted by row_fault
            row = {**to_row(sample), "text": spent.text, "usage": to_row(spent.usage)}
            return self._reject("drafts", row_fault(fault), sample, row)

    async def _roll_out(self, policy: Policy) -> Outcome[Trajectory]:
        drafts = self.workspace.tables.read(self.key("drafts"), Draft)
        self._require_same_policy(drafts, policy)
        samples = self._samples()
        begun = [(draft, self._sample(samples, draft)) for draft in drafts]
        store, ledger = self.workspace.images, self.workspace.ledger
        sandboxes = Sandboxes(store, ledger)
        async with RecordedPolicy(policy, ledger) as recorded:
            await recorded.check()
            made = await map_rows(
                begun,
                lambda pair: self._roll_out_one(*pair, recorded, sandboxes),
                concurrency=policy.concurrency,
                progress=self.progress,
            )
        paid_before = sum((draft.usage for draft in drafts), Usage())
        return _outcome(made, len(drafts), performed=recorded.n_written + sandboxes.n_executed, paid_before=paid_before)

    def _require_same_policy(self, drafts: Sequence[Draft], policy: Policy) -> None:
        """The policy that goes on must be the one that began: else provenance would name only one of two."""
        asked = provenance(self.recipe, policy, seed=0)
        for draft in drafts:
            wrote = replace(draft.provenance, seed=0, sandbox_digest=asked.sandbox_digest)
            if wrote != asked:
                raise TableStale(
                    f"{self.key('drafts')} was written by {wrote.policy} ({wrote.model}) with another prompt, model or "
                    f"sampling than {asked.policy} ({asked.model}) has now; materialise the drafts again first"
                )

    async def _roll_out_one(
        self, draft: Draft, sample: Sample, policy: Policy, sandboxes: Sandboxes
    ) -> Trajectory | Reject:
        try:
            return await self._rolled_out(draft, sample, policy, sandboxes)
        except Exception as fault:  # noqa: BLE001  # sorted by row_fault
            return self._reject("runs", row_fault(fault), sample, to_row(draft), draft.trajectory_id)

    async def _rolled_out(
        self, draft: Draft, sample: Sample, policy: Policy, sandboxes: Sandboxes
    ) -> Trajectory | Reject:
        recipe = self.recipe
        task = task_of(recipe, sample, draft.images, json.loads(draft.hint), draft.mode, policy)
        async with sandboxes.session(task.images, sample.videos, seed=task.seed) as session:
            made = await rollout(
                task,
                policy=policy,
                protocol=recipe.protocol,
                session=session,
                max_rounds=recipe.max_rounds,
                opening=Completion(draft.text, usage=draft.usage),
                follow_up=recipe.follow_up,
            )
        trajectory = Trajectory(
            trajectory_id=draft.trajectory_id,
            sample_id=sample.sample_id,
            family=recipe.family,
            protocol=recipe.protocol.name,
            images=task.images,
            rounds=made.rounds,
            final_thought=made.final_thought,
            answer=made.answer,
            loss_policy=recipe.loss_policy,
            checks=(),
            usage=made.usage,
            provenance=draft.provenance,
            mode=draft.mode,
        )
        if made.fault is not None:
            return self._reject("runs", made.fault, sample, to_row(trajectory), draft.trajectory_id)
        return trajectory

    async def _check(self, panel: Panel) -> Outcome[Trajectory]:
        hints = {draft.trajectory_id: draft.hint for draft in self.workspace.tables.read(self.key("drafts"), Draft)}
        samples, runs = self._samples(), self.workspace.tables.read(self.key("runs"), Trajectory)
        store = self.workspace.images
        cases = [Case(self._sample(samples, run), run, json.loads(hints[run.trajectory_id]), store) for run in runs]
        async with panel.opened(self.workspace.ledger) as examiner:
            made = await map_rows(
                cases,
                lambda case: self._check_one(case, examiner),
                concurrency=panel.concurrency,
                progress=self.progress,
            )
        paid_before = sum((run.usage for run in runs), Usage())
        done = _outcome(made, len(runs), performed=examiner.n_asked, paid_before=paid_before)
        return replace(done, notes=panel.notes)

    async def _check_one(self, case: Case, examiner: Examiner) -> Trajectory | Reject:
        trajectory, spent = case.trajectory, Spent()
        try:
            checks = await examiner.examine(case, spent)
        except Exception as fault:  # noqa: BLE001  # sorted by row_fault
            paid = replace(trajectory, usage=trajectory.usage + spent.usage)
            return self._reject("verdicts", row_fault(fault), case.sample, to_row(paid), trajectory.trajectory_id)
        return replace(trajectory, checks=checks, usage=trajectory.usage + spent.usage)

    def _keep(self) -> Outcome[Trajectory]:
        samples = self._samples()
        verdicts = self.workspace.tables.read(self.key("verdicts"), Trajectory)
        made = [self._keep_one(trajectory, self._sample(samples, trajectory)) for trajectory in verdicts]
        return _outcome(made, len(verdicts), paid_before=None)

    def _keep_one(self, trajectory: Trajectory, sample: Sample) -> Trajectory | Reject:
        if trajectory.passed:
            return trajectory
        failed = next(check for check in trajectory.checks if not check.passed)
        fault = RowFault(Reason.CHECK_FAILED, failed.detail)
        return self._reject("trajectories", fault, sample, to_row(trajectory), trajectory.trajectory_id, failed.name)

    def _samples(self) -> dict[str, Sample]:
        return {sample.sample_id: sample for sample in self.workspace.tables.read(self.samples_key, Sample)}

    def _sample(self, samples: Mapping[str, Sample], row: Draft | Trajectory) -> Sample:
        if row.sample_id not in samples:
            raise TableStale(
                f"{self.recipe.family} of {self.partition} was made from other samples than there are now; "
                f"run: dg launch --job sft_trajectories --partition {self.partition}"
            )
        return samples[row.sample_id]

    def _reject(
        self,
        stage: str,
        fault: RowFault,
        sample: Sample,
        row: dict[str, Any],
        trajectory_id: str = "",
        check: str = "",
    ) -> Reject:
        return reject(
            fault.reason,
            fault.evidence,
            stage=f"{self.recipe.family}/{stage}",
            row=row,
            family=self.recipe.family,
            check=check,
            source=sample.source,
            source_row=sample.source_row,
            sample_id=sample.sample_id,
            trajectory_id=trajectory_id,
        )


def _outcome(
    made: Sequence[Any], n_in: int, *, performed: int = 0, paid_before: Usage | None = _NOTHING
) -> Outcome[Any]:
    """``paid_before`` is what earlier stages paid of the rows' usage; None where a stage pays for nothing."""
    rows = [row for row in made if not isinstance(row, Reject)]
    rejects = [row for row in made if isinstance(row, Reject)]
    if paid_before is None:
        return Outcome(rows, rejects, n_in)
    paid = sum((row.usage for row in rows), Usage()) + sum(map(_usage_of_reject, rejects), Usage())
    return Outcome(rows, rejects, n_in, paid - paid_before, performed)


def _usage_of_reject(rejected: Reject) -> Usage:
    """What was paid for a row that was taken out: it is part of the stage's cost all the same."""
    return from_row(Usage, json.loads(rejected.row).get("usage") or {})
