"""``darkroom sources check`` in the terminal: columns, notes, rejects, families."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from darkroom.assets.terminal import counts, relative, table
from darkroom.pipelines.inspection.source_check import SourceCheck
from darkroom.pipelines.storage.stage_runs import reason_of

_N_REJECTS = 10


def print_check(console: Console, checked: SourceCheck, page: Path) -> None:
    n_samples = len(checked.samples)
    console.print(f"{checked.n_rows:,} rows: {n_samples:,} samples, {len(checked.rejects):,} not", highlight=False)
    uses = [(use.role, use.columns, f"{use.n_filled} of {n_samples}", Text(use.example)) for use in checked.columns]
    console.print(table(("part", "column", "filled", "first"), uses))
    if checked.notes:
        console.print(counts("Worth a look", checked.notes))
    rejects = [(row.source_row, reason_of(row), Text(row.evidence)) for row in checked.rejects[:_N_REJECTS]]
    if rejects:
        console.print(table(("row", "reason", "evidence"), rejects))
    families = []
    for use in checked.families:
        others = "; ".join(f"{n}: {reason}" for reason, n in use.reasons.items())
        families.append((use.family, f"{use.n_usable} of {n_samples}", Text(others)))
    console.print(table(("family", "rows", "the others"), families))
    console.print(f"Page: {relative(page)}", soft_wrap=True, highlight=False)
