"""``darkroom ingest`` and ``darkroom sources``: your own images, and the public datasets that are ready to add."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from darkroom.assets.commands import public_datasets
from darkroom.pipelines.command_line.console import CONSOLE, PROGRESS, AsJson, open_workspace, print_json, print_line
from darkroom.pipelines.records.samples import LICENCE_REMEDY, is_licensed
from darkroom.pipelines.sources import Source, SourceError
from darkroom.pipelines.sources.columns import BoxFrame, Columns
from darkroom.pipelines.storage.tables import TableKey

if TYPE_CHECKING:
    from darkroom.pipelines.inspection.source_check import SourceCheck
    from darkroom.pipelines.sources.source_config import SourceConfig
    from darkroom.pipelines.storage.store_paths import StorePath
    from darkroom.pipelines.storage.workspace import Workspace

    SourceConfigs = Mapping[str, SourceConfig]

_N_REJECTS = 10

_WIDE = 120
"""From here on a table holds the hub's names without breaking the words of its other columns."""
_NARROW = 80
_HEADERS = ("hub", "rows", "questions", "licence", "from", "added")
_Split = Annotated[str | None, typer.Option(help="Which split of the files; default: the only one.")]


def list_sources(
    name: Annotated[str | None, typer.Argument(help="Print its YAML file.", autocompletion=public_datasets)] = None,
    as_json: AsJson = False,
) -> None:
    """List the public datasets, and which of them were added: hub name (where there is room), rows, questions, licence.

    Rows and licence are from the dataset's card; `darkroom sources list NAME` prints a source's YAML file, yours if it
    was added, else the bundled one with the origin of its mapping, what to unpack, and its parts that are benchmarks.
    Sources marked `files` keep images or videos beside their questions: download them, then add them with --path.
    """
    from darkroom.pipelines.sources.catalog import Catalog, public_file, public_sources

    with open_workspace() as workspace:
        catalog = Catalog(workspace.sources)
        added = catalog.configs()
    if name in added:
        print_line((catalog.folder / f"{name}.yaml").read_text(encoding="utf-8").rstrip())
    elif name is not None:
        print_line(public_file(name).rstrip())
    elif as_json:
        print_json(dict(_described(public_sources(), added)))
    else:
        table = sources_table(public_sources(), added, width=CONSOLE.columns)
        CONSOLE.print(table, highlight=False, width=CONSOLE.columns)
        print_line("Next: darkroom sources list NAME, darkroom sources check NAME, darkroom sources add NAME")


