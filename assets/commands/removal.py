"""``darkroom remove`` and ``darkroom gc``: rows, images and sources that go for good, and files that nothing needs."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from darkroom.pipelines.command_line.console import AsJson, open_workspace, print_json, print_line
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.sandbox.errors import UserError, raised_as

if TYPE_CHECKING:
    from darkroom.pipelines.storage.removal import TakeDown

_Yes = Annotated[bool, typer.Option("--yes", help="Do it. Without: print what would go.")]


def remove(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="WHAT...", help="A digest of an image or video, its file, SOURCE:ROW, or a source that was removed."
        ),
    ],
    answers: Annotated[
        bool, typer.Option("--answers", help="Delete what models and code answered about the images, too.")
    ] = False,
    yes: _Yes = False,
) -> None:
    """Remove images, videos, rows, or what is left of a source, for good.

    A line of removed.jsonl in DARKROOM_HOME keeps what is named out, whatever source brings it again. Its samples are
    rejected at once (`removed`), the tables that were made of their shards are deleted; `darkroom materialize` and
    `darkroom rl` make them again of what is left, without asking for anything twice, and the datasets after them. Of a
    source that was removed, all tables are deleted.

    Files go with `darkroom gc`. What was exported, published, trained or copied before is yours to replace.

    `darkroom remove photos/face.jpg streets:rows.jsonl:12 --yes`
    """
    from darkroom.pipelines.sources.catalog import Catalog
    from darkroom.pipelines.storage import removal

    with open_workspace() as workspace:
        added = Catalog(workspace.sources).configs()
        of_source = {name: removal.tables_of(workspace, name) for name in names if re.fullmatch("[a-z0-9_]+", name)}
        tables = {name: keys for name, keys in of_source.items() if keys}
        for name in set(tables) & set(added):
            raise UserError(f"{name} is a source still: darkroom sources remove {name}, then this command again")
        new = [_named(name) for name in names if name not in tables]
        hits = removal.affected(workspace, new)
        for entry in new:
            n_samples = sum(by is entry for rows in hits.values() for _, by in rows)
            print_line(f"{entry}: {n_samples:,} sample{'' if n_samples == 1 else 's'}")
        for name, keys in tables.items():
            print_line(f"{name}: {len(keys):,} tables")
        if not yes:
            print_line("Nothing was changed. Add --yes")
            return
        removal.take_down(workspace, new)
        for key in (key for keys in tables.values() for key in keys):
            removal.delete_table(workspace, key)
        if answers:
            n_calls = sum(workspace.ledger.forget_about(entry.digest) for entry in new if entry.digest)
            print_line(f"{n_calls:,} recorded answers deleted")
        commands = sorted({key.partition.rpartition("-")[0] for key in hits})
        again = "; ".join(f"darkroom materialize {source}, darkroom rl {source}" for source in commands)
        print_line(f"Removed. Datasets hold it until they are built again: {again or 'darkroom materialize SOURCE'}")
        print_line("Files: darkroom gc")


def _named(name: str) -> "TakeDown":
    """Raises ``UserError``."""
    from darkroom.pipelines.storage.removal import TakeDown

    path = Path(name)
    with raised_as(UserError, ValueError):
        entry = TakeDown.of(digest_bytes(path.read_bytes()) if path.is_file() else name)
    return replace(entry, at=datetime.now(UTC).date().isoformat())


def gc(
    days: Annotated[float, typer.Option(min=0, help="Only files that were stored, or wanted, before.")] = 1.0,
    runs: Annotated[
        bool,
        typer.Option("--runs", help="Also what only recorded runs of code show; they are executed again if needed."),
    ] = False,
    alone: Annotated[
        bool,
        typer.Option("--alone", help="No other workspace uses this image store, which lies outside DARKROOM_HOME."),
    ] = False,
    yes: _Yes = False,
    as_json: AsJson = False,
) -> None:
    """Find images and videos that nothing in the workspace refers to, and with --yes delete them.

    Tables, shipped datasets, annotation, evaluations and every other file of the workspace are read for digests; what
    models were asked is no reference. Let no build run meanwhile.
    """
    from darkroom.pipelines.storage import removal

    with open_workspace() as workspace:
        if workspace.images_url != str(workspace.home / "images") and not alone:
            raise UserError(f"other workspaces may use {workspace.images_url}: say --alone if none does")
        unneeded = removal.unreferenced(workspace, days=days, runs=runs, say=None if as_json else print_line)
        counts = {"files": len(unneeded), "bytes": sum(unneeded.values()), "runs_forgotten": 0, "deleted": yes}
        if yes and runs:
            counts["runs_forgotten"] = removal.forget_runs(workspace, unneeded)
        for sha256 in unneeded if yes else ():
            workspace.images.delete(sha256)
    if as_json:
        print_json({**counts, "digests": sorted(unneeded)})
        return
    verb = "deleted" if yes else "would be deleted; nothing was changed. Add --yes"
    print_line(f"{counts['files']:,} files, {counts['bytes'] / 1e6:,.1f} MB: {verb}")
