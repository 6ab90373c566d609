"""``darkroom summary``, ``ui``, ``gallery`` and ``explain``: inspect what the workspace holds."""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from darkroom.assets.commands import datasets
from darkroom.assets.terminal import progress_bar
from darkroom.pipelines.command_line.console import CONSOLE, AsJson, open_workspace, print_json, print_line
from darkroom.pipelines.processes.process_sessions import url_of
from darkroom.pipelines.publishing.dataset_reader import ALL, find_trajectories
from darkroom.pipelines.services import token_for
from darkroom.pipelines.storage.tables import TableKey

if TYPE_CHECKING:
    from darkroom.pipelines.inspection.gallery.entries import RejectedRows
    from darkroom.pipelines.storage.store_paths import StorePath
    from darkroom.pipelines.storage.workspace import Workspace

_MANY = 2_000
"""Rows of a page above which a browser is slow."""


def summary(as_json: AsJson = False) -> None:
    """Print how many rows were accepted and rejected, with reasons, loss curves, cost, and where the output is."""
    from darkroom.assets.terminal.summary import print_summary
    from darkroom.pipelines.generation.recipes import load_recipes
    from darkroom.pipelines.sources.catalog import Catalog

    with open_workspace() as workspace:
        # a home that is not there yet is not made for a look; a ledger elsewhere is asked all the same
        has_ledger = workspace.home.exists() or not workspace.ledger_url.startswith("sqlite")
        is_empty = not (workspace.tables.families() or (has_ledger and workspace.ledger.totals()))
        partitions = [] if is_empty else list(Catalog(workspace.sources).partitions())
        if as_json:
            print_json(_counts(workspace, partitions))
        elif is_empty:
            print_line(f"nothing is built in {workspace.home} yet. Run: darkroom demo, or darkroom ingest --help")
        else:
            print_summary(CONSOLE, workspace, list(load_recipes().values()), partitions)


def _counts(workspace: "Workspace", partitions: Sequence[str]) -> dict[str, Any]:
    """Rows by stage with the reasons of rejects; rows shipped, who wrote, judged and annotated them; cost."""
    from darkroom.assets.terminal.summary import shipped_origins
    from darkroom.pipelines.generation.funnel import funnel_of
    from darkroom.pipelines.generation.recipes import load_recipes
    from darkroom.pipelines.rl.facts import stage_facts

    families = {}
    for family in load_recipes() if partitions else ():
        funnel, shipped = funnel_of(workspace.tables, family, partitions), TableKey(("sft_dataset",), family)
        n_shipped = workspace.tables.n_rows(shipped) if workspace.tables.exists(shipped) else 0
        rest = {"usage": asdict(funnel.usage), "accepted": funnel.n_accepted, "shipped": n_shipped}
        families[family] = {**asdict(funnel), **rest}
    stages = [asdict(stage) for stage in stage_facts(workspace, partitions)] if partitions else []
    return {"home": workspace.home, "families": families, "rl": stages, "origins": shipped_origins(workspace)}


def ui(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the web page.")] = 3000,
    host: Annotated[str, typer.Option(help="0.0.0.0 admits other machines; there is no login.")] = "127.0.0.1",
    prepare: Annotated[bool, typer.Option("--prepare", help="Only prepare DAGSTER_HOME, and print its path.")] = False,
) -> None:
    """Start the Dagster UI with its daemon: the asset graph, its runs, images and rejects. Ctrl-C ends it.

    DAGSTER_HOME is prepared first (below DARKROOM_HOME, telemetry off): runs whose process has ended are closed, and
    the shards of all sources become partitions.
    """
    from darkroom.assets.dagster_home.daemon import WORKSPACE, dagster_environment
    from darkroom.assets.dagster_home.instance import prepare_dagster_home, refresh_dagster
    from darkroom.sandbox.errors import require_extra

    url = url_of(host, port)
    if not prepare:
        require_extra("dagster_webserver", "ui", "the Dagster UI")
        print_line(f"Dagster loads the asset graph, which takes a minute on a busy machine; then open {url}")
    with open_workspace() as workspace:
        folder = prepare_dagster_home(workspace)
        refresh_dagster(workspace)
    print_line(str(folder))
    if prepare:
        return
    # a background job ignores it, and so Dagster would both it and SIGTERM
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # the warning is that Dagster's other command line, which wants a project's folder, comes in its place
    dagster = [sys.executable, "-W", "ignore::FutureWarning", "-m", "dagster", "dev", "-w", WORKSPACE]
    os.execve(sys.executable, [*dagster, "--host", host, "--port", str(port)], dagster_environment())


