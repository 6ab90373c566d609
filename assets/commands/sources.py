"""``darkroom ingest`` and ``darkroom sources``: your own images, and the public datasets that are ready to add."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from darkroom.assets.commands.choices import public_datasets
from darkroom.pipelines.command_line.console import (
    CONSOLE,
    AsJson,
    command_group,
    open_workspace,
    print_json,
    print_line,
)
from darkroom.pipelines.sources.columns import BoxFrame, Columns

if TYPE_CHECKING:
    from darkroom.pipelines.sources.source_config import SourceConfig
    from darkroom.pipelines.storage.store_paths import StorePath
    from darkroom.pipelines.storage.workspace import Workspace

app = command_group(
    help="Public datasets as sources, with their columns mapped: list them, add one, show one.\n\n"
    "For your own images and questions: `darkroom ingest`. The format of a source's file: docs/sources.md.",
)

_WIDE = 120
"""From here on a table holds the hub's names without breaking the words of its other columns."""
_NARROW = 80
_HEADERS = ("hub", "rows", "questions", "licence", "from", "added")
_Shards = Annotated[int, typer.Option(min=1, help="Shards, each a partition in Dagster.")]


@app.command(name="list")
def list_sources(as_json: AsJson = False) -> None:
    """List the public datasets, and which of them were added: hub name (where there is room), rows, questions, licence.

    Rows and licence are from the dataset's card; `darkroom sources show NAME` gives the origin of the column mapping.
    Sources marked `files` keep images or videos beside their questions: download them, then add them with --path.
    """
    from darkroom.pipelines.sources.catalog import Catalog, public_sources

    with open_workspace() as workspace:
        public, added = public_sources(), Catalog(workspace.sources).configs()
        if as_json:
            print_json({name: dict(about) for name, about in _described(public, added)})
            return
        table = sources_table(public, added, width=CONSOLE.columns)
        CONSOLE.print(table, highlight=False, width=CONSOLE.columns)
        print_line("Next: darkroom sources show NAME, darkroom sources add NAME")


@app.command()
def add(
    name: Annotated[
        str, typer.Argument(help="Name of the dataset, as in `darkroom sources list`.", autocompletion=public_datasets)
    ],
    path: Annotated[
        Path | None,
        typer.Option(
            help="The downloaded dataset: its folder, a parquet file, or of trajectories a JSON-lines file. "
            "Default: read it from the hub."
        ),
    ] = None,
    shards: Annotated[int, typer.Option(min=1, help="Shards, each a partition in Dagster; at most one per file.")] = 1,
) -> None:
    """Add a public dataset as a source; its file, DARKROOM_HOME/sources/NAME.yaml, can be edited.

    Nothing is downloaded yet. A row that does not fit the mapping is rejected with its column and value; a missing
    column stops the source and lists the columns that exist.

    `darkroom sources add mmk12 --shards 3`

    `darkroom sources add visual_probe --path downloads/VisualProbe_train`
    """
    from darkroom.pipelines.sources import SourceError
    from darkroom.pipelines.sources.catalog import Catalog, placed

    with open_workspace() as workspace:
        config, catalog = placed(name, path, n_shards=shards), Catalog(workspace.sources)
        if name in catalog.configs():
            raise SourceError(f"{name} is added already; edit {catalog.folder / name}.yaml, or delete it first")
        _print_added(workspace, name, config, catalog.add(name, config))


@app.command()
def show(
    name: Annotated[
        str, typer.Argument(help="A public dataset, or a source that was added.", autocompletion=public_datasets)
    ],
) -> None:
    """Print the YAML file of a source: yours if it was added, else the bundled one.

    It describes and cites the dataset, gives the origin of its column mapping, what to unpack, and which of its parts
    are benchmarks.
    """
    from darkroom.pipelines.sources.catalog import Catalog, public_file

    with open_workspace() as workspace:
        catalog = Catalog(workspace.sources)
        is_added = name in catalog.configs()
        text = (catalog.folder / f"{name}.yaml").read_text(encoding="utf-8") if is_added else public_file(name)
        print_line(text.rstrip())


