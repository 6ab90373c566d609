"""``darkroom remove``: rows, images and sources that go for good, and files that nothing needs."""

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from darkroom.assets.commands import added_sources
from darkroom.pipelines.command_line.console import open_workspace, print_line
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.sandbox.errors import UserError, raised_as

if TYPE_CHECKING:
    from darkroom.pipelines.storage.removal import TakeDown
    from darkroom.pipelines.storage.workspace import Workspace


def remove(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WHAT...",
            help="A source, an image's or video's file or digest, or a row as SOURCE:ROW.",
            autocompletion=added_sources,
        ),
    ] = None,
    answers: Annotated[
        bool, typer.Option("--answers", help="Delete what models and code answered about the images, too.")
    ] = False,
    unused: Annotated[bool, typer.Option("--unused", help="Stored files that nothing refers to.")] = False,
    days: Annotated[
        float, typer.Option(min=0, help="Of the unused, only those that were stored, or wanted, before.")
    ] = 1.0,
    runs: Annotated[
        bool, typer.Option("--runs", help="Also files that only recorded runs of code show; they can be run again.")
    ] = False,
    alone: Annotated[
        bool, typer.Option("--alone", help="No other workspace uses this image store, which is not in DARKROOM_HOME.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it. Without: print what would go.")] = False,
) -> None:
    """Remove images, videos, rows or a source for good, or stored files that nothing refers to.

    A line of removed.jsonl in DARKROOM_HOME keeps an image, video or row out, whatever source brings it again. Its
    samples are rejected at once (`removed`), the tables that were made of their shards are deleted; `darkroom
    materialize` and `darkroom rl` make them again of what is left, without asking for anything twice, and the datasets
    after them. Of a source its file and all its tables go.

    With --unused, tables, datasets, annotation, evaluations and every other file of the workspace are read for digests;
    what models were asked is no reference. Let no build run meanwhile. What was exported, published, trained or copied
    before is yours to replace.

    `darkroom remove photos/face.jpg streets:rows.jsonl:12 --yes`

    `darkroom remove --unused --yes`
    """
    with open_workspace() as workspace:
        if bool(names) == unused:
            raise UserError("name what to remove, or say --unused")
        if names:
            _remove_named(workspace, names, answers=answers, yes=yes)
        else:
            _remove_unused(workspace, days, runs=runs, alone=alone, yes=yes)
        if not yes:
            print_line("Nothing was changed. Add --yes")


def _remove_named(workspace: "Workspace", names: Sequence[str], *, answers: bool, yes: bool) -> None:
    """Raises ``UserError`` for a name that can mean nothing, before anything goes."""
    from darkroom.assets.dagster_home.instance import refresh_dagster
    from darkroom.pipelines.sources.catalog import Catalog
    from darkroom.pipelines.storage import removal

    catalog = Catalog(workspace.sources)
    added = catalog.configs()
    of_source = {name: removal.tables_of(workspace, name) for name in names if re.fullmatch("[a-z0-9_]+", name)}
    sources = {name: keys for name, keys in of_source.items() if keys or name in added}
    for name in filter(os.path.isfile, sources):
        raise UserError(f"{name} is a source and a file: say ./{name} for the file, or run this elsewhere")
    new = removal.by_name(_named(name) for name in names if name not in sources)
    hits = removal.affected(workspace, new)
    for entry in new.values():
        n_samples = sum(by is entry for by_sample in hits.values() for by in by_sample.values())
        print_line(f"{entry}: {n_samples:,} sample{'' if n_samples == 1 else 's'}")
    for name, keys in sources.items():
        print_line(f"{name}: {f'{catalog.folder / name}.yaml, ' if name in added else ''}{len(keys):,} tables")
    if not yes:
        return
    removal.take_down(workspace, new)
    for name, keys in sources.items():
        if name in added:
            catalog.remove(name)
        for key in keys:
            removal.delete_table(workspace, key)
    refresh_dagster(workspace)
    if answers:
        n_calls = sum(workspace.ledger.forget_about(entry.digest) for entry in new.values() if entry.digest)
        print_line(f"{n_calls:,} recorded answers deleted")
    names_left = sorted({key.partition.rpartition("-")[0] for key in hits})
    again = "; ".join(f"darkroom materialize {source}, darkroom rl {source}" for source in names_left)
    print_line(f"Removed. Datasets hold it until they are built again: {again or 'darkroom materialize SOURCE'}")
    print_line("Files: darkroom remove --unused")


def _named(name: str) -> "TakeDown":
    """Raises ``UserError``."""
    from darkroom.pipelines.storage.removal import TakeDown

    path = Path(name)
    with raised_as(UserError, ValueError):
        entry = TakeDown.of(digest_bytes(path.read_bytes()) if path.is_file() else name)
    return replace(entry, at=datetime.now(UTC).date().isoformat())


def _remove_unused(workspace: "Workspace", days: float, *, runs: bool, alone: bool, yes: bool) -> None:
    """Raises ``UserError`` for a store that other workspaces may use."""
    from darkroom.pipelines.storage import removal

    if workspace.images_url != str(workspace.home / "images") and not alone:
        raise UserError(f"other workspaces may use {workspace.images_url}: say --alone if none does")
    unneeded = removal.unreferenced(workspace, days=days, runs=runs, say=print_line)
    for sha256, n_bytes in sorted(unneeded.items()):
        print_line(f"{n_bytes:>15,}  {sha256}")
    print_line(f"{len(unneeded):,} files, {sum(unneeded.values()) / 1e6:,.1f} MB")
    if not yes:
        return
    if runs:
        print_line(f"{removal.forget_runs(workspace, unneeded):,} recorded runs deleted")
    for sha256 in unneeded:
        workspace.images.delete(sha256)
