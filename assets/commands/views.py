"""``darkroom summary``, ``gallery``, ``replay`` and ``explain``: inspect what the workspace holds."""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from darkroom.assets.terminal.progress import progress_bar
from darkroom.pipelines.command_line.console import CONSOLE, open_workspace, print_line

if TYPE_CHECKING:
    from darkroom.pipelines.inspection.gallery.entries import RejectedRows
    from darkroom.pipelines.storage.store_paths import StorePath
    from darkroom.pipelines.storage.workspace import Workspace

_Dataset = Annotated[str, typer.Argument(help="A family, `all`, or a folder with one or several datasets.")]
_MANY = 2_000
"""Rows of a page from which on a browser is slow."""
_Limit = Annotated[int | None, typer.Option(min=1, help="Maximum rows per family.")]


def summary() -> None:
    """Print how many rows were accepted and rejected, with reasons, loss curves, cost, and where the output is."""
    from darkroom.assets.terminal.summary import print_summary
    from darkroom.pipelines.generation.recipes import load_recipes
    from darkroom.pipelines.sources.catalog import Catalog

    with open_workspace() as workspace:
        # a home that is not there yet is not made for a look; a ledger elsewhere is asked all the same
        has_ledger = workspace.home.exists() or not workspace.ledger_url.startswith("sqlite")
        if not (workspace.tables.families() or (has_ledger and workspace.ledger.totals())):
            print_line(f"nothing is built in {workspace.home} yet. Run: darkroom demo, or darkroom ingest --help")
            return
        partitions = list(Catalog(workspace.sources).partitions())
        print_summary(CONSOLE, workspace, list(load_recipes().values()), partitions)


def gallery(
    dataset: _Dataset = "all",
    out: Annotated[Path | None, typer.Option(help="HTML file; default: DATASET.html in DARKROOM_HOME/views.")] = None,
    rejects: Annotated[bool, typer.Option("--rejects", help="Show rejected rows too, with their reasons.")] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum rows per family; of rejects, all are on the page.")
    ] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Serve the rows instead of writing a page; for many.")] = False,
    beside: Annotated[
        str | None, typer.Option(help="With --serve: a folder with another run's datasets, to see each row twice.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="With --serve: 0.0.0.0 admits other machines; then DARKROOM_SERVICE_TOKEN is needed.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --serve: 0 takes a free one.")] = 8768,
) -> None:
    """Write a dataset as one HTML page: images, thoughts, code, observations, answers and verdicts of every row.

    The page needs no server and no network. It filters by family, category, check and reject reason, searches all
    texts, and steps through rows with `j` and `k`. Large numbers of images go to a folder beside the page.

    With --serve nothing is drawn before it is looked at: an index of the texts is made once, and the browser gets a
    hundred rows a page. Each row has an address that a colleague can open. Stop it with Ctrl-C.

    `darkroom gallery crop --rejects`

    `darkroom gallery all --rejects --serve`
    """
    from darkroom.pipelines.inspection.gallery import read_rejects, write_gallery
    from darkroom.pipelines.publishing.dataset_reader import ALL, find_trajectories

    if (serve and (out or limit)) or (beside and not serve):
        raise typer.BadParameter("--out and --limit are for a page, --beside is for --serve")
    with open_workspace() as workspace:
        reject_rows = None
        families_run = workspace.tables.families()
        has_rejects = rejects and bool(families_run if dataset == ALL else dataset in families_run)
        folders = find_trajectories(dataset, workspace.home / "datasets" / "sft", may_be_empty=has_rejects)
        if rejects:
            families = None if dataset == ALL else [folder.name for folder in folders] or [dataset]
            reject_rows = read_rejects(workspace, families)
        title = Path(dataset).name or "gallery"
        if serve:
            _serve_gallery(workspace, folders, reject_rows, title, beside, host, port)
            return
        path = out or workspace.local / "views" / f"{title}.html"
        with progress_bar("rows") as progress:
            page = write_gallery(path, folders, title=title, rejected=reject_rows, limit=limit, progress=progress)
        n_rejects = f", {page.n_rejects:,} rejects" if rejects else ""
        print_line(f"{page.n_rows:,} trajectories{n_rejects}: {path.absolute()}")
        if page.folder is not None:
            print_line(f"images: {page.folder.absolute()}")
        if page.n_rows + page.n_rejects > _MANY:
            print_line("a browser is slow with so many rows: --serve shows them by the hundred")


def _serve_gallery(
    workspace: "Workspace",
    folders: "Sequence[StorePath]",
    rejected: "RejectedRows | None",
    title: str,
    beside: str | None,
    host: str,
    port: int,
) -> None:
    from darkroom.pipelines.inspection.gallery.index import open_index
    from darkroom.pipelines.inspection.gallery.served import open_server
    from darkroom.pipelines.publishing.dataset_reader import find_trajectories
    from darkroom.pipelines.services import TOKEN_VARIABLE, require_token

    token = os.environ.get(TOKEN_VARIABLE, "")
    require_token(host, token)
    views, other = workspace.local / "views", None
    with progress_bar("index") as progress:
        index = open_index(views / f"{title}.index", folders, rejected, progress=progress)
        if beside is not None:
            other_folders = find_trajectories(beside, Path(beside))
            other = open_index(views / f"{title}.beside.index", other_folders, None, progress=progress)
    with open_server(index, workspace.images, title=title, beside=other, host=host, port=port, token=token) as server:
        print_line(f"{server.address} shows {index.n_entries:,} rows; Ctrl-C stops it")
        with suppress(KeyboardInterrupt):
            server.serve_forever()


def replay(
    dataset: _Dataset,
    limit: _Limit = None,
    least: Annotated[float, typer.Option(min=0, max=1, help="Exit with status 1 below this rate of equal rows.")] = 1.0,
) -> None:
    """Execute the code of every row again and compare the observations with the recorded ones.

    Each row runs in a fresh session with its images and its seed; status, text, error and every pixel are compared.
    Needs only the dataset: no ledger, no image store. The exit status is 1 when fewer than `--least` of the rows match.

    `darkroom replay crop --limit 100`
    """
    from darkroom.assets.terminal.reports import print_replay
    from darkroom.pipelines.publishing.dataset_reader import find_trajectories
    from darkroom.pipelines.publishing.replay import replay as replay_datasets

    with open_workspace() as workspace:
        folders = find_trajectories(dataset, workspace.home / "datasets" / "sft")
        with progress_bar("rows") as progress:
            comparison = replay_datasets(folders, limit=limit, progress=progress)
        print_replay(CONSOLE, comparison)
        if comparison.rate < least:
            raise typer.Exit(1)


def explain(
    row: Annotated[str, typer.Argument(help="trajectory_id or sample_id (or a prefix), or a row of a source.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")] = False,
) -> None:
    """Print the history of one row or reject: sample, stages, draft, code, checks, votes, and what it cost.

    Name the row by six or more characters of its id, or by its place in its source: `darkroom explain demo:photo/cat`.
    """
    from darkroom.assets.terminal.explanation import print_candidates, print_explanation
    from darkroom.pipelines.inspection.explain import RowAmbiguous
    from darkroom.pipelines.inspection.explain import explain as explain_row

    with open_workspace() as workspace:
        try:
            explanation = explain_row(workspace, row)
        except RowAmbiguous as error:
            print_candidates(CONSOLE, error)
            raise
        if as_json:
            typer.echo(json.dumps(asdict(explanation), indent=2, sort_keys=True))
        else:
            print_explanation(CONSOLE, explanation)
