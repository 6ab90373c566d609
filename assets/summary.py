"""What is there, for the terminal: rows per asset, what was taken out and why, loss curves, where to look next."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from assets.rl_summary import print_rl_summary
from pipelines.engine import SAMPLES, STAGES
from pipelines.funnel import Funnel, funnel_of
from pipelines.recipes import Recipe
from pipelines.records import Reject
from pipelines.rl.shipment import folder_of
from pipelines.stages import reason_of
from pipelines.tables import TableKey
from pipelines.workspace import Workspace

_TICKS = "▁▂▃▄▅▆▇█"
_CURVE_WIDTH = 40
_TOLD = ("reward", "accuracy", "tool_calls", "executable_rate", "broken_rate", "loss")


def print_summary(
    console: Console, workspace: Workspace, recipes: Sequence[Recipe], partitions: Sequence[str], seconds: float | None
) -> None:
    """Prints the whole picture. ``seconds`` is what a run that succeeded took."""
    console.print(_intake(workspace, partitions))
    console.print(_families_table(workspace, recipes, partitions))
    console.print(_reasons_table(workspace, recipes, partitions))
    print_rl_summary(console, workspace, partitions)
    for curve in _curves(workspace):
        console.print(curve)
    console.print(_acts(workspace))
    console.print(_next_steps(workspace, recipes, seconds))


def _intake(workspace: Workspace, partitions: Sequence[str]) -> RenderableType:
    keys = [TableKey(SAMPLES, partition) for partition in partitions]
    facts = [workspace.tables.facts(key) for key in keys if workspace.tables.exists(key)]
    n_in, n_out = (sum(fact[name] for fact in facts) for name in ("n_in", "n_out"))
    return Text(f"samples  {n_out:,} of {n_in:,} rows of the sources")


def _families_table(workspace: Workspace, recipes: Sequence[Recipe], partitions: Sequence[str]) -> Table:
    """The yield funnel, a line per family: rows after each stage, and what an accepted row cost."""
    table = Table(title="Rows per family, stage by stage", title_justify="left", title_style="bold")
    table.add_column("family")
    funnels = {recipe.family: funnel_of(workspace.tables, recipe.family, partitions) for recipe in recipes}
    was_paid = any(funnel.usage.calls for funnel in funnels.values())
    for column in ("drafts", "runs", "accepted", "shipped", "yield", *(("tokens/row", "USD/row") if was_paid else ())):
        table.add_column(column, justify="right")
    for family, funnel in funnels.items():
        table.add_row(family, *_cells(funnel, _n_shipped(workspace, family), was_paid=was_paid))
    return table


def _cells(funnel: Funnel, n_shipped: int, *, was_paid: bool) -> list[str]:
    n_out = {step.name: step.n_out for step in funnel.steps}
    counts = (n_out["drafts"], n_out["runs"], funnel.n_accepted, n_shipped)
    share = f"{funnel.n_accepted / n_out['drafts']:.0%}" if n_out["drafts"] else "·"
    costs = (f"{funnel.tokens_per_row:,.0f}", f"{funnel.usd_per_row:.4f}") if was_paid else ()
    return [*(f"{n:,}" if n else "·" for n in counts), share, *costs]


def _n_shipped(workspace: Workspace, family: str) -> int:
    key = TableKey(("sft_dataset",), family)
    return workspace.tables.n_rows(key) if workspace.tables.exists(key) else 0


def _reasons_table(workspace: Workspace, recipes: Sequence[Recipe], partitions: Sequence[str]) -> Table:
    table = Table(title="Taken out, and why", title_justify="left", title_style="bold")
    for column in ("stage", "reason", "disposition"):
        table.add_column(column, overflow="fold")
    table.add_column("rows", justify="right", min_width=4, no_wrap=True)
    table.add_column("for example", overflow="fold", ratio=1)
    rejects = list(_rejects(workspace, recipes, partitions))
    counts = Counter((rejected.stage, reason_of(rejected), rejected.disposition) for rejected in rejects)
    examples = {(rejected.stage, reason_of(rejected), rejected.disposition): rejected for rejected in reversed(rejects)}
    for kind, n in counts.items():
        table.add_row(*kind, f"{n:,}", f"{examples[kind].source_row}: {examples[kind].evidence}")
    return table


def _rejects(workspace: Workspace, recipes: Sequence[Recipe], partitions: Sequence[str]) -> Iterator[Reject]:
    assets = [SAMPLES, *((recipe.family, stage) for recipe in recipes for stage in STAGES)]
    keys = [TableKey(asset, partition) for asset in assets for partition in partitions]
    for key in [*keys, *(TableKey(("sft_dataset",), recipe.family) for recipe in recipes)]:
        if workspace.tables.exists(key):
            yield from workspace.tables.read_rejects(key)


def _curves(workspace: Workspace) -> Iterator[RenderableType]:
    """The loss of every epoch of fine-tuning, and the reward of reinforcement learning."""
    sft = _history(workspace.checkpoint("sft"))
    if sft is not None:
        steps = [step for step in sft["steps"] if "loss" in step]
        epochs: dict[int, list[float]] = {}
        for n, step in enumerate(steps):
            epochs.setdefault(n * round(_n_epochs(steps)) // len(steps) + 1, []).append(step["loss"])
        for epoch, losses in epochs.items():
            yield Text(f"SFT loss, epoch {epoch}  {sparkline(losses, steps)}  {losses[0]:.3f} → {losses[-1]:.3f}")
    grpo = _history(workspace.checkpoint("grpo"))
    if grpo is not None and grpo["steps"]:
        last = {name: value for name, value in grpo["steps"][-1].items() if isinstance(value, int | float)}
        told = {name: last[name] for name in _TOLD if name in last}
        yield Text("GRPO, last step   " + ", ".join(f"{name} {value:.3g}" for name, value in told.items()))
    yield from _evaluations(workspace)


def _evaluations(workspace: Workspace) -> Iterator[RenderableType]:
    for path in sorted((workspace.home / "evaluations").glob("*/report.json")):
        made = json.loads(path.read_text())["results"]["all"]
        right, n_questions = made["accuracy"]["right"], made["accuracy"]["n_questions"]
        tools = f"tools used in {made['code']['tool_use']['mean']:.0%} of the rollouts"
        yield Text(f"Evaluation of {path.parent.name}   {right['mean']:.0%} of {n_questions} questions right, {tools}")


def _n_epochs(steps: Sequence[dict[str, float]]) -> float:
    return max(1.0, steps[-1].get("epoch", 1.0))


def sparkline(values: Sequence[float], scale: Sequence[dict[str, float]] | None = None) -> str:
    """Values as block characters, on the scale of all steps where given; thinned to ``_CURVE_WIDTH``."""
    every = max(1, -(-len(values) // _CURVE_WIDTH))
    shown = values[::every]
    ground = [step["loss"] for step in scale] if scale else list(values)
    low, high = min(ground), max(ground)
    span = (high - low) or 1.0
    return "".join(_TICKS[round((value - low) / span * (len(_TICKS) - 1))] for value in shown)


def _history(checkpoint: Path) -> dict[str, Any] | None:
    path = checkpoint / "training.json"
    if not path.exists():
        return None
    history: dict[str, Any] = json.loads(path.read_text())
    return history


def _acts(workspace: Workspace) -> RenderableType:
    said = [
        f"{kind} {total.acts:,} ({total.seconds:.1f} s, ${total.cost_usd:.2f})"
        for kind, total in workspace.ledger.totals().items()
    ]
    return Text(f"In the ledger     {', '.join(said) or 'nothing'}")


def _next_steps(workspace: Workspace, recipes: Sequence[Recipe], seconds: float | None) -> RenderableType:
    datasets = [*(workspace.dataset("sft", recipe.family) for recipe in recipes), folder_of(workspace)]
    lines = [
        *(f"dataset      {folder}" for folder in datasets if folder.exists()),
        *(
            f"checkpoint   {folder}"
            for folder in (workspace.checkpoint("sft"), workspace.checkpoint("grpo"))
            if folder.exists()
        ),
        *(f"evaluation   {page}" for page in sorted((workspace.home / "evaluations").glob("*/report.html"))),
        f"everything   {workspace.home}",
        "",
        "make ui                 the asset graph, runs and previews in the browser",
        "darkroom gallery        trajectories as a page with their pictures, filters and search",
        "darkroom ingest --help  your own images and questions",
    ]
    title = "What is there" if seconds is None else f"Done in {seconds:.0f} s"
    return Panel(Group(*(Text(line, overflow="fold") for line in lines)), title=title, title_align="left", expand=False)


def print_intake(console: Console, workspace: Workspace, keys: Sequence[TableKey]) -> None:
    """What came of a source's rows: counts, then every row that was set aside, with its reason."""
    facts = [workspace.tables.facts(key) for key in keys]
    n_in, n_out = (sum(fact[name] for fact in facts) for name in ("n_in", "n_out"))
    console.print(f"{n_in:,} rows: {n_out:,} samples, {n_in - n_out:,} set aside", highlight=False)
    table = Table()
    for column in ("row", "reason", "disposition", "evidence"):
        table.add_column(column, overflow="fold")
    rejects = [rejected for key in keys for rejected in workspace.tables.read_rejects(key)]
    for rejected in rejects[:_N_LISTED]:
        table.add_row(rejected.source_row, reason_of(rejected), rejected.disposition, rejected.evidence)
    if rejects:
        console.print(table)
    if len(rejects) > _N_LISTED:
        console.print(f"… and {len(rejects) - _N_LISTED:,} more: {workspace.tables.rejects_path(keys[0])}")


_N_LISTED = 50