def ingest(
    folder: Annotated[Path, typer.Argument(help="Folder with the images or videos.", exists=True, file_okay=False)],
    questions: Annotated[
        Path | None, typer.Option(help="JSON lines, one question each; default: FOLDER/metadata.jsonl.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the source; default: the folder's name.")] = None,
    image: Annotated[
        str | None,
        typer.Option(
            help="Column with the image's path (or a list), relative to FOLDER; default: image, none with --video."
        ),
    ] = None,
    video: Annotated[
        str | None, typer.Option(help="Column with the video's path (or a list), relative to FOLDER.")
    ] = None,
    question: Annotated[str, typer.Option(help="Column with the question.")] = "question",
    answer: Annotated[str, typer.Option(help="Column with the answer.")] = "answer",
    choices: Annotated[str | None, typer.Option(help="Column with the list of choices, if any.")] = None,
    boxes: Annotated[str | None, typer.Option(help="Column with the target's box or boxes, if any.")] = None,
    box_frame: Annotated[
        BoxFrame | None,
        typer.Option(help="Format of the boxes; default: corners in pixels, where the values leave no doubt."),
    ] = None,
    category: Annotated[str | None, typer.Option(help="Column with the category, if any.")] = None,
    license: Annotated[str, typer.Option(help="Licence of the images and questions, for the dataset card.")] = "",
    shards: _Shards = 1,
) -> None:
    """Add your own images or videos, and questions about them, as a source.

    Every row becomes a sample, or is rejected with its file, line and reason; bad rows do not stop the run.

    `darkroom ingest photos --questions photos/questions.jsonl --boxes bbox --box-frame xywh`
    """
    from darkroom.pipelines.sources.source_config import SourceConfig

    columns = Columns(
        images=image or (None if video else "image"),
        videos=video,
        question=question,
        answer=answer,
        choices=choices,
        boxes=boxes,
        box_frame=box_frame,
        category=category,
    )
    config = SourceConfig(
        kind="jsonl",
        path=str(folder.absolute()),
        questions=str(questions.absolute()) if questions else None,
        columns=columns,
        n_shards=shards,
        license=license,
    )
    _ingest(name or folder.absolute().name.lower().replace("-", "_"), config)


def _ingest(name: str, config: "SourceConfig") -> None:
    """Materialises the source's samples, then adds it. Raises ``SourceError`` when it cannot be read at all."""
    from darkroom.assets.terminal.summary import print_intake
    from darkroom.pipelines.generation import engine
    from darkroom.pipelines.generation.stage import SAMPLES
    from darkroom.pipelines.sources import SourceError
    from darkroom.pipelines.sources.catalog import Catalog, check_name, open_source, partition_key
    from darkroom.pipelines.storage.tables import TableKey
    from darkroom.pipelines.storage.workspace import Workspace

    with Workspace.from_environment() as workspace:
        check_name(name)
        source = open_source(name, config)
        keys = [TableKey(SAMPLES, partition_key(name, shard)) for shard in range(config.n_shards)]
        for shard, key in enumerate(keys):
            with CONSOLE.status(f"{key.partition} …"):
                engine.intake(workspace, source, shard, key.partition)
        path = Catalog(workspace.sources).add(name, config)
        if not print_intake(CONSOLE, workspace, keys):
            remedy = f"correct its columns in {path} or by the options of this command, and run it again"
            raise SourceError(f"source {name!r} has no sample: {remedy}")
        _print_added(workspace, name, config, path)


def _print_added(workspace: "Workspace", name: str, config: "SourceConfig", path: "StorePath") -> None:
    from darkroom.assets.dagster_home.instance import refresh_dagster

    refresh_dagster(workspace)
    print_line(f"Source: {path}")
    print_line(f"Next:   darkroom {'rl' if config.uses == ('rl',) else 'materialize'} {name}")


def sources_table(
    public: Mapping[str, "SourceConfig"], added: Mapping[str, "SourceConfig"], *, width: int = _WIDE
) -> Table:
    """Public datasets by name, then the sources of the user.

    A table of less than 120 columns lacks where they come from; one of less than 80 would break words, so that each
    source has lines of its own.
    """
    sources = list(_described(public, added))
    if width < _NARROW:
        return _blocks(sources)
    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True, min_width=max((len(name) for name, _ in sources), default=0))  # to be copied
    headers = [header for header in _HEADERS if header != "hub" or width >= _WIDE]
    for header in headers:
        table.add_column(header, overflow="fold")
    for name, about in sources:
        table.add_row(name, *(about.get(header, "") for header in headers))
    return table


def _blocks(sources: Iterable[tuple[str, Mapping[str, str]]]) -> Table:
    grid = Table.grid(Column(overflow="fold"))
    for name, about in sources:
        facts = (f"{header}: {about[header]}" for header in _HEADERS if about.get(header))
        grid.add_row(Text(name, style="bold"))
        grid.add_row(Padding("; ".join(facts), (0, 0, 0, 4)))
    return grid


def _described(
    public: Mapping[str, "SourceConfig"], added: Mapping[str, "SourceConfig"]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Each source by its name, with what is known of it, by header."""
    from darkroom.pipelines.sources.catalog import needs_folder

    for name, config in public.items():
        if (about := config.about) is not None:
            known = {"hub": about.hub, "rows": about.rows, "questions": about.asks}
            origin = "files" if needs_folder(config) else "hub"
            is_added = "yes" if name in added else ""
            yield name, {**known, "licence": config.license or "not stated", "from": origin, "added": is_added}
    for name, config in added.items():
        if name not in public:
            known = {"hub": config.path, "licence": config.license or "not stated"}
            yield name, {**known, "from": config.kind, "added": "yes"}
