"""The report of an audit in the terminal: how much was compared, findings by kind, and the rows that have them."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from darkroom.assets.terminal import folding
from darkroom.pipelines.inspection.audit import AuditReport

_N_LISTED = 50


def print_audit(console: Console, report: AuditReport) -> None:
    """Prints what was audited and not, then findings by kind and the first of them with their rows."""
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
    console.print(_kinds(report))
    console.print(_rows(report))
    if report.n_findings > _N_LISTED:
        console.print(f"… and {report.n_findings - _N_LISTED:,} more; `--json` lists them", highlight=False)


def _kinds(report: AuditReport) -> Table:
    table = Table(*folding("finding", "times"), title=f"{report.n_findings:,} findings", title_justify="left", box=None)
    for kind, n in report.kinds.most_common():
        table.add_row(Text(kind), f"{n:,}")
    return table


def _rows(report: AuditReport) -> Table:
    table = Table(*folding("finding", "dataset", "row", "round", "reason"), box=None, header_style="dim")
    for finding in report.findings[:_N_LISTED]:
        place = str(finding.round) if finding.round else ""
        table.add_row(Text(finding.kind), Text(finding.dataset), Text(finding.row[:40]), place, Text(finding.reason))
    return table
