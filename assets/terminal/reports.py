"""Reports in the terminal: a judge's calibration against human labels, and an audit."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from darkroom.assets.terminal import table
from darkroom.pipelines.generation.judge_calibration import Calibrated, JudgedLabel
from darkroom.pipelines.inspection.audit import AuditReport
from darkroom.pipelines.storage.stage_runs import reason_of

_N_LISTED = 20
_N_FINDINGS = 50
_SINCE = {"": "", "made": "it was made", "shipped": "it was shipped"}


def print_calibration(console: Console, report: Calibrated) -> None:
    """Print the figures, every threshold, disagreements, unusable lines, and the calibration's path."""
    frozen, numbers = report.frozen, report.frozen.calibration
    judge = frozen.identity.get("model", frozen.identity["policy"])
    n_votes = frozen.identity.get("n_votes", 1)
    votes = f"{n_votes} vote{'s' if n_votes > 1 else ''}"
    rows = f"{numbers.n_labels} labelled rows, {numbers.n_good} of them good"
    console.print(f"{frozen.judge}, model {judge} ({votes}), against {rows}", highlight=False)
    console.print(_figures(report))
    console.print(_thresholds(report.rows, numbers.threshold))
    disputed = [row for row in report.rows if row.label.is_good != (row.score >= numbers.threshold)]
    if disputed:
        cells = []
        for row in disputed[:_N_LISTED]:
            line = row.label.line
            cells.append((row.label.where, Text(line.row), line.verdict, f"{row.score:.2f}", Text(line.reason)))
        title = f"Where judge and people disagree: {len(disputed)}"
        head = ("line", "row", "people", "judge", "people's reason")
        console.print(table(head, cells, title=title, title_style="bold"))
    if report.rejects:
        unusable = ((row.source_row, reason_of(row), Text(row.evidence)) for row in report.rejects[:_N_LISTED])
        title = f"Unusable lines: {len(report.rejects)}"
        console.print(table(("line", "reason", "evidence"), unusable, title=title, title_style="bold"))
    if report.n_other:
        console.print(f"{report.n_other} of {report.n_lines} lines are about other checks", highlight=False)
    if report.usage.calls:
        console.print(f"votes: {report.usage.calls} calls, {report.usage.cost_usd:.2f} USD in all", highlight=False)
    console.print(f"{report.path}", highlight=False, soft_wrap=True)


def _figures(report: Calibrated) -> Table:
    numbers = report.frozen.calibration
    lines = Table("", "value", "95 % interval", box=None)
    for name, figure in {"precision": numbers.precision, "recall": numbers.recall, "kappa": numbers.kappa}.items():
        lines.add_row(name, f"{figure.value:.3f}", f"{figure.low:.3f} to {figure.high:.3f}")
    criterion = "majority" if numbers.target_precision is None else f"precision {numbers.target_precision:g}"
    criterion += f", chosen on {numbers.n_chosen_on} other labels" if numbers.n_chosen_on else ""
    lines.add_row("threshold", f"{numbers.threshold:.3g}", f"for {criterion}")
    return lines


def _thresholds(rows: Sequence[JudgedLabel], chosen: float) -> Table:
    """The rows that would pass at each share of yes votes."""
    lines = Table("threshold", "pass", "of them good", "good rows that pass", box=None, header_style="dim")
    n_good = sum(row.label.is_good for row in rows)
    for share in sorted({row.score for row in rows} | {chosen}):
        passed = [row.label.is_good for row in rows if row.score >= share]
        good = f"{sum(passed) / len(passed):.3f}" if passed else "·"
        mark = "  ←" if share == chosen else ""
        lines.add_row(f"{share:.3g}{mark}", str(len(passed)), good, f"{sum(passed) / n_good:.3f}")
    return lines


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
        console.print(Text(note), soft_wrap=True)  # digests are copied
    if report.n_same < report.n_replayed and report.n_other_sandbox:
        others = f"{report.n_other_sandbox:,} rows were made by another version of the sandbox"
        console.print(f"{others}: if they differ, materialise their family again", highlight=False)
    if not report.n_findings:
        console.print("0 findings", highlight=False)
        return
    kinds = ((Text(kind), f"{n:,}") for kind, n in report.kinds.most_common())
    title = f"{report.n_findings:,} findings"
    console.print(table(("finding", "times"), kinds, title=title, header_style="table.header"))
    findings = [
        (found.kind, found.dataset, found.row[:40], str(found.round or ""), _SINCE[found.since], found.reason)
        for found in report.findings[:_N_FINDINGS]
    ]
    columns = ("finding", "dataset", "row", "round", "since", "reason")
    console.print(table(columns, (tuple(map(Text, line)) for line in findings)))
    if report.n_findings > _N_FINDINGS:
        console.print(f"… and {report.n_findings - _N_FINDINGS:,} more; `--json` lists them", highlight=False)