def add(
    name: Annotated[str, typer.Argument(help="A name of `darkroom sources list`.", autocompletion=public_datasets)],
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
    from darkroom.pipelines.sources.catalog import Catalog, placed

    with open_workspace() as workspace:
        config, catalog = placed(name, path, n_shards=shards), Catalog(workspace.sources)
        if name in catalog.configs():
            raise SourceError(f"{name} is added already; edit {catalog.folder / name}.yaml, or delete it first")
        _print_added(workspace, name, config, catalog.add(name, config))
        if not (is_licensed(config.license) or config.columns.license):
            print_line(f"Its licence is not stated: by default its rows do not ship; {LICENCE_REMEDY}")


def check(
    source: Annotated[
        str,
        typer.Argument(
            help="A source of the workspace, a public dataset, a source's YAML file, or your own files.",
            autocompletion=public_datasets,
        ),
    ],
    rows: Annotated[int, typer.Option(min=1, help="Number of rows to try.")] = 20,
    split: _Split = None,
    box_frame: Annotated[BoxFrame | None, typer.Option(metavar="FRAME", help="Format of the boxes to try.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="HTML page with three rows; default: SOURCE.check.html in DARKROOM_HOME/views.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Try a source's mapping on its first rows before anything is built, and say what becomes of them.

    It prints what each column became, what was not read, the rejects, and for each family how many rows it can use and
    why not the others; the page shows three rows with their boxes drawn. Exits with 1 where no row becomes a sample.

    `darkroom sources check photos/annotations.json --rows 50`
    """
    from darkroom.pipelines.generation.recipes import load_recipes
    from darkroom.pipelines.inspection.gallery import write_entries
    from darkroom.pipelines.inspection.gallery.entries import entry_of_sample
    from darkroom.pipelines.inspection.source_check import check_source
    from darkroom.pipelines.storage.images import ImageStore

    with open_workspace() as workspace, TemporaryDirectory(prefix="darkroom-check-") as scratch:
        name, opened, columns = _opened(workspace, source, split, box_frame, is_shown=not as_json)
        store = ImageStore(scratch)
        with PROGRESS.status(f"{name} …"):
            checked = check_source(opened, columns, [*load_recipes().values()], store, n_rows=rows)
        page = (out or workspace.local / "views" / f"{name}.check.html").absolute()
        entries = (entry_of_sample(sample, store) for sample in checked.samples[:3])
        write_entries(page, entries, title=f"{name}: first rows")
        if as_json:
            print_json({**checked.as_json(), "page": page})
        else:
            _print_check(checked, page)
        if not checked.samples:
            found = f"none of the first {checked.n_rows} rows of {name} becomes a sample"
            raise SourceError(f"{found}: correct its mapping")


def _opened(
    workspace: "Workspace", source: str, split: str | None, box_frame: BoxFrame | None, *, is_shown: bool
) -> tuple[str, Source, Columns | None]:
    """A source by its name, its file or its data, with its mapping where it has one."""
    from darkroom.pipelines.sources import catalog as catalogs

    catalog, path = catalogs.Catalog(workspace.sources), Path(source)
    if source in (catalogs.EMBEDDED, catalogs.EMBEDDED_RL):
        return source, catalog.open(source), None
    if source in (configs := catalog.configs()):
        config = configs[source]
    elif source in catalogs.public_sources():
        config = catalogs.placed(source)
    elif path.suffix in (".yaml", ".yml") and path.is_file():
        config = catalogs.read_config(path.absolute())
    else:
        config = _proposed(path, None, split, {}, is_shown=is_shown)
    if box_frame is not None:
        config = config.model_copy(update={"columns": config.columns.model_copy(update={"box_frame": box_frame})})
    name = _name_of(path)
    return name, catalogs.open_source(name, config), config.columns


def ingest(
    path: Annotated[Path, typer.Argument(help="Folder or file with images, questions, annotations.", exists=True)],
    questions: Annotated[Path | None, typer.Option(help="File with the questions, if it is not below PATH.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the source; default: that of PATH.")] = None,
    split: _Split = None,
    image: Annotated[str | None, typer.Option(help="Column of image paths, below PATH; none with --video.")] = None,
    video: Annotated[str | None, typer.Option(help="Column with the video's path or paths, relative to PATH.")] = None,
    question: Annotated[str | None, typer.Option(help="Column with the question.")] = None,
    answer: Annotated[str | None, typer.Option(help="Column with the answer.")] = None,
    choices: Annotated[str | None, typer.Option(help="Column with the list of choices, if any.")] = None,
    boxes: Annotated[str | None, typer.Option(help="Column with the target's box or boxes, if any.")] = None,
    box_frame: Annotated[
        BoxFrame | None,
        typer.Option(
            metavar="FRAME",
            help="Order (corners, xywh, cxcywh, yxyx) or unit (fractions, percent, thousandths) of the boxes, or both "
            "(cxcywh_fractions); default: corners in pixels, where the values leave no doubt.",
        ),
    ] = None,
    category: Annotated[str | None, typer.Option(help="Column with the category, if any.")] = None,
    license: Annotated[str, typer.Option(help="Licence of the images and questions, for the dataset card.")] = "",
    shards: Annotated[int, typer.Option(min=1, help="Shards, each a partition in Dagster.")] = 1,
) -> None:
    """Add your own images or videos, and questions about them, as a source.

    The shape of the files is recognised (JSON, CSV, parquet, COCO, YOLO and others) and a mapping of their columns
    proposed, shown and written as the source's YAML file; options replace parts of it. Every row becomes a sample, or
    is rejected with its file, line and reason; bad rows do not stop the run.

    `darkroom ingest photos --questions photos/questions.jsonl --boxes bbox --box-frame xywh`
    """
    from darkroom.assets.terminal.summary import print_intake
    from darkroom.pipelines.generation import engine
    from darkroom.pipelines.generation.stage import SAMPLES
    from darkroom.pipelines.sources.catalog import Catalog, check_name, open_source, partition_key

    columns = {"images": image, "videos": video, "question": question, "answer": answer, "choices": choices}
    columns |= {"boxes": boxes, "box_frame": box_frame, "category": category}
    options = {role: column for role, column in columns.items() if column is not None or (role == "images" and video)}
    config = _proposed(path, questions, split, options).model_copy(update={"n_shards": shards, "license": license})
    name = name or _name_of(path)
    with open_workspace() as workspace:
        check_name(name)
        source = open_source(name, config)
        keys = [TableKey(SAMPLES, partition_key(name, shard)) for shard in range(shards)]
        for shard, key in enumerate(keys):
            with CONSOLE.status(f"{key.partition} …"):
                engine.intake(workspace, source, shard, key.partition)
        file = Catalog(workspace.sources).add(name, config)
        if not print_intake(CONSOLE, workspace, keys):
            remedy = f"correct its columns in {file} or by the options of this command, and run it again"
            raise SourceError(f"source {name!r} has no sample: {remedy}")
        _print_added(workspace, name, config, file)


def _name_of(path: Path) -> str:
    return re.sub("[^a-z0-9_]+", "_", path.absolute().name.partition(".")[0].lower()).strip("_")


def _proposed(
    path: Path, questions: Path | None, split: str | None, options: Mapping[str, Any], *, is_shown: bool = True
) -> "SourceConfig":
    """The source that the files suggest, printed, with the columns of ``options``; by their usual names where a folder
    with ``metadata.jsonl`` or a file of questions suggests none."""
    from darkroom.pipelines.sources.catalog import as_yaml
    from darkroom.pipelines.sources.shapes import recognise
    from darkroom.pipelines.sources.source_config import SourceConfig

    lines = str(questions.absolute()) if questions else None
    plain = SourceConfig(kind="jsonl", path=str(path.absolute()), questions=lines)
    try:
        proposal = recognise(questions or path, split=split)
    except SourceError:
        if questions is None and not (path / "metadata.jsonl").is_file():
            raise
        return plain.model_copy(update={"columns": Columns.model_validate(options)})
    config = proposal.config
    if questions is not None:
        moved = {"path": plain.path, "questions": lines, "folder": None} if config.kind == "jsonl" else {}
        config = config.model_copy(update=moved or {"folder": plain.path})
    columns = {**config.columns.model_dump(exclude_defaults=True), **options}
    config = config.model_copy(update={"columns": Columns.model_validate(columns)})
    if is_shown:
        CONSOLE.print(Text(proposal.shape), Text(as_yaml(config), style="dim"), sep="\n", soft_wrap=True)
    return config


def _print_added(workspace: "Workspace", name: str, config: "SourceConfig", path: "StorePath") -> None:
    from darkroom.assets.dagster_home.instance import refresh_dagster

    refresh_dagster(workspace)
    print_line(f"Source: {path}")
    print_line(f"Next:   darkroom {'rl' if config.uses == ('rl',) else 'materialize'} {name}")


def sources_table(public: "SourceConfigs", added: "SourceConfigs", *, width: int = _WIDE) -> Table:
    """Public datasets by name, then the sources of the user. A table of less than 120 columns lacks where they come
    from; below 80 each source has lines of its own, since a table would break words."""
    sources = list(_described(public, added))
    if width < _NARROW:
        grid = Table.grid(Column(overflow="fold"))
        for name, about in sources:
            grid.add_row(Text(name, style="bold"))
            facts = (f"{header}: {about[header]}" for header in _HEADERS if about.get(header))
            grid.add_row(Padding("; ".join(facts), (0, 0, 0, 4)))
        return grid
    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True, min_width=max((len(name) for name, _ in sources), default=0))  # to be copied
    headers = [header for header in _HEADERS if header != "hub" or width >= _WIDE]
    for header in headers:
        table.add_column(header, overflow="fold")
    for name, about in sources:
        table.add_row(name, *(about.get(header, "") for header in headers))
    return table


def _described(public: "SourceConfigs", added: "SourceConfigs") -> Iterator[tuple[str, dict[str, str]]]:
    """Each source by its name, with its facts by header."""
    from darkroom.pipelines.sources.catalog import needs_folder

    for name, config in public.items():
        if (about := config.about) is not None:
            facts = {"hub": about.hub, "rows": about.rows, "questions": about.asks}
            facts |= {"licence": config.license or "not stated", "from": "files" if needs_folder(config) else "hub"}
            yield name, {**facts, "added": "yes" if name in added else ""}
    for name, config in added.items():
        if name not in public:
            facts = {"hub": config.path, "licence": config.license or "not stated"}
            yield name, {**facts, "from": config.kind, "added": "yes"}


def _print_check(checked: "SourceCheck", page: Path) -> None:
    from darkroom.assets.terminal import counts, relative, table
    from darkroom.pipelines.storage.stage_runs import reason_of

    n_samples = len(checked.samples)
    CONSOLE.print(f"{checked.n_rows:,} rows: {n_samples:,} samples, {len(checked.rejects):,} not", highlight=False)
    uses = [(use.role, use.columns, f"{use.n_filled} of {n_samples}", Text(use.example)) for use in checked.columns]
    CONSOLE.print(table(("part", "column", "filled", "first"), uses))
    if checked.notes:
        CONSOLE.print(counts("Worth a look", checked.notes))
    rejects = [(row.source_row, reason_of(row), Text(row.evidence)) for row in checked.rejects[:_N_REJECTS]]
    if rejects:
        CONSOLE.print(table(("row", "reason", "evidence"), rejects))
    families = []
    for use in checked.families:
        others = "; ".join(f"{n}: {reason}" for reason, n in use.reasons.items())
        families.append((use.family, f"{use.n_usable} of {n_samples}", Text(others)))
    CONSOLE.print(table(("family", "rows", "the others"), families))
    CONSOLE.print(f"Page: {relative(page)}", soft_wrap=True, highlight=False)
