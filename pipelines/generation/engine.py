"""The engine that runs every recipe: prepare -> draft -> run -> check -> keep, one partition at a time.

    samples                     what intake read
    <family>/drafts             prepared, and the policy's opening turn written
    <family>/runs               rolled out: code executed, turns written until there is an answer
    <family>/verdicts           every check's verdict on every run
    <family>/trajectories       those that passed all of them
    <family>/rejects            the rejects of all stages of the family, in one table; apart, rows that are not for it

Each is a table (``pipelines/storage/tables.py``) that the stage runner makes (``pipelines/generation/stage.py``).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from darkroom import sandbox
from darkroom.pipelines.generation.drafting import DRAFT_CODE, Drafts, RecipeStage, provenance, task_of
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.generation.rollout import rollout
from darkroom.pipelines.generation.sandbox_sessions import Sandboxes
from darkroom.pipelines.generation.stage import RUNNER_CODE, SAMPLES, STAGES as STAGES, Rejection, Shard
from darkroom.pipelines.generation.verdicts import Verdicts, calibrations_of, judged_checks, voter_of, with_leak_judge
from darkroom.pipelines.models.policies import Completion, Policy
from darkroom.pipelines.models.prompts import Prompt, earlier_versions
from darkroom.pipelines.models.tasks import PreparedSample, image_names
from darkroom.pipelines.records import Draft, Reject, Sample, Trajectory
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.sources import Source
from darkroom.pipelines.sources.ingest import ingest_shard
from darkroom.pipelines.storage.removal import taken_down
from darkroom.pipelines.storage.stage_runs import Outcome, StageProgress, StageReport, code_digest, run_stage
from darkroom.pipelines.storage.tables import TableKey, TableStale
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.verification.checks.necessity import Necessity

"""A family's stages, in order. ``rejects`` collects their rejects."""
INTAKE_CODE = ("darkroom.pipelines.records", "darkroom.pipelines.sources", "darkroom.pipelines.storage")


def intake(workspace: Workspace, source: Source, shard: int, partition: str) -> StageReport:
    # an embedded source's rows are decided by its own room, wherever that is
    room = ".".join(type(source).__module__.split(".")[:3])
    code = code_digest(*INTAKE_CODE, *([room] if room.startswith("darkroom.pipelines.") else []))
    inputs = digest(["samples", source.fingerprint, shard, code])

    def perform() -> Outcome[Sample]:
        ingested = ingest_shard(source, shard, workspace.images, removed=taken_down(workspace.home))
        notes = {name: note for name, note in (("lines", ingested.notes), ("boxes", ingested.boxes)) if note}
        return Outcome(ingested.samples, ingested.rejects, ingested.n_in, notes=notes)

    return run_stage(workspace.tables, TableKey(SAMPLES, partition), Sample, inputs=inputs, perform=perform)