def gallery(
    dataset: Annotated[str, typer.Argument(help="A family, `all`, or a folder.", autocompletion=datasets)] = "all",
    out: Annotated[Path | None, typer.Option(help="HTML file; default: DATASET.html in DARKROOM_HOME/views.")] = None,
    rejects: Annotated[bool, typer.Option("--rejects", help="Show rejected rows too, with their reasons.")] = False,
    rows: Annotated[int | None, typer.Option(min=1, help="Maximum rows per family; rejects come beside them.")] = None,
    page: Annotated[int, typer.Option(min=1, help="With --rejects: which hundred of them.")] = 1,
    serve: Annotated[bool, typer.Option("--serve", help="Serve the rows instead of writing a page; for many.")] = False,
    compare_with: Annotated[str | None, typer.Option(help="With --serve: another run's datasets, row by row.")] = None,
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
    from darkroom.pipelines.inspection.gallery.index import PAGE_ROWS

    if (serve and (out or rows)) or (compare_with and not serve) or (page > 1 and (serve or not rejects)):
        words = "--out and --rows are for a page, --page is for one with --rejects, --compare-with is for --serve"
        raise typer.BadParameter(words)
    with open_workspace() as workspace:
        families_run, title = workspace.tables.families(), Path(dataset).name or "gallery"
        has_rejects = rejects and bool(families_run if dataset == ALL else dataset in families_run)
        folders = find_trajectories(dataset, workspace.home / "datasets" / "sft", may_be_empty=has_rejects)
        families = None if dataset == ALL else [folder.name for folder in folders] or [dataset]
        reject_rows = read_rejects(workspace, families) if rejects else None
        if serve:
            _serve_gallery(workspace, folders, reject_rows, title, compare_with, {"host": host, "port": port})
            return
        if page > 1:
            folders, title = [], f"{title}.{page}"
        path = out or workspace.local / "views" / f"{title}.html"
        on_page = reject_rows and reject_rows.page(page, PAGE_ROWS)
        with progress_bar("rows") as progress:
            written = write_gallery(path, folders, title=title, rejected=on_page, limit=rows, progress=progress)
        n_rejects = f", {written.n_rejects:,} rejects, {written.n_not_applicable:,} not applicable" if rejects else ""
        print_line(f"{written.n_rows:,} trajectories{n_rejects}: {path.absolute()}")
        if written.folder is not None:
            print_line(f"images: {written.folder.absolute()}")
        if reject_rows and len(reject_rows.rows) > page * PAGE_ROWS:
            print_line(f"{len(reject_rows.rows):,} of both in all; --page {page + 1} shows the next, --serve all")
        if written.n_rows > _MANY:
            print_line("a browser is slow with so many rows: --serve shows them by the hundred")


def _serve_gallery(
    workspace: "Workspace",
    folders: "Sequence[StorePath]",
    rejected: "RejectedRows | None",
    title: str,
    compare_with: str | None,
    address: dict[str, Any],
) -> None:
    from darkroom.pipelines.inspection.gallery.index import open_index
    from darkroom.pipelines.inspection.gallery.served import open_server

    token = token_for(address["host"])
    views, compared = workspace.local / "views", None
    with progress_bar("index") as progress:
        index = open_index(views / f"{title}.index", folders, rejected, progress=progress)
        if compare_with is not None:
            other_folders = find_trajectories(compare_with, Path(compare_with))
            compared = open_index(views / f"{title}.beside.index", other_folders, None, progress=progress)
    with open_server(index, workspace.images, title=title, beside=compared, token=token, **address) as server:
        print_line(f"{server.address} shows {index.n_entries:,} rows; Ctrl-C stops it")
        with suppress(KeyboardInterrupt):
            server.serve_forever()


def explain(
    row: Annotated[str, typer.Argument(help="trajectory_id or sample_id (or a prefix), or a row of a source.")],
    as_json: AsJson = False,
) -> None:
    """Print the history of one row or reject: sample, stages, draft, code, checks, votes, and what it cost.

    Name the row by six or more characters of its id, or by its place in its source: `darkroom explain demo:photo/cat`.
    """
    from darkroom.assets.terminal.explanation import print_candidates, print_explanation
    from darkroom.pipelines.inspection.explain import RowAmbiguous, explain as explain_row

    with open_workspace() as workspace:
        try:
            explanation = explain_row(workspace, row)
        except RowAmbiguous as error:
            print_candidates(CONSOLE, error)
            raise
        if as_json:
            print_json(asdict(explanation))
        else:
            print_explanation(CONSOLE, explanation)
