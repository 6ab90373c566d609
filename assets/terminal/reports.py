"""Reports in the terminal: a judge's calibration against human labels, and an audit."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from darkroom.assets.terminal import folding
from darkroom.pipelines.generation.judge_calibration import Calibrated, JudgedLabel
from darkroom.pipelines.inspection.audit import AuditReport
from darkroom.pipelines.records import Reject
from darkroom.pipelines.storage.stage_runs import reason_of

_N_LISTED, _N_FINDINGS = 20, 50


def print_calibration(console: Console, report: Calibrated) -> None:
    """Print the figures, every threshold, disagreements, unusable lines, and the calibration's path."""
    frozen, numbers = report.frozen, report.frozen.calibration
    judge = frozen.identity.get("model", frozen.identity["policy"])
    votes = frozen.identity.get("n_votes", 1)
    console.print(
        f"{frozen.judge}, model {judge} ({votes} vote{'s' if votes > 1 else ''}), against {numbers.n_labels} "
        f"labelled rows, {numbers.n_good} of them good",
        highlight=False,
    )
    console.print(_figures(report))
    console.print(_thresholds(report.rows, numbers.threshold))
    for table in (_disagreements(report.rows, numbers.threshold), _unusable_lines(report.rejects)):
        if table is not None:
            console.print(table)
    if report.n_other:
        console.print(f"{report.n_other} of {report.n_lines} lines are about other checks", highlight=False)
    if report.usage.calls:
        console.print(f"votes: {report.usage.calls} calls, {report.usage.cost_usd:.2f} USD in all", highlight=False)
    console.print(f"{report.path}", highlight=False, soft_wrap=True)


def _figures(report: Calibrated) -> Table:
    numbers = report.frozen.calibration
    table = Table("", "value", "95 % interval", box=None)
    for name in ("precision", "recall", "kappa"):
        figure = getattr(numbers, name)
        table.add_row(name, f"{figure.value:.3f}", f"{figure.low:.3f} to {figure.high:.3f}")
    criterion = "majority" if numbers.target_precision is None else f"precision {numbers.target_precision:g}"
    criterion += f", chosen on {numbers.n_chosen_on} other labels" if numbers.n_chosen_on else ""
    table.add_row("threshold", f"{numbers.threshold:.3g}", f"for {criterion}")
    return table


def _thresholds(rows: Sequence[JudgedLabel], chosen: float) -> Table:
    """The rows that would pass at each share of yes votes."""
    table = Table("threshold", "pass", "of them good", "good rows that pass", box=None, header_style="dim")
    n_good = sum(row.label.is_good for row in rows)
    for share in sorted({row.score for row in rows} | {chosen}):
        passed = [row.label.is_good for row in rows if row.score >= share]
        good = f"{sum(passed) / len(passed):.3f}" if passed else "·"
        mark = "  ←" if share == chosen else ""
        table.add_row(f"{share:.3g}{mark}", str(len(passed)), good, f"{sum(passed) / n_good:.3f}")
    return table


def _disagreements(rows: Sequence[JudgedLabel], threshold: float) -> Table | None:
    disputed = [row for row in rows if row.label.is_good != (row.score >= threshold)]
    columns = ("line", "row", "people", "judge", "people's reason")
    table = _listed(f"Where judge and people disagree: {len(disputed)}", *columns)
    for row in disputed[:_N_LISTED]:
        line = row.label.line
        table.add_row(row.label.where, Text(line.row), line.verdict, f"{row.score:.2f}", Text(line.reason))
    return table if disputed else None


def _unusable_lines(rejects: Sequence[Reject]) -> Table | None:
    table = _listed(f"Unusable lines: {len(rejects)}", "line", "reason", "evidence")
    for rejected in rejects[:_N_LISTED]:
        table.add_row(rejected.source_row, reason_of(rejected), Text(rejected.evidence))
    return table if rejects else None


def _listed(title: str, *columns: str) -> Table:
    return Table(
        *folding(*columns), title=title, title_justify="left", title_style="bold", box=None, header_style="dim"
    )


def print_audit(console: Console, report: AuditReport) -> None:
    """Print what was audited and not, then findings by kind and the first of them with their rows."""
    console.print(
        f"{report.n_rows:,} rows; {report.n_executed:,} of {report.n_rounds:,} code blocks executed again, "
        f"{report.n_images:,} images compared; {report.checked.total():,} checks and counts repeated",
        highlight=False,
    )
    for what, n_rows in sorted(report.not_measured.items()):
        console.print(Text(f"not measured in {n_rows:,} rows: {what}", style="dim"))
    for note in report.notes:
        console.print(Text(note))
    if report.n_same < report.n_replayed and report.n_other_sandbox:
        console.print(
            f"{report.n_other_sandbox:,} rows were made by another version of the sandbox: if they differ, materialise "
            "their family again",
            highlight=False,
        )
    if not report.n_findings:
        console.print("0 findings", highlight=False)
        return
    console.print(_findings_by_kind(report))
    console.print(_findings(report))
    if report.n_findings > _N_FINDINGS:
        console.print(f"… and {report.n_findings - _N_FINDINGS:,} more; `--json` lists them", highlight=False)


def _findings_by_kind(report: AuditReport) -> Table:
    table = Table(*folding("finding", "times"), title=f"{report.n_findings:,} findings", title_justify="left", box=None)
    for kind, n in report.kinds.most_common():
        table.add_row(Text(kind), f"{n:,}")
    return table


def _findings(report: AuditReport) -> Table:
    table = Table(*folding("finding", "dataset", "row", "round", "reason"), box=None, header_style="dim")
    for finding in report.findings[:_N_FINDINGS]:
        code_round = str(finding.round) if finding.round else ""
        table.add_row(
            Text(finding.kind), Text(finding.dataset), Text(finding.row[:40]), code_round, Text(finding.reason)
        )
    return table
