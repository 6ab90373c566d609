"""A judge against people, in the terminal: the figures, every threshold, where they disagree, lines without use."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipelines.labelled_rows import Calibrated, Judged
from pipelines.records import Reject
from pipelines.stages import reason_of

_N_LISTED = 20


def print_calibration(console: Console, found: Calibrated) -> None:
    """Prints everything, and where the calibration lies."""
    frozen, numbers = found.frozen, found.frozen.calibration
    judge = frozen.identity.get("model", frozen.identity["policy"])
    votes = frozen.identity.get("n_votes", 1)
    console.print(
        f"{frozen.judge}, asked of {judge} ({votes} vote{'s' if votes > 1 else ''}), against {numbers.n_labels} "
        f"labelled rows, {numbers.n_good} of them good",
        highlight=False,
    )
    console.print(_figures(found))
    console.print(_thresholds(found.rows, numbers.threshold))
    for table in (_disagreements(found.rows, numbers.threshold), _unused(found.rejects)):
        if table is not None:
            console.print(table)
    if found.n_other:
        console.print(f"{found.n_other} of {found.n_lines} lines are about other checks", highlight=False)
    if found.usage.calls:
        console.print(f"votes: {found.usage.calls} calls, {found.usage.cost_usd:.2f} USD in all", highlight=False)
    console.print(f"{found.path}", highlight=False, soft_wrap=True)


def _figures(found: Calibrated) -> Table:
    numbers = found.frozen.calibration
    table = Table("", "value", "95 % interval", box=None)
    for name, one in (("precision", numbers.precision), ("recall", numbers.recall), ("kappa", numbers.kappa)):
        table.add_row(name, f"{one.value:.3f}", f"{one.low:.3f} to {one.high:.3f}")
    wanted = "majority" if numbers.target_precision is None else f"precision {numbers.target_precision:g}"
    table.add_row("threshold", f"{numbers.threshold:.3g}", f"for {wanted}")
    return table


def _thresholds(rows: Sequence[Judged], chosen: float) -> Table:
    """What each share of yes votes would let pass."""
    table = Table("yes from a share of", "pass", "of them good", "good rows that pass", box=None, header_style="dim")
    n_good = sum(row.label.is_good for row in rows)
    for share in sorted({row.score for row in rows} | {chosen}):
        passed = [row.label.is_good for row in rows if row.score >= share]
        good = f"{sum(passed) / len(passed):.3f}" if passed else "·"
        mark = "  ←" if share == chosen else ""
        table.add_row(f"{share:.3g}{mark}", str(len(passed)), good, f"{sum(passed) / n_good:.3f}")
    return table


def _disagreements(rows: Sequence[Judged], threshold: float) -> Table | None:
    found = [row for row in rows if row.label.is_good != (row.score >= threshold)]
    table = _listed(
        f"Where judge and people disagree: {len(found)}", "line", "row", "people", "judge", "people's reason"
    )
    for row in found[:_N_LISTED]:
        line = row.label.line
        table.add_row(row.label.where, Text(line.row), line.verdict, f"{row.score:.2f}", Text(line.reason))
    return table if found else None


def _unused(rejects: Sequence[Reject]) -> Table | None:
    table = _listed(f"Lines without use: {len(rejects)}", "line", "reason", "evidence")
    for rejected in rejects[:_N_LISTED]:
        table.add_row(rejected.source_row, reason_of(rejected), Text(rejected.evidence))
    return table if rejects else None


def _listed(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