@dataclass(frozen=True, slots=True)
class Family:
    """One recipe at work on one partition."""

    workspace: Workspace
    recipe: Recipe
    partition: str
    progress: Callable[[StageProgress], None] | None = None

    @property
    def shard(self) -> Shard:
        return Shard(self.workspace, self.partition, self.progress)

    def key(self, stage: str) -> TableKey:
        return TableKey((self.recipe.family, stage), self.partition)

    @property
    def samples_key(self) -> TableKey:
        return self.shard.samples_key

    def draft(self, policy: Policy, planner: Policy | None = None, *, n_most: int | None = None) -> StageReport:
        """Prepares every sample and has the plan and the opening turn written, until there are ``n_most`` drafts.
        Raises ``PolicyUnavailable`` before any work when a policy cannot be reached."""
        planner = planner if self.recipe.plan is not None else None
        drafts = Drafts(recipe=self.recipe, store=self.workspace.images, writer=policy, planner=planner, n_most=n_most)
        return self.shard.materialize(drafts)

    def run(self, policy: Policy) -> StageReport:
        """Rolls every draft out: executes its code, shows the policy the result, until there is an answer."""
        sandboxes = Sandboxes(self.workspace.images, self.workspace.ledger)
        return self.shard.materialize(Runs(recipe=self.recipe, writer=policy, sandboxes=sandboxes))

    def check(
        self,
        judge: Policy | None = None,
        *,
        n_votes: int = 1,
        unaided: Policy | None = None,
        necessity: Necessity | None = None,
        judges_leaks: bool = False,
    ) -> StageReport:
        """Every check on every run; a run with failed checks stays in the table, with its verdicts. ``judge`` votes
        ``n_votes`` times in the checks that need a judge; None is the embedded one. Each judge has the threshold of its
        calibration, if it has one. ``unaided`` answers without tools and without the image, as ``necessity`` (default:
        the recipe's) says; without one of the two that is not measured. With ``judges_leaks`` the judge also reads the
        thoughts for privileged facts (``judge_leak``). Raises ``PolicyUnavailable`` before any work when a policy is
        needed and cannot be reached."""
        recipe = with_leak_judge(self.recipe) if judges_leaks else self.recipe
        judge = judge if judged_checks(recipe) else None
        calibrations = calibrations_of(recipe, voter_of(judge, n_votes), self.workspace)
        necessity = (necessity or recipe.necessity) if unaided is not None else None
        policies = {"judge": judge, "unaided": unaided if necessity else None}
        stage = Verdicts(recipe=recipe, n_votes=n_votes, calibrations=calibrations, necessity=necessity, **policies)
        return self.shard.materialize(stage)

    def keep(self) -> StageReport:
        """The runs that passed every check."""
        return self.shard.materialize(Trajectories(recipe=self.recipe))

    def collect_rejects(self) -> StageReport:
        """The rejects of the family's stages in this partition, in one table; the rows that are not for it beside."""
        tables = self.workspace.tables
        fingerprints = [tables.fingerprint(self.key(stage)) for stage in STAGES]
        inputs = digest(["rejects", fingerprints, code_digest(*RUNNER_CODE)])

        def perform() -> Outcome[Reject]:
            rows = [row for stage in STAGES for row in tables.read_rejects(self.key(stage))]
            rejects = [row for row in rows if row.is_applicable]
            return Outcome(rejects, [row for row in rows if not row.is_applicable], len(rows))

        return run_stage(tables, self.key("rejects"), Reject, inputs=inputs, perform=perform)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs(RecipeStage[Draft, Trajectory]):
    """Every draft rolled out by ``writer``."""

    writer: Policy
    sandboxes: Sandboxes

    table: ClassVar[str] = "runs"
    above: ClassVar[Sequence[str]] = ("drafts",)
    kind: ClassVar[type[Trajectory]] = Trajectory
    code: ClassVar[Sequence[str]] = (*DRAFT_CODE, __name__, "darkroom.pipelines.generation.sandbox_sessions")
    roles: ClassVar[Sequence[str]] = ("writer",)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"recipe": self.recipe.digest, "sandbox": sandbox.sandbox_digest(self.sandboxes.limits)}

    @property
    def n_executed(self) -> int:
        return self.sandboxes.n_executed

    def rows(self, shard: Shard) -> Sequence[tuple[Sample, Draft]]:
        """Every draft. Raises ``TableStale`` for drafts of another policy: provenance would name one of two."""
        rows = shard.joined(f"{self.family}/drafts", Draft)
        now = provenance(self.writer, self.recipe.prompt.digest, seed=0)
        for _, draft in rows:
            wrote = replace(draft.provenance, seed=0, sandbox_digest=now.sandbox_digest)
            if wrote != replace(now, prompt_digest=self._prompt_of(draft).digest):
                raise TableStale(
                    f"{shard.key(f'{self.family}/drafts')} was written by {wrote.policy} ({wrote.model}) with "
                    f"another prompt, model or sampling than {now.policy} ({now.model}) has now; materialise the "
                    "drafts again first, and give another run that works here with those a DARKROOM_HOME of its own"
                )
        return rows

    def _prompt_of(self, draft: Draft) -> Prompt:
        """The version of the recipe's prompt that the draft was written to."""
        written_to = draft.provenance.prompt_digest
        earlier = (prompt for prompt in earlier_versions(self.recipe.prompt) if prompt.digest == written_to)
        return next(earlier, self.recipe.prompt)

    async def measure(self, sample: Sample, row: Draft) -> Trajectory | Rejection:
        """The rollout; one without an answer is rejected with its rounds."""
        recipe, prompt = self.recipe, self._prompt_of(row)
        prepared = PreparedSample(row.images, json.loads(row.hint), row.mode)
        task = task_of(recipe, sample, prepared, self.writer, prompt=prompt)
        names = image_names(sample.question)
        async with self.sandboxes.session(task.images, sample.videos, seed=task.seed, names=names) as session:
            rolled_out = await rollout(
                task,
                policy=self.writer,
                protocol=recipe.protocol,
                session=session,
                max_rounds=recipe.max_rounds,
                opening=Completion(row.text, usage=row.usage),
                follow_up=recipe.follow_up,
            )
        names = ("trajectory_id", "sample_id", "family", "images", "provenance", "mode")
        fields: dict[str, Any] = {name: getattr(row, name) for name in names}
        fields |= {name: getattr(rolled_out, name) for name in ("rounds", "final_thought", "answer", "usage")}
        fields |= {"protocol": recipe.protocol.name, "loss_policy": recipe.loss_policy}
        trajectory = Trajectory(**fields, checks=())
        return trajectory if rolled_out.error is None else Rejection(rolled_out.error, trajectory)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectories(RecipeStage[Trajectory, Trajectory]):
    """The runs that passed every check."""

    table: ClassVar[str] = "trajectories"
    above: ClassVar[Sequence[str]] = ("verdicts",)
    kind: ClassVar[type[Trajectory]] = Trajectory
    code: ClassVar[Sequence[str]] = (__name__,)

    def rows(self, shard: Shard) -> Sequence[tuple[Sample, Trajectory]]:
        return shard.joined(f"{self.family}/verdicts", Trajectory)

    async def measure(self, _sample: Sample, row: Trajectory) -> Trajectory | Rejection:
        """Rejected for the first check that failed."""
        if row.passed:
            return row
        failed = next(check for check in row.checks if not check.passed)
        return Rejection(RowError(Reason.CHECK_FAILED, failed.detail), row, failed.name)
