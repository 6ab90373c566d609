"""The command ``darkroom``."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console
from rich.text import Text

from pipelines.sources.catalog import EMBEDDED
from pipelines.sources.mapping import BoxFrame, Columns

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Builds the datasets that teach vision-language models to think with images.\n\n"
    "Data lies in DARKROOM_HOME (default ./data). Start with `darkroom demo`, then `make ui`.",
)
console = Console()


def _add_sandbox() -> None:
    from sandbox.cli import app as sandbox_app

    app.add_typer(sandbox_app, name="sandbox", help="Run model-written code safely; see what this kernel protects.")


def _add_serving() -> None:
    from pipelines.serving.cli import serve

    app.command(name="serve")(serve)


def _add_layouts() -> None:
    from pipelines.layouts.cli import export

    app.command(name="export")(export)


def _add_annotation() -> None:
    from annotation.cli import app as annotation_app

    app.add_typer(annotation_app, name="annotate")


_add_sandbox()
_add_serving()
_add_layouts()
_add_annotation()


@contextmanager
def _faults_as_messages() -> Iterator[None]:
    """What a user can mend is said in one paragraph and ends with status 1; anything else keeps its traceback."""
    from assets.materialize import MaterializationFailed
    from pipelines.explain import RowAmbiguous, RowUnknown
    from pipelines.ledger import LedgerUnavailable
    from pipelines.policies import PolicyUnavailable
    from pipelines.prompts import PromptFault
    from pipelines.recipes import RecipeFault
    from pipelines.sources import SourceFault
    from pipelines.tables import TableMissing, TableStale
    from sandbox import SandboxUnavailable

    try:
        yield
    except (
        LedgerUnavailable,
        MaterializationFailed,
        PolicyUnavailable,
        PromptFault,
        RecipeFault,
        RowAmbiguous,
        RowUnknown,
        SandboxUnavailable,
        SourceFault,
        TableMissing,
        TableStale,
    ) as fault:
        Console(stderr=True).print(Text.assemble(("error: ", "bold red"), str(fault)))
        raise typer.Exit(1) from fault


FamilyOption = Annotated[
    list[str] | None, typer.Option("--family", help="Only this family; can be repeated. Default: all.")
]


@app.command()
def demo(
    train: Annotated[bool, typer.Option(help="Train the tiny model on the result.")] = True,
    family: FamilyOption = None,
) -> None:
    """The whole way once: real photographs to verified trajectories to a trained checkpoint.

    Materialises the asset graph on the embedded source, with the policy that DARKROOM_POLICY names (default: the
    oracle, which needs no key). What is finished is not done again; a killed run goes on where it was.
    """
    with _faults_as_messages():
        from assets.build import materialize_source

        materialize_source(console, EMBEDDED, train=train, families=_known(family or []))


@app.command(name="materialize")
def materialize_command(
    source: Annotated[str, typer.Argument(help="Which source; `darkroom ingest` names it.")],
    train: Annotated[bool, typer.Option(help="Train on the datasets afterwards.")] = False,
    family: FamilyOption = None,
    rows: Annotated[
        int | None, typer.Option(min=0, help="Accepted rows in all, in the published mixture; default: all there are.")
    ] = None,
    quota: Annotated[
        list[str] | None, typer.Option(help="Accepted rows of one family: crop=200. Can be repeated.")
    ] = None,
) -> None:
    """Materialise every family on a source, and ship the datasets.

    The same runs as in the UI, on the same instance. What is finished is not done again. With --rows or --quota a
    family stops asking its policy when it has its rows; a larger number later pays for the difference alone. Example:

    `darkroom materialize photos --rows 5000 --quota crop=1000`
    """
    with _faults_as_messages():
        from assets.build import materialize_source

        materialize_source(
            console, source, train=train, families=_known(family or []), n_rows=rows, wanted=_quotas(quota or [])
        )


def _known(families: list[str]) -> list[str]:
    from pipelines.recipes import load_recipes

    known = load_recipes()
    for family in families:
        if family not in known:
            raise typer.BadParameter(f"there is no family {family!r}; there are {', '.join(known)}")
    return families


def _quotas(given: list[str]) -> dict[str, int]:
    from pipelines.recipes import load_recipes

    families = load_recipes()
    found: dict[str, int] = {}
    for quota in given:
        family, _, number = quota.partition("=")
        if family not in families or not number.isdigit():
            raise typer.BadParameter(f"--quota reads FAMILY=ROWS with one of {', '.join(families)}; found {quota!r}")
        found[family] = int(number)
    return found


@app.command()
def home() -> None:
    """Make DAGSTER_HOME ready: below DARKROOM_HOME, telemetry off. `make ui` does this first."""
    from assets.home import prepare_dagster_home
    from pipelines.workspace import Workspace

    console.print(str(prepare_dagster_home(Workspace.from_environment())), highlight=False, soft_wrap=True)


@app.command()
def summary() -> None:
    """Rows per asset, what was taken out and why, loss curves, cost: what is in DARKROOM_HOME now."""
    from assets.summary import print_summary
    from pipelines.recipes import load_recipes
    from pipelines.sources import Catalog
    from pipelines.workspace import Workspace

    with _faults_as_messages(), Workspace.from_environment() as workspace:
        partitions = list(Catalog(workspace.sources).partitions())
        print_summary(console, workspace, list(load_recipes().values()), partitions, None)


@app.command()
def ingest(
    folder: Annotated[Path, typer.Argument(help="Folder with the images or videos.", exists=True, file_okay=False)],
    questions: Annotated[
        Path | None, typer.Option(help="JSON lines, one question each; default: FOLDER/metadata.jsonl.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the source; default: the folder's name.")] = None,
    image: Annotated[
        str | None,
        typer.Option(
            help="Column with the image's path (or a list), relative to FOLDER; default: image, none with --videos."
        ),
    ] = None,
    videos: Annotated[
        str | None, typer.Option(help="Column with the video's path (or a list), relative to FOLDER.")
    ] = None,
    question: Annotated[str, typer.Option(help="Column with the question.")] = "question",
    answer: Annotated[str, typer.Option(help="Column with the answer.")] = "answer",
    choices: Annotated[str | None, typer.Option(help="Column with the list of choices, if there is one.")] = None,
    boxes: Annotated[str | None, typer.Option(help="Column with the target's box or boxes, if there is one.")] = None,
    box_frame: Annotated[str, typer.Option(help=f"How boxes are given: {', '.join(get_args(BoxFrame))}.")] = "corners",
    category: Annotated[str | None, typer.Option(help="Column with the category, if there is one.")] = None,
    license: Annotated[str, typer.Option(help="Licence of the images and questions, for the card.")] = "",
    shards: Annotated[int, typer.Option(min=1, help="Shards, each a partition in Dagster.")] = 1,
) -> None:
    """Take your own images or videos, and questions about them, in as a source.

    Every row becomes a sample, or is set aside with its file, line and reason; nothing stops the run. Example:

    `darkroom ingest photos --questions photos/questions.jsonl --boxes bbox --box-frame xywh`
    """
    from assets.ingestion import ingest_folder
    from pipelines.sources import SourceConfig, SourceFault

    with _faults_as_messages():
        if box_frame not in get_args(BoxFrame):
            raise SourceFault(f"--box-frame is one of {', '.join(get_args(BoxFrame))}; found {box_frame!r}")
        columns = Columns(
            images=image or (None if videos else "image"),
            videos=videos,
            question=question,
            answer=answer,
            choices=choices,
            boxes=boxes,
            box_frame=box_frame,  # type: ignore[arg-type]  # checked above
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
        ingest_folder(console, name or folder.absolute().name.lower().replace("-", "_"), config)


_Dataset = Annotated[str, typer.Argument(help="A family, `all`, or a folder with a dataset (or with several).")]


@app.command()
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

    with _faults_as_messages(), Workspace.from_environment() as workspace:
        taken = None
        folders = find_datasets(dataset, workspace.home / "datasets" / "sft", may_be_empty=rejects)
        if rejects:
            families = None if dataset == ALL else [folder.name for folder in folders] or [dataset]
            taken = Taken(read_taken_out(workspace.tables, families), workspace.images)
        path = out or workspace.home / "views" / f"{Path(dataset).name or 'gallery'}.html"
        with progress_bar(console, "rows") as progress:
            made = write_gallery(path, folders, title=Path(dataset).name, taken=taken, limit=limit, progress=progress)
        aside = f", {made.n_rejects:,} rejects" if rejects else ""
        console.print(f"{made.n_rows:,} trajectories{aside}: {path.absolute()}", highlight=False, soft_wrap=True)
        if made.folder is not None:
            console.print(f"its pictures: {made.folder.absolute()}", highlight=False, soft_wrap=True)


@app.command()
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

    with _faults_as_messages():
        folders = find_datasets(dataset, Workspace.from_environment().home / "datasets" / "sft")
        with progress_bar(console, "rows") as progress:
            found = replay_datasets(folders, limit=limit, progress=progress)
        print_replay(console, found)
        if found.rate < least:
            raise typer.Exit(1)


@app.command()
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

    with _faults_as_messages(), Workspace.from_environment() as workspace:
        try:
            found = explain_row(workspace, row)
        except RowAmbiguous as fault:
            print_candidates(console, fault)
            raise
        if as_json:
            typer.echo(json.dumps(asdict(found), indent=2, sort_keys=True))
        else:
            print_explanation(console, found)
