"""``darkroom audit``: does a dataset hold what it says?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from darkroom.assets.terminal.progress import progress_bar
from darkroom.pipelines.command_line.console import CONSOLE, print_line
from darkroom.pipelines.command_line.errors import describe
from darkroom.sandbox.errors import UserError

if TYPE_CHECKING:
    from darkroom.pipelines.storage.store_paths import StorePath
    from darkroom.pipelines.storage.workspace import Workspace


class _AuditImpossible(UserError):
    """Nothing could be audited; status 1 is for findings."""

    exit_status = 2


def audit(
    dataset: Annotated[str, typer.Argument(help="A family, `all`, `rl`, or a folder with datasets.")],
    limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum rows per file; leaves out the card's counts.")
    ] = None,
    mapping: Annotated[
        str | None,
        typer.Option(help="DATASET is a released trajectory file: a public source's name, or a YAML mapping file."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")] = False,
) -> None:
    """Execute, measure and count everything in a dataset again, and list what is not as it says.

    Code is executed in the sandbox, and every text and pixel compared. Each check of the row's family is done again:
    crops show their target, turned images are upright, contrast rose, no privileged fact leaks. Votes, rates and the
    card's figures are counted from the rows. What needs the truth about a sample (its box, its angle) is measured where
    this workspace made the dataset, and reported as not measured elsewhere.

    DATASET may also be the folder of an export for LLaMA-Factory or ms-swift (`darkroom export`), or, with `--mapping`,
    a released trajectory file.

    The exit status is 0 without a finding, 1 with findings, 2 where nothing could be audited.

    `darkroom audit all --json`
    """
    from darkroom.assets.terminal.audit import print_audit
    from darkroom.pipelines.inspection.audit import audit as audit_datasets
    from darkroom.pipelines.inspection.audit import find_conversations
    from darkroom.pipelines.storage.workspace import Workspace

    try:
        with Workspace.from_environment() as workspace:
            conversations = find_conversations(Path(dataset), mapping)
            folders: Sequence[StorePath] = [Path(dataset)] if conversations else _folders(dataset, workspace)
            with progress_bar("rows") as progress:
                report = audit_datasets(conversations or folders, workspace=workspace, limit=limit, progress=progress)
    except (UserError, OSError) as error:
        raise _AuditImpossible(describe(error)[0]) from error
    if as_json:
        typer.echo(json.dumps(report.as_json(), indent=2, ensure_ascii=False))
    else:
        print_audit(CONSOLE, report)
        print_line(f"audited: {', '.join(str(folder) for folder in folders)}")
    if report.n_findings:
        raise typer.Exit(1)


def _folders(dataset: str, workspace: Workspace) -> list[StorePath]:
    from darkroom.pipelines.publishing.dataset_reader import ALL, dataset_files, find_datasets
    from darkroom.pipelines.publishing.layouts.export_source import shipped_folders
    from darkroom.pipelines.publishing.rl_dataset import rl_folder

    datasets, prompts = workspace.home / "datasets" / "sft", rl_folder(workspace)
    if dataset != ALL:
        return shipped_folders(dataset, datasets, prompts)
    shipped = [prompts] if dataset_files(prompts) else []
    return [*find_datasets(ALL, datasets, may_be_empty=bool(shipped)), *shipped]
