"""Before a build: a few rows of every family from source to verdict, and what many rows will become and cost."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from darkroom.assets.builds.build import catalog_partitions, check_policies, families_of, partitions_of
from darkroom.assets.graph.families import STAGE_SETTINGS, work_on_family
from darkroom.assets.graph.resources import PolicyResource, policies
from darkroom.assets.graph.stage_assets import StageInputs
from darkroom.assets.terminal import table
from darkroom.pipelines.command_line.console import CONSOLE, print_line
from darkroom.pipelines.generation.drafting import opening_of
from darkroom.pipelines.generation.engine import STAGES
from darkroom.pipelines.generation.funnel import Forecast, funnel_of
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.generation.verdicts import judged_checks
from darkroom.pipelines.inspection.gallery import read_rejects, write_entries
from darkroom.pipelines.inspection.gallery.entries import Entry, entry_of_reject, entry_of_trajectory
from darkroom.pipelines.models.messages import Text
from darkroom.pipelines.models.tasks import PreparedSample
from darkroom.pipelines.records import Draft, Sample, Trajectory
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.sources import SourceError
from darkroom.pipelines.sources.catalog import Catalog
from darkroom.pipelines.sources.ingest import ingest_shard
from darkroom.pipelines.storage.stage_runs import Outcome, run_stage
from darkroom.pipelines.storage.store_paths import children
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace

_N_READ = 100
"""Rows of the source that are read for each row of a preview: not every row is for every family."""
_PLAN = ("family", "rows (99 %)", "policy: calls, tokens, USD", "judges: calls, tokens, USD")


def preview_families(source: str, families: Sequence[str], n_rows: int) -> None:
    """Draft ``n_rows`` of a source's first rows for each of ``families`` (empty: all), run and check them, and write a
    page that shows them. A later build finds their calls in the ledger. Raises ``SourceError``, ``PolicyUnavailable``.
    """
    with Workspace.from_environment() as workspace, TemporaryDirectory(prefix="darkroom-preview-") as folder:
        recipes = [recipe for recipe in families_of(workspace, source) if not families or recipe.family in families]
        opened = Catalog(workspace.sources).open(source)
        asyncio.run(check_policies(workspace, recipes))
        page = (workspace.local / "views" / f"{source}.preview.html").absolute()
        workspace.ledger.totals()  # made where it belongs
        home = Path(folder)
        (home / "calibrations").mkdir()
        for file in children(workspace.calibrations):
            (home / "calibrations" / file.name).write_bytes(file.read_bytes())
        live = {name: resource.model_copy(update={"batch": "off"}) for name, resource in policies().items()}
        with replace(workspace, home=home, local=home, images_url=str(home / "images")) as trial:
            samples = ingest_shard(opened, 0, trial.images, n_rows=_N_READ * n_rows).samples
            if not samples:
                raise SourceError(f"none of the first rows is a sample: darkroom sources check {source} says why")
            for recipe in recipes:
                few = list(islice(_applicable(recipe, samples, trial), n_rows))
                key, before = TableKey(SAMPLES, recipe.family), _seconds(workspace)
                run_stage(trial.tables, key, Sample, inputs="", perform=partial(Outcome, few, [], len(few)))
                for stage in STAGES:
                    kind = STAGE_SETTINGS.get(stage)
                    inputs = StageInputs(trial, recipe.family, live.__getitem__, kind() if kind else None)
                    with CONSOLE.status(f"{recipe.family}/{stage} …"):
                        work_on_family(inputs, recipe, stage)
                _print_yield(trial, recipe, len(samples), seconds=_seconds(workspace) - before)
            write_entries(page, _entries(trial, recipes), title=f"{source}: preview")
    print_line(f"Page: {page}")


def plan_rows(source: str, families: Sequence[str], n_rows: int) -> None:
    """Print what ``n_rows`` further rows become and cost, from the shards that are built; ``SourceError`` without."""
    with Workspace.from_environment() as workspace:
        partitions = partitions_of(catalog_partitions(workspace), source)
        lines, calls, n_measured = table(_PLAN, title=f"{n_rows:,} more rows of {source}"), 0, 0
        for recipe in families_of(workspace, source):
            funnel = funnel_of(workspace.tables, recipe.family, partitions)
            if (not families or recipe.family in families) and funnel.n_tried:
                made = Forecast.of(funnel, n_rows)
                calls += made.written.calls + made.judged.calls
                n_measured = max(n_measured, made.n_measured)
                used = (made.written, made.judged)
                costs = (f"{each.calls:,}, {each.n_tokens:,}, {each.cost_usd:,.2f}" for each in used)
                lines.add_row(recipe.family, f"{made.accepted:,.0f} ({made.least:,} to {made.most:,})", *costs)
        if not n_measured:
            raise SourceError(f"nothing of {source} is built: darkroom materialize {source} --rows 500 builds a part")
        CONSOLE.print(lines)
        policy, asked = PolicyResource.from_environment(), workspace.ledger.totals().get("policy")
        print_line(f"From {n_measured:,} samples; it holds if later rows are like them.")
        if asked:
            hours = calls * asked.seconds / asked.calls / policy.concurrency / 3600
            print_line(f"About {hours:,.1f} hours, {policy.concurrency} calls in flight, each as long as the ledger's.")
        print_line("Not known: RL stages and their students, disk, hours of the sandbox.")


def _applicable(recipe: Recipe, samples: Sequence[Sample], trial: Workspace) -> Iterator[Sample]:
    for sample in samples:
        try:
            recipe.prepared(sample, trial.images)
        except RowError as error:
            if error.reason == Reason.NOT_APPLICABLE:
                continue
        yield sample


def _print_yield(trial: Workspace, recipe: Recipe, n_read: int, *, seconds: float) -> None:
    funnel = funnel_of(trial.tables, recipe.family, [recipe.family])
    used = funnel.usage
    line = f"none of the first {n_read:,} samples is for it"
    if n_tried := funnel.steps[0].n_out:
        reasons = sum((Counter(step.reasons) for step in funnel.steps), Counter[str]())
        figures = {"tried": n_tried, "accepted": funnel.n_accepted, **reasons}
        counts = ", ".join(f"{n:,} {what}" for what, n in figures.items())
        line = f"{counts}; {used.calls:,} calls, {used.n_tokens:,} tokens, ${used.cost_usd:.2f}"
        if funnel.n_accepted:
            new = seconds / funnel.n_accepted
            line += f"; per accepted row {funnel.tokens_per_row:,.0f} tokens, {new:,.1f} s of new calls"
        if shares := _majorities(trial, recipe):
            line += f"; {fmean(shares):.0%} of the judge's votes agree"
    print_line(f"{recipe.family}: {line}")


def _majorities(trial: Workspace, recipe: Recipe) -> list[float]:
    """The majority's share of the votes, of every question that a judge was asked more than once."""
    judged = {check.name for check in judged_checks(recipe)}
    rows = trial.tables.read(TableKey((recipe.family, "verdicts"), recipe.family), Trajectory)
    votes = (check for row in rows for check in row.checks if check.name in judged and check.n_trials > 1)
    return [max(vote.score, 1 - vote.score) for vote in votes if vote.score is not None]


