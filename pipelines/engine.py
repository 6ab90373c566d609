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
import errno
import json
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

import sandbox
from pipelines.checks.base import Case, CheckFunction
from pipelines.digest import digest, seed_from
from pipelines.execution import Sandboxes
from pipelines.intake import take_in
from pipelines.messages import Message, Picture, message
from pipelines.policies import Completion, Policy, PolicyUnavailable, RecordedPolicy, Turn
from pipelines.recipes.base import Recipe
from pipelines.records import Check, Draft, Provenance, Reject, Sample, Trajectory, Usage, from_row, to_row
from pipelines.rejects import Reason, RowFault, reject
from pipelines.rollout import parse_turn, rollout, write_turn
from pipelines.sources.base import Source
from pipelines.stages import Outcome, Progress, Report, code_digest, code_version, map_rows, run_stage
from pipelines.tables import TableKey, TableStale
from pipelines.tasks import Task, image_sizes, question_text
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

    def draft(self, policy: Policy) -> Report:
        """Prepares every sample and has the opening turn written.

        Raises ``PolicyUnavailable`` before any work when the policy cannot be reached.
        """
        identity = policy.identity.as_json()
        inputs = self._inputs("drafts", self.samples_key, identity, sandbox.sandbox_digest())
        return self._run("drafts", Draft, inputs, lambda: asyncio.run(self._draft(policy)))

    def run(self, policy: Policy) -> Report:
        """Rolls every draft out: executes its program, shows the policy the result, until there is an answer."""
        identity = policy.identity.as_json()
        inputs = self._inputs("runs", self.key("drafts"), identity, sandbox.sandbox_digest())
        return self._run("runs", Trajectory, inputs, lambda: asyncio.run(self._roll_out(policy)))

    def check(self) -> Report:
        """Every check on every run; a run with failed checks stays in the table, with its verdicts."""
        return self._run("verdicts", Trajectory, self._inputs("verdicts", self.key("runs")), self._check)

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

    async def _draft(self, policy: Policy) -> Outcome[Draft]:
        samples = self.workspace.tables.read(self.samples_key, Sample)
        async with RecordedPolicy(policy, self.workspace.ledger) as recorded:
            await recorded.check()
            made = await map_rows(
                samples,
                lambda sample: self._draft_one(sample, recorded),
                concurrency=policy.concurrency,
                progress=self.progress,
            )
        return _outcome(made, len(samples), performed=recorded.n_written)

    async def _draft_one(self, sample: Sample, policy: Policy) -> Draft | Reject:
        row = to_row(sample)
        try:
            prepared = self.recipe.prepare(sample, self.workspace.images)
            task = self.task(sample, prepared.images, prepared.hint, policy)
            turn = Turn(task.opening, self.recipe.protocol.stop, seed_from(task.seed, 0), task)
            completion = await write_turn(policy, turn)
            row |= {"text": completion.text, "usage": to_row(completion.usage)}
            parse_turn(completion, self.recipe.protocol)
        except Exception as fault:  # noqa: BLE001  # sorted by row_fault
            return self._reject("drafts", row_fault(fault), sample, row)
        return Draft(
            trajectory_id=task.trajectory_id,
            sample_id=sample.sample_id,
            family=self.recipe.family,
            images=task.images,
            hint=json.dumps(dict(task.hint), sort_keys=True),
            text=completion.text,
            usage=completion.usage,
            provenance=self._provenance(policy, seed=task.seed),
        )

    def task(self, sample: Sample, images: Sequence[Any], hint: Mapping[str, Any], policy: Policy) -> Task:
        """The rollout to be made of a prepared sample; the same sample and policy give the same task."""
        recipe, identity = self.recipe, policy.identity.as_json()
        seed = seed_from(recipe.family, sample.sample_id)
        return Task(
            trajectory_id=digest([sample.sample_id, recipe.family, identity, recipe.prompt.digest, seed]),
            family=recipe.family,
            sample=sample,
            images=tuple(images),
            hint=hint,
            opening=self._opening(sample, tuple(images), hint),
            seed=seed,
        )

    def _opening(self, sample: Sample, images: tuple[Any, ...], hint: Mapping[str, Any]) -> tuple[Message, ...]:
        slots = {"question": question_text(sample), "sizes": image_sizes(images), **hint}
        system, user = self.recipe.prompt.render(**slots)
        return (message("system", system), message("user", *(Picture(image) for image in images), user))

    async def _roll_out(self, policy: Policy) -> Outcome[Trajectory]:
        drafts = self.workspace.tables.read(self.key("drafts"), Draft)
        self._require_same_policy(drafts, policy)
        samples = self._samples()
        begun = [(draft, self._sample(samples, draft)) for draft in drafts]
        store, ledger = self.workspace.images, self.workspace.ledger
        async with RecordedPolicy(policy, ledger) as recorded, Sandboxes(store, ledger) as sandboxes:
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
        asked = self._provenance(policy, seed=0)
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
        task = self.task(sample, draft.images, json.loads(draft.hint), policy)
        async with sandboxes.session(task.images, seed=task.seed) as session:
            made = await rollout(
                task,
                policy=policy,
                protocol=recipe.protocol,
                session=session,
                max_rounds=recipe.max_rounds,
                opening=Completion(draft.text, usage=draft.usage),
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
        )
        if made.fault is not None:
            return self._reject("runs", made.fault, sample, to_row(trajectory), draft.trajectory_id)
        return trajectory

    def _check(self) -> Outcome[Trajectory]:
        hints = {draft.trajectory_id: draft.hint for draft in self.workspace.tables.read(self.key("drafts"), Draft)}
        samples = self._samples()
        runs = self.workspace.tables.read(self.key("runs"), Trajectory)
        made: list[Trajectory | Reject] = []
        for n, trajectory in enumerate(runs, 1):
            sample = self._sample(samples, trajectory)
            hint = json.loads(hints[trajectory.trajectory_id])
            made.append(self._check_one(Case(sample, trajectory, hint, self.workspace.images)))
            if self.progress is not None:
                self.progress(n, len(runs))
        return _outcome(made, len(runs), paid_before=None)

    def _check_one(self, case: Case) -> Trajectory | Reject:
        try:
            checks = tuple(_judge(check, case) for check in self.recipe.checks)
        except RowFault as fault:
            trajectory = case.trajectory
            return self._reject("verdicts", fault, case.sample, to_row(trajectory), trajectory.trajectory_id)
        return replace(case.trajectory, checks=checks)

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

    def _provenance(self, policy: Policy, *, seed: int) -> Provenance:
        identity = policy.identity
        return Provenance(
            policy=identity.policy,
            model=identity.model,
            revision=identity.revision,
            sampling=json.dumps(dict(identity.sampling), sort_keys=True),
            prompt_digest=self.recipe.prompt.digest,
            sandbox_digest=sandbox.sandbox_digest(),
            seed=seed,
            code_version=code_version(),
        )


_NOT_A_ROWS_FAULT = (PolicyUnavailable, sandbox.SandboxUnavailable, TableStale, SQLAlchemyError)
"""No endpoint, no sandbox, no ledger: the next row would fare no better, so the stage stops."""

_NO_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE})
"""The same of an ``OSError``; others are a row's own, like Pillow's for an image that cannot be read."""


def row_fault(fault: Exception) -> RowFault:
    """One row's failure, whatever a recipe, a check or a script raised; the run goes on.

    Raises ``fault`` itself when it is not one row's (``_NOT_A_ROWS_FAULT``, ``_NO_DISK``).
    """
    if isinstance(fault, _NOT_A_ROWS_FAULT) or (isinstance(fault, OSError) and fault.errno in _NO_DISK):
        raise fault
    if isinstance(fault, RowFault):
        return fault
    return RowFault(Reason.STAGE_FAILED, _trace(fault))


def _judge(check: CheckFunction, case: Case) -> Check:
    try:
        return check(case)
    except Exception as fault:
        raise row_fault(fault) from fault


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


def _trace(fault: Exception) -> str:
    return "".join(traceback.format_exception(fault)[-3:]).strip()[-800:]
