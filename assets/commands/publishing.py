"""``darkroom publish``: a shipped dataset to the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from darkroom.pipelines.command_line.console import open_workspace, print_line

if TYPE_CHECKING:
    from darkroom.pipelines.publishing.hub import HubDataset
    from darkroom.pipelines.storage.workspace import Workspace


def publish(
    dataset: Annotated[str, typer.Argument(help="A family, `rl`, or the folder of one dataset.")],
    repository: Annotated[str, typer.Argument(help="Where on the hub, as OWNER/NAME; made if it is not there.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List files and check the card; send nothing.")] = False,
    private: Annotated[bool, typer.Option("--private", help="Make the repository private, if it is made.")] = False,
) -> None:
    """Upload a shipped dataset to the Hugging Face hub: its card and its parquet files, in one commit.

    Before, the card is checked against the files; what does not hold is printed, and nothing is sent. The hub
    then checks the card's YAML by its own rules. Data files of an earlier version are deleted by the same commit. The
    token is that of `hf auth login`, or HF_TOKEN; HF_ENDPOINT names another hub.

    `darkroom publish crop ann/street-crops --dry-run`
    """
    from darkroom.pipelines.publishing.hub import HubError, check_repository

    check_repository(repository)
    with open_workspace() as workspace:
        shipped = _dataset(workspace, dataset)
        for name, size in shipped.files().items():
            print_line(f"{size:>15,}  {name}")
        problems = shipped.problems()
        for problem in problems:
            print_line(f"problem: {problem}")
        if problems:
            raise HubError(f"{dataset} is not fit for the hub: see above")
        counts = ", ".join(f"{split} {n_rows:,} rows" for split, n_rows in shipped.rows().items())
        print_line(f"{counts}; the card holds")
        if dry_run:
            print_line(f"Nothing was sent. Without --dry-run it goes to {repository}")
        else:
            print_line(shipped.upload(repository, private=private))


def _dataset(workspace: Workspace, name: str) -> HubDataset:
    """Raises ``TableMissing`` where there is none, ``HubError`` for several."""
    from darkroom.pipelines.publishing.dataset_reader import find_datasets
    from darkroom.pipelines.publishing.hub import HubDataset, HubError

    if name == "rl":
        return HubDataset(workspace.local_datasets("rl", "prompts"))
    folders = find_datasets(name, workspace.home / "datasets" / "sft")
    if len(folders) > 1:
        raise HubError(f"{name} holds {len(folders)} datasets; a repository takes one: name a family")
    [folder] = folders
    return HubDataset(folder if isinstance(folder, Path) else workspace.local_datasets("sft", folder.name))
