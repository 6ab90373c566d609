"""What there is of RL data, for the terminal: the stages' yield, votes and pass rates as bars, the mix that ships."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipelines.records import RLRow
from pipelines.rl import pass_rates, suitability
from pipelines.rl.dataset import KEY
from pipelines.rl.facts import all_votes, polled, stage_facts
from pipelines.rl.shipment import folder_of
from pipelines.workspace import Workspace

_BLOCKS = " ▁▂▃▄▅▆▇█"


def print_rl_summary(
    console: Console, workspace: Workspace, partitions: Sequence[str], seconds: float | None = None
) -> None:
    """Prints nothing where no RL stage was materialised. ``seconds``: what a run that succeeded took."""
    stages = stage_facts(workspace, partitions)
    if not stages:
        return
    table = Table(title="RL data, stage by stage", title_justify="left", title_style="bold")
    for column in ("stage", "asked"):
        table.add_column(column, overflow="fold")
    for column in ("in", "out", "calls", "USD"):
        table.add_column(column, justify="right")
    table.add_column("taken out", overflow="fold", ratio=1)
    for stage in stages:
        reasons = ", ".join(f"{reason} {n}" for reason, n in stage.step.reasons.items())
        asked = ", ".join(dict.fromkeys(stage.models.values()))
        numbers = (f"{stage.n_in:,}", f"{stage.step.n_out:,}", f"{stage.usage.calls:,}", f"{stage.usage.cost_usd:.2f}")
        table.add_row(stage.step.name, asked, *numbers, reasons)
    console.print(table)
    for title, asset in (("right answers", pass_rates.ASSET), ("votes for a drawing", suitability.VOTES)):
        votes = all_votes(workspace, partitions, asset)
        if votes:
            top = max(one.n_wanted for one in votes)
            console.print(Text(f"Rows by {title:<20} 0 {bars(polled(votes).by_yes, top)} {top}"))
    if workspace.tables.exists(KEY):
        _print_mix(console, workspace)
    if seconds is not None:
        console.print(Text(f"Done in {seconds:.0f} s"))


def bars(counts: Mapping[int, int], top: int) -> str:
    """A column for every count from 0 to ``top``; a value that occurs at all is never blank."""
    highest = max(counts.values(), default=0) or 1
    heights = [counts.get(n, 0) for n in range(top + 1)]
    return "".join(_BLOCKS[max(bool(n), round(n / highest * (len(_BLOCKS) - 1)))] for n in heights)


def _print_mix(console: Console, workspace: Workspace) -> None:
    rows = workspace.tables.read(KEY, RLRow)
    console.print(Text(f"RL rows              {len(rows):,} in {folder_of(workspace)}"))
    groups: dict[str, Counter[Any]] = {
        "origin": Counter(row.origin for row in rows),
        "difficulty": Counter(row.difficulty for row in rows),
        "grader": Counter(row.grader.kind for row in rows),
        "suitable": Counter(str(row.suitability.suitable).lower() for row in rows if row.suitability is not None),
    }
    for name, counts in groups.items():
        console.print(Text(f"  {name:<18} " + ", ".join(f"{value} {n:,}" for value, n in counts.most_common())))
