"""Commands that look at what is there: counts, pictures, programs run again, everything about one row."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from assets.commands.faults import CONSOLE, faults_as_messages

_Dataset = Annotated[str, typer.Argument(help="A family, `all`, or a folder with a dataset (or with several).")]


def summary() -> None:
    """Rows per asset, what was taken out and why, loss curves, cost: what is in DARKROOM_HOME now."""
    from assets.summary import print_summary
    from pipelines.recipes import load_recipes
    from pipelines.sources import Catalog
    from pipelines.workspace import Workspace

    with faults_as_messages(), Workspace.from_environment() as workspace:
        partitions = list(Catalog(workspace.sources).partitions())
        print_summary(CONSOLE, workspace, list(load_recipes().values()), partitions, None)


def gallery(
    dataset: _Dataset = "all",
    out: Annotated[Path | None, typer.Option(help="The page; default: DARKROOM_HOME/views/<dataset>.html.")] = None,
    rejects: Annotated[bool, typer.Option("--rejects", help="Show what the stages took out as well, and why.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many rows of each family.")] = None,
) -> None:
    """Look at a dataset: one page with every picture, thought, program, what it showed, answer and verdicts.

    Needs no server and no network: open it, mail it. In it: filters by family, category, check and reject reason, a
    search through all texts, `j` and `k` for the next and previous row. Many pictures go to a folder beside the page.

    `darkroom gallery crop --rejects`
    """
    from assets.replaying import progress_bar
    from pipelines.gallery import Taken, write_gallery
    from pipelines.shipped import ALL, find_datasets
    from pipelines.taken_out import read_taken_out
    from pipelines.workspace import Workspace

    with faults_as_messages(), Workspace.from_environment() as workspace:
        taken = None
        folders = find_datasets(dataset, workspace.home / "datasets" / "sft", may_be_empty=rejects)
        if rejects:
            families = None if dataset == ALL else [folder.name for folder in folders] or [dataset]
            taken = Taken(read_taken_out(workspace.tables, families), workspace.images)
        path = out or workspace.home / "views" / f"{Path(dataset).name or 'gallery'}.html"
        with progress_bar(CONSOLE, "rows") as progress:
            made = write_gallery(path, folders, title=Path(dataset).name, taken=taken, limit=limit, progress=progress)
        aside = f", {made.n_rejects:,} rejects" if rejects else ""
        CONSOLE.print(f"{made.n_rows:,} trajectories{aside}: {path.absolute()}", highlight=False, soft_wrap=True)
        if made.folder is not None:
            CONSOLE.print(f"its pictures: {made.folder.absolute()}", highlight=False, soft_wrap=True)


def replay(
    dataset: _Dataset,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many rows of each family.")] = None,
    least: Annotated[float, typer.Option(min=0, max=1, help="The rate below which the status is 1.")] = 1.0,
) -> None:
    """Execute every program of a dataset again, and compare what it prints and shows with what its row says.

    Each row gets a fresh session with its images and its seed; status, text, error and every pixel are compared. Needs
    the dataset alone: no ledger, no image store. The status is 1 when less than `--least` of the rows are the same.

    `darkroom replay crop --limit 100`
    """
    from assets.replaying import print_replay, progress_bar
    from pipelines.replay import replay as replay_datasets
    from pipelines.shipped import find_datasets
    from pipelines.workspace import Workspace

    with faults_as_messages():
        folders = find_datasets(dataset, Workspace.from_environment().home / "datasets" / "sft")
        with progress_bar(CONSOLE, "rows") as progress:
            found = replay_datasets(folders, limit=limit, progress=progress)
        print_replay(CONSOLE, found)
        if found.rate < least:
            raise typer.Exit(1)


def explain(
    row: Annotated[str, typer.Argument(help="trajectory_id, sample_id, a beginning of one, or a row of a source.")],
    as_json: Annotated[bool, typer.Option("--json", help="For machines: everything, as one JSON object.")] = False,
) -> None:
    """Everything about one row or reject: its sample, every stage, draft, program, check, vote, and what it cost.

    Name it by six or more characters of its id, or by its place in its source: `darkroom explain demo:photo/cat`.
    """
    from assets.explanation import print_candidates, print_explanation
    from pipelines.explain import RowAmbiguous
    from pipelines.explain import explain as explain_row
    from pipelines.workspace import Workspace

    with faults_as_messages(), Workspace.from_environment() as workspace:
        try:
            found = explain_row(workspace, row)
        except RowAmbiguous as fault:
            print_candidates(CONSOLE, fault)
            raise
        if as_json:
            typer.echo(json.dumps(asdict(found), indent=2, sort_keys=True))
        else:
            print_explanation(CONSOLE, found)