def _seconds(workspace: Workspace) -> float:
    asked = workspace.ledger.totals().get("policy")
    return asked.seconds if asked else 0.0


def _entries(trial: Workspace, recipes: Sequence[Recipe]) -> Iterator[Entry]:
    prompts: dict[tuple[str, str], str] = {}
    for recipe in recipes:
        samples = {row.sample_id: row for row in trial.tables.read(TableKey(SAMPLES, recipe.family), Sample)}
        for draft in trial.tables.read(TableKey((recipe.family, STAGES[0]), recipe.family), Draft):
            prompts[recipe.family, draft.sample_id] = _prompt_of(recipe, samples[draft.sample_id], draft)
        for trajectory in trial.tables.read(TableKey((recipe.family, STAGES[-1]), recipe.family), Trajectory):
            shown = entry_of_trajectory(trajectory, samples[trajectory.sample_id], trial.images)
            yield replace(shown, content={**shown.content, "prompt": prompts[recipe.family, trajectory.sample_id]})
    for reject, sample in read_rejects(trial, [recipe.family for recipe in recipes]).rows:
        shown = entry_of_reject(reject, sample, trial.images)
        yield replace(shown, content={**shown.content, "prompt": prompts.get((reject.family, reject.sample_id), "")})


def _prompt_of(recipe: Recipe, sample: Sample, draft: Draft) -> str:
    """The texts before the draft's first turn."""
    prepared = PreparedSample(draft.images, json.loads(draft.hint), draft.mode)
    parts = (part for said in opening_of(recipe, sample, prepared, recipe.prompt) for part in said.parts)
    return "\n\n".join(part.text for part in parts if isinstance(part, Text))
