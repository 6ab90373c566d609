"""The command ``darkroom``."""

from collections.abc import Iterator
from contextlib import contextmanager
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


_add_sandbox()
_add_serving()
_add_layouts()


@contextmanager
def _faults_as_messages() -> Iterator[None]:
    """What a user can mend is said in one paragraph and ends with status 1; anything else keeps its traceback."""
    from assets.materialize import MaterializationFailed
    from pipelines.ledger import LedgerUnavailable
    from pipelines.policies import PolicyUnavailable
    from pipelines.prompts import PromptFault
    from pipelines.recipes import RecipeFault
    from pipelines.sources import SourceFault
    from pipelines.tables import TableMissing, TableStale

    try:
        yield
    except (
        LedgerUnavailable,
        MaterializationFailed,
        PolicyUnavailable,
        PromptFault,
        RecipeFault,
        SourceFault,
        TableMissing,
        TableStale,
    ) as fault:
        Console(stderr=True).print(Text.assemble(("error: ", "bold red"), str(fault)))
        raise typer.Exit(1) from fault


@app.command()
def demo(
    train: Annotated[bool, typer.Option(help="Train the tiny model on the result.")] = True,
) -> None:
    """The whole way once: real photographs to verified trajectories to a trained checkpoint.

    Materialises the asset graph on the embedded source, with the policy that DARKROOM_POLICY names (default: the
    oracle, which needs no key). What is finished is not done again; a killed run goes on where it was.
    """
    with _faults_as_messages():
        from assets.build import materialize_source

        materialize_source(console, EMBEDDED, train=train)


@app.command(name="materialize")
def materialize_command(
    source: Annotated[str, typer.Argument(help="Which source; `darkroom ingest` names it.")],
    train: Annotated[bool, typer.Option(help="Train on the datasets afterwards.")] = False,
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

        materialize_source(console, source, train=train, n_rows=rows, wanted=_quotas(quota or []))


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
    folder: Annotated[Path, typer.Argument(help="Folder with the images.", exists=True, file_okay=False)],
    questions: Annotated[
        Path | None, typer.Option(help="JSON lines, one question each; default: FOLDER/metadata.jsonl.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the source; default: the folder's name.")] = None,
    image: Annotated[str, typer.Option(help="Column with the image's path (or a list), relative to FOLDER.")] = "image",
    question: Annotated[str, typer.Option(help="Column with the question.")] = "question",
    answer: Annotated[str, typer.Option(help="Column with the answer.")] = "answer",
    choices: Annotated[str | None, typer.Option(help="Column with the list of choices, if there is one.")] = None,
    boxes: Annotated[str | None, typer.Option(help="Column with the target's box or boxes, if there is one.")] = None,
    box_frame: Annotated[str, typer.Option(help=f"How boxes are given: {', '.join(get_args(BoxFrame))}.")] = "corners",
    category: Annotated[str | None, typer.Option(help="Column with the category, if there is one.")] = None,
    license: Annotated[str, typer.Option(help="Licence of the images and questions, for the card.")] = "",
    shards: Annotated[int, typer.Option(min=1, help="Shards, each a partition in Dagster.")] = 1,
) -> None:
    """Take your own images and questions in as a source.

    Every row becomes a sample, or is set aside with its file, line and reason; nothing stops the run. Example:

    `darkroom ingest photos --questions photos/questions.jsonl --boxes bbox --box-frame xywh`
    """
    from assets.ingestion import ingest_folder
    from pipelines.sources import SourceConfig, SourceFault

    with _faults_as_messages():
        if box_frame not in get_args(BoxFrame):
            raise SourceFault(f"--box-frame is one of {', '.join(get_args(BoxFrame))}; found {box_frame!r}")
        columns = Columns(
            images=image,
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


@app.command()
def view(
    family: Annotated[str, typer.Argument(help="Which family's trajectories.")] = "crop",
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 20,
    out: Annotated[Path | None, typer.Option(help="The page; default: DARKROOM_HOME/views/<family>.html.")] = None,
) -> None:
    """Trajectories as one self-contained page: image, thought, code, what the sandbox showed, answer, checks."""
    from pipelines.tables import TableKey
    from pipelines.viewer import write_page
    from pipelines.workspace import Workspace

    with _faults_as_messages(), Workspace.from_environment() as workspace:
        path = out or workspace.home / "views" / f"{family}.html"
        n = write_page(path, workspace.dataset("sft", family), limit=limit, key=TableKey(("sft_dataset",), family))
        console.print(f"{n} trajectories: {path.absolute()}", highlight=False, soft_wrap=True)
