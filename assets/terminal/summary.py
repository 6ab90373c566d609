"""The summary in the terminal: rows per stage, rejects with reasons, votes, training curves, cost, output folders."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from shutil import which
from typing import Any, cast

import polars as pl
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from darkroom.annotation.rounds.accepted_source import annotators_of
from darkroom.assets.terminal import counts, fact, relative, table
from darkroom.pipelines.generation.engine import STAGES
from darkroom.pipelines.generation.funnel import funnel_of
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.inspection.table_search import columns_of
from darkroom.pipelines.publishing.dataset_reader import dataset_folders, origins_in
from darkroom.pipelines.publishing.rendering import columns, sparkline
from darkroom.pipelines.publishing.rl_dataset import KEY as RL_ROWS, rl_folder
from darkroom.pipelines.records import Reject, Sample
from darkroom.pipelines.records.annotation import asked, measured_on
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.records.samples import LICENCE_REMEDY
from darkroom.pipelines.rl import pass_rates, suitability
from darkroom.pipelines.rl.facts import all_votes, polled, stage_facts
from darkroom.pipelines.sources.intake_notes import IntakeNotes
from darkroom.pipelines.storage.row_files import by_key
from darkroom.pipelines.storage.stage_runs import reason_of
from darkroom.pipelines.storage.store_paths import StorePath, children
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace

_CURVE_WIDTH = 24
_GRPO_METRICS = ("reward", "accuracy", "tool_calls", "executable_rate", "broken_rate", "loss")
_N_LISTED = 50
_NOT_APPLICABLE = "Not applicable: rows that are not for a family"
_GROUPED, _EXAMPLE = ("stage", "reason", "check", "disposition"), ("source_row", "evidence")
"""Columns of rejects."""
_VOTE_BARS = (("Right answers", pass_rates.ASSET), ("Votes for a drawing", suitability.VOTES))


def print_summary(
    console: Console,
    workspace: Workspace,
    recipes: Sequence[Recipe],
    partitions: Sequence[str],
    *,
    seconds: float | None = None,
) -> None:
    """Print the whole summary. ``seconds``: duration of a run that succeeded."""
    n_in, n_out, _ = _totals(workspace, [TableKey(SAMPLES, partition) for partition in partitions])
    console.print(Text(f"samples  {n_out:,} of {n_in:,} rows of the sources"))
    console.print()
    console.print(_families_table(workspace, recipes, partitions))
    for label, text in _origins(workspace):
        console.print(fact(label, text))
    console.print()
    console.print(_rejects_table(workspace, recipes, partitions))
    print_rl_summary(console, workspace, partitions)
    for label, text in (*_curves(workspace), *_evaluations(workspace)):
        console.print(fact(label, text))
    ledger = workspace.ledger.totals().items()
    totals = [f"{kind} {total.calls:,} ({total.seconds:.1f} s, ${total.cost_usd:.2f})" for kind, total in ledger]
    console.print(fact("In the ledger", ", ".join(totals) or "nothing"))
    console.print(_outputs(workspace, recipes, seconds))


def print_rl_summary(
    console: Console, workspace: Workspace, partitions: Sequence[str], *, seconds: float | None = None
) -> None:
    """Print the RL stages, votes and the mix that ships; nothing where no RL stage was materialised."""
    stages = stage_facts(workspace, partitions)
    if not stages:
        return
    console.print()
    lines = _table("RL data, stage by stage", "stage", numbers=("in", "out", "calls", "USD"))
    answered_by = by_key((model, stage.step.name) for stage in stages for model in stage.models)
    rejects = []
    for stage in stages:
        step, usage = stage.step, stage.usage
        lines.add_row(step.name, f"{stage.n_in:,}", f"{step.n_out:,}", f"{usage.calls:,}", f"{usage.cost_usd:.2f}")
        rejects += [(n_rows, f"{step.name}: {reason}", "") for reason, n_rows in step.reasons.items()]
    console.print(lines)
    console.print(counts("", rejects))
    for model, names in answered_by.items():
        console.print(fact("Answered by", f"{asked(model)}: {', '.join(names)}"))
    for title, asset in _VOTE_BARS:
        votes = polled(all_votes(workspace, partitions, asset))
        if votes.n_rows:
            bars = f"rows with 0 {columns(votes.by_yes, votes.n_most)} {votes.n_most}, {measured_on(votes.judges)}"
            console.print(fact(title, bars))
    if workspace.tables.exists(RL_ROWS):
        _print_mix(console, workspace)
    if seconds is not None:
        console.print(Text(f"Done in {seconds:.0f} s"))


def print_annotated_summary(console: Console, workspace: Workspace) -> None:
    """Print how many accepted records became RL rows, why others did not, and what to do with their boxes."""
    tables = workspace.tables
    rejects = (reject for reject in tables.stream_rejects(RL_ROWS) if reject.source.startswith("annotation/"))
    listed = list(islice(rejects, _N_LISTED))
    n_rejects = len(listed) + sum(1 for _ in rejects)
    n_rows = sum(origin == "annotated" for (origin,) in tables.columns(RL_ROWS, "origin"))
    console.print(f"accepted records: {n_rows:,} RL rows, {n_rejects:,} rejected", highlight=False)
    print_rejects(console, listed, n_rejects, tables.rejects_path(RL_ROWS))
    _print_mix(console, workspace)
    console.print("SFT from their boxes: `darkroom materialize accepted_annotations --family crop`", soft_wrap=True)


def print_intake(console: Console, workspace: Workspace, keys: Sequence[TableKey]) -> int:
    """Print how many rows became samples, what was not read, then the rejects with reasons. The number of samples."""
    n_in, n_out, n_not_applicable = _totals(workspace, keys)
    apart = f", {n_not_applicable:,} not applicable" if n_not_applicable else ""
    n_rejects = n_in - n_out - n_not_applicable
    console.print(f"{n_in:,} rows: {n_out:,} samples, {n_rejects:,} rejects{apart}", highlight=False)
    notes = IntakeNotes()
    for key in workspace.tables.existing(keys):
        for line in workspace.tables.facts(key).get("notes", {}).get("lines", ()):
            notes.add(*line)
    samples = (sample for key in keys for sample in workspace.tables.stream(key, Sample))
    notes.add_samples(samples, workspace.tables.scratch)
    if lines := notes.lines():
        console.print(counts("Worth a look", lines))
    listed = list(islice((reject for key in keys for reject in workspace.tables.stream_rejects(key)), _N_LISTED))
    print_rejects(console, listed, sum(map(workspace.tables.n_rejects, keys)), workspace.tables.rejects_path(keys[0]))
    return n_out


def print_rejects(console: Console, listed: Sequence[Reject], n_rejects: int, path: StorePath) -> None:
    """Print the first of ``n_rejects`` with their reasons, and that ``path`` has the others."""
    if listed:
        lines = _table("", "row", "reason", "disposition", "evidence")
        for reject in listed:
            lines.add_row(reject.source_row, reason_of(reject), reject.disposition, reject.evidence)
        console.print(lines)
    if n_rejects > len(listed):
        console.print(f"… and {n_rejects - len(listed):,} more: {path}")


def _table(title: str, *texts: str, numbers: Sequence[str] = ()) -> Table:
    """A table with columns of ``texts``, then of right-aligned ``numbers``."""
    lines = table(texts, padding=(0, 2, 0, 0), pad_edge=False, title=title or None, title_style="bold")
    for column in numbers:
        lines.add_column(column, justify="right", min_width=4, no_wrap=True)
    return lines


def _totals(workspace: Workspace, keys: Sequence[TableKey]) -> tuple[int, ...]:
    facts = [workspace.tables.facts(key) for key in workspace.tables.existing(keys)]
    return tuple(sum(fact.get(name, 0) for fact in facts) for name in ("n_in", "n_out", "n_not_applicable"))


def _families_table(workspace: Workspace, recipes: Sequence[Recipe], partitions: Sequence[str]) -> Table:
    """The yield funnel, a line per family: rows after each stage, and the cost of an accepted row."""
    funnels = {recipe.family: funnel_of(workspace.tables, recipe.family, partitions) for recipe in recipes}
    has_cost = any(funnel.usage.calls for funnel in funnels.values())
    costs = ("tokens/row", "USD/row") if has_cost else ()
    numbers = ("drafts", "runs", "accepted", "shipped", "yield", *costs)
    lines = _table("Rows per family, stage by stage", "family", numbers=numbers)
    for family, funnel in funnels.items():
        shipped = TableKey(("sft_dataset",), family)
        n_shipped = workspace.tables.n_rows(shipped) if workspace.tables.exists(shipped) else 0
        n_out = {step.name: step.n_out for step in funnel.steps}
        rows = (n_out["drafts"], n_out["runs"], funnel.n_accepted, n_shipped)
        proportion = f"{funnel.n_accepted / n_out['drafts']:.0%}" if n_out["drafts"] else "·"
        costs = (f"{funnel.tokens_per_row:,.0f}", f"{funnel.usd_per_row:.4f}") if has_cost else ()
        lines.add_row(family, *(f"{n:,}" if n else "·" for n in rows), proportion, *costs)
    return lines


def shipped_origins(workspace: Workspace) -> dict[str, dict[str, str]]:
    """Who wrote, judged and annotated what ships, by dataset: ``crop``, ``prompts``."""
    kinds = (workspace.home / "datasets" / kind for kind in ("sft", "rl"))
    return {folder.name: origins_in([folder]) for kind in kinds for folder in dataset_folders(kind)}


def _origins(workspace: Workspace) -> Iterator[tuple[str, str]]:
    datasets = shipped_origins(workspace)
    by_who = by_key((origin, name) for name, origins in datasets.items() for origin in origins.items())
    for (what, who), names in sorted(by_who.items(), reverse=True):
        whose = "all datasets" if len(names) == len(datasets) else ", ".join(names)
        yield what.replace("_", " ").capitalize(), f"{who}: {whose}"


def _rejects_table(workspace: Workspace, recipes: Sequence[Recipe], partitions: Sequence[str]) -> RenderableType:
    """Rejects by stage, reason and disposition, each with an example; then rows that are not applicable, by family."""
    assets = [SAMPLES, *((recipe.family, stage) for recipe in recipes for stage in STAGES)]
    keys = [TableKey(asset, partition) for asset in assets for partition in partitions]
    keys += [TableKey(("sft_dataset",), recipe.family) for recipe in recipes]
    paths = [workspace.tables.rejects_path(key) for key in workspace.tables.existing(keys)]
    rejects, not_applicable = list[tuple[int, str, str]](), list[tuple[int, str, str]]()
    for stage, reason, disposition, n_rows, row, evidence in _reject_groups(paths).iter_rows() if paths else ():
        example = f"{row}: {evidence}" if row else evidence
        if reason == Reason.NOT_APPLICABLE:
            not_applicable.append((n_rows, stage.partition("/")[0], example))
        else:
            kind = "" if disposition == "rejected" else f" ({disposition})"
            rejects.append((n_rows, f"{stage}: {reason}{kind}", example))
    title = "Rejected rows, with reasons and an example" if rejects else "No row was rejected."
    apart = Text(f"\n{_NOT_APPLICABLE}" if not_applicable else "", style="bold", end="\n" if not_applicable else "")
    return Group(counts(title, rejects), apart, counts("", not_applicable))


def _reject_groups(paths: Sequence[StorePath]) -> pl.DataFrame:
    check = pl.col("check")
    reason = pl.when(check == "").then(pl.col("reason")).otherwise(pl.format("{}: {}", "reason", check))
    rejects = columns_of(paths, *_GROUPED, *_EXAMPLE)
    groups = rejects.group_by("stage", reason.alias("reason"), "disposition", maintain_order=True)
    return groups.agg(pl.len(), *map(pl.first, _EXAMPLE)).collect()


def _print_mix(console: Console, workspace: Workspace) -> None:
    tables = workspace.tables
    console.print(fact("RL rows", f"{tables.n_rows(RL_ROWS):,} in {relative(rl_folder(workspace))}"))
    groups: dict[str, Counter[str]] = {name: Counter() for name in ("origin", "difficulty", "grader", "suitable")}
    for origin, difficulty, grader, label in tables.columns(RL_ROWS, "origin", "difficulty", "grader", "suitability"):
        groups["origin"][origin] += 1
        groups["difficulty"][difficulty] += 1
        groups["grader"][grader["kind"]] += 1
        if label is not None:
            groups["suitable"][str(label["suitable"]).lower()] += 1
    for name, values in groups.items():
        console.print(fact(f"  {name}", ", ".join(f"{value} {n:,}" for value, n in values.most_common())))
    if n_unlicensed := tables.facts(RL_ROWS).get("reasons", {}).get(Reason.LICENCE_UNKNOWN):
        console.print(fact("  left out", f"{n_unlicensed:,} rows of unknown licence; {LICENCE_REMEDY}"))
    if groups["origin"]["annotated"]:
        console.print(fact("  annotated by", annotators_of(workspace)))


def _curves(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """The loss of every epoch of fine-tuning, and the last step of reinforcement learning."""
    steps = [step for step in _training_steps(workspace.checkpoint("sft")) if "loss" in step]
    if steps:
        n_epochs = round(max(1.0, steps[-1].get("epoch", 1.0)))
        epochs = by_key((n * n_epochs // len(steps) + 1, step["loss"]) for n, step in enumerate(steps))
        for epoch, losses in epochs.items():
            curve = sparkline(losses, scale=[step["loss"] for step in steps], width=_CURVE_WIDTH)
            yield f"SFT loss, epoch {epoch}", f"{curve}  {losses[0]:.3f} → {losses[-1]:.3f}"
    for step in _training_steps(workspace.checkpoint("grpo"))[-1:]:
        metrics = {name: step[name] for name in _GRPO_METRICS if isinstance(step.get(name), int | float)}
        yield "GRPO, last step", ", ".join(f"{name} {value:.3g}" for name, value in metrics.items())


def _training_steps(checkpoint: Path) -> list[dict[str, Any]]:
    path = checkpoint / "training.json"
    return cast(list[dict[str, Any]], json.loads(path.read_text())["steps"] if path.exists() else [])


def _evaluations(workspace: Workspace) -> Iterator[tuple[str, str]]:
    for path in _reports(workspace, "report.json"):
        figures = json.loads(path.read_text())["results"]["all"]
        right, n_questions = figures["accuracy"]["right"], figures["accuracy"]["n_questions"]
        tools = f"tools used in {figures['code']['tool_use']['mean']:.0%} of the rollouts"
        yield f"Evaluation of {path.parent.name}", f"{right['mean']:.0%} of {n_questions} questions right, {tools}"
        changed = [(name, effect["changed_right"]) for name, effect in figures["controls"].items()]
        shares = [f"{name.replace('_', ' ')} {of['mean']:.0%} of {of['n']}" for name, of in changed if of["n"]]
        if shares:
            yield "  its images replaced", f"right answers that change: {', '.join(shares)}"
        if n_named := figures.get("n_naming_a_region"):
            yield "  not shown", f"that it finds a place: {n_named} questions name four numbers, as a region has"


def _reports(workspace: Workspace, name: str) -> list[StorePath]:
    paths = (folder / name for folder in children(workspace.home / "evaluations") if folder.name[0] != ".")
    return [path for path in paths if path.exists()]


def _outputs(workspace: Workspace, recipes: Sequence[Recipe], seconds: float | None) -> RenderableType:
    datasets = [*(workspace.dataset("sft", recipe.family) for recipe in recipes), rl_folder(workspace)]
    checkpoints = [workspace.checkpoint("sft"), workspace.checkpoint("grpo")]
    lines = [
        *(f"dataset      {relative(folder)}" for folder in datasets if folder.exists()),
        *(f"checkpoint   {relative(folder)}" for folder in checkpoints if folder.exists()),
        *(f"evaluation   {relative(page)}" for page in _reports(workspace, "report.html")),
        f"everything   {relative(workspace.home)}",
        "",
        "Next:",
        *(f"{number}. {step}" for number, step in enumerate(_next_steps(workspace), 1)),
    ]
    title = "Output" if seconds is None else f"Done in {seconds:.0f} s"
    return Panel(Group(*(Text(line, overflow="fold") for line in lines)), title=title, title_align="left", expand=False)


def _next_steps(workspace: Workspace) -> Iterator[str]:
    pages = _reports(workspace, "gallery.html")
    if pages:
        yield f"open {relative(pages[-1])}: what the trained model is asked, writes, sees and answers"
    elif children(workspace.home / "datasets" / "sft"):
        yield f"{_command()} gallery all: trajectories as an HTML page with images, filters and search"
    yield f"{_command()} ui: the asset graph, runs and previews in the browser"
    yield f"{_command()} ingest --help: your own images and questions"


def _command() -> str:
    """The command as one types it here."""
    return "darkroom" if which("darkroom") else relative(Path(sys.executable).with_name("darkroom"))
