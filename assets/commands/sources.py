"""Commands about sources: the public datasets that are known, adding one, looking at one."""

from pathlib import Path
from typing import Annotated

import typer

from assets.commands.faults import CONSOLE, faults_as_messages

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Public datasets as sources: which are known, with their columns mapped; adding one; looking at one.\n\n"
    "Your own images and questions: `darkroom ingest`. What a source's file may say: docs/sources.md.",
)


@app.command(name="list")
def list_sources() -> None:
    """The public datasets that are known, and which of them are added: hub name, rows, questions, licence.

    Rows and licence are what a dataset's card says; `darkroom sources show NAME` tells where its columns were read.
    Sources marked `files` have images or videos beside their questions: download them, then add them with --path.
    """
    from assets.source_tables import print_sources
    from pipelines.sources import Catalog
    from pipelines.sources.public import public_sources
    from pipelines.workspace import Workspace

    with faults_as_messages(), Workspace.from_environment() as workspace:
        print_sources(CONSOLE, public_sources(), Catalog(workspace.sources).configs())


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Which one; `darkroom sources list` names them.")],
    path: Annotated[
        Path | None,
        typer.Option(help="Where it was downloaded to: its folder, or a parquet file. Default: read from the hub."),
    ] = None,
    shards: Annotated[int, typer.Option(min=1, help="Shards, each a partition in Dagster; at most one per file.")] = 1,
) -> None:
    """Add a public dataset as a source: its file, DARKROOM_HOME/sources/NAME.yaml, is yours to change.

    Nothing is downloaded by this. A row that does not fit the mapping is set aside with its column and what was found;
    a column that is not there stops the source with the columns that are. Examples:

    `darkroom sources add mmk12 --shards 3`

    `darkroom sources add visual_probe --path downloads/VisualProbe_train`
    """
    from pipelines.sources import Catalog, SourceFault
    from pipelines.sources.public import placed
    from pipelines.workspace import Workspace

    with faults_as_messages(), Workspace.from_environment() as workspace:
        config, catalog = placed(name, path, n_shards=shards), Catalog(workspace.sources)
        if name in catalog.configs():
            raise SourceFault(f"{name} is added already; change {catalog.folder / name}.yaml, or delete it first")
        file = catalog.add(name, config)
        CONSOLE.print(f"Source: {file}", highlight=False, soft_wrap=True)
        CONSOLE.print(f"Next:   darkroom materialize {name}   (an open UI shows it after a reload)", highlight=False)


@app.command()
def show(name: Annotated[str, typer.Argument(help="A public dataset, or a source that was added.")]) -> None:
    """The file of a source: yours if it was added, else the bundled one.

    It says what the dataset is and cites it, where its columns were read and whether that was its card, what is to be
    unpacked, which of its parts are benchmarks, and how its columns are mapped.
    """
    from pipelines.sources import Catalog
    from pipelines.sources.public import public_file, public_source
    from pipelines.workspace import Workspace

    with faults_as_messages(), Workspace.from_environment() as workspace:
        catalog = Catalog(workspace.sources)
        if name in catalog.configs():
            text = (catalog.folder / f"{name}.yaml").read_text(encoding="utf-8")
        else:
            public_source(name)
            text = public_file(name)
        CONSOLE.print(text.rstrip(), markup=False, highlight=False, soft_wrap=True)
