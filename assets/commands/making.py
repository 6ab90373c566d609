"""Commands that make datasets: the demo, materialising a source, taking one in."""

from pathlib import Path
from typing import Annotated, get_args

import typer

from assets.commands.faults import CONSOLE, faults_as_messages
from pipelines.sources.catalog import EMBEDDED, EMBEDDED_RL
from pipelines.sources.columns import BoxFrame, Columns

FamilyOption = Annotated[
    list[str] | None, typer.Option("--family", help="Only this family; can be repeated. Default: all.")
]


def demo(
    train: Annotated[bool, typer.Option(help="Train the tiny model on the result.")] = True,
    family: FamilyOption = None,
) -> None:
    """The whole way once: real photographs to verified trajectories, RL prompts, and a trained checkpoint.

    Materialises the asset graph on the embedded sources, with the policy that DARKROOM_POLICY names (default: the
    oracle, which needs no key). What is finished is not done again; a killed run goes on where it was.
    """
    with faults_as_messages():
        from assets.build import materialize_source

        families = _known(family or [])
        rl = "" if families else EMBEDDED_RL
        materialize_source(CONSOLE, EMBEDDED, train=train, families=families, rl=rl)


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
    with faults_as_messages():
        from assets.build import materialize_source

        materialize_source(
            CONSOLE, source, train=train, families=_known(family or []), n_rows=rows, wanted=_quotas(quota or [])
        )


def rl_command(
    source: Annotated[str, typer.Argument(help="Which source: `darkroom sources list`, or one of your own.")],
    rows: Annotated[
        int | None, typer.Option(min=0, help="RL rows in all, balanced over category and difficulty; default: all.")
    ] = None,
    quota: Annotated[
        list[str] | None,
        typer.Option(help="RL rows of one source, or of what people wrote: vstar=3000, annotated=500. Repeatable."),
    ] = None,
) -> None:
    """Select a source's questions for RL, measure them, and ship the RL dataset.

    Candidates with a grader that can tell, checked labels, pass rates of the student (DARKROOM_STUDENT…), tool
    necessity, visual suitability by eight votes; then one dataset of all sources and of what people wrote. Every answer
    is on the ledger: what is finished is not done again, and a killed run goes on where it was. Example:

    `darkroom rl mmk12 --rows 10000`
    """
    with faults_as_messages():
        from assets.rl_build import materialize_rl

        materialize_rl(CONSOLE, source, n_rows=rows, quotas=_rows_by_name(quota or []))


def _rows_by_name(given: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for quota in given:
        name, _, number = quota.partition("=")
        if not name or not number.isdigit():
            raise typer.BadParameter(f"--quota reads SOURCE=ROWS; found {quota!r}")
        found[name] = int(number)
    return found


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


def home() -> None:
    """Make DAGSTER_HOME ready: below DARKROOM_HOME, telemetry off. `make ui` does this first."""
    from assets.home import prepare_dagster_home
    from pipelines.workspace import Workspace

    CONSOLE.print(str(prepare_dagster_home(Workspace.from_environment())), highlight=False, soft_wrap=True)


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

    with faults_as_messages():
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
        ingest_folder(CONSOLE, name or folder.absolute().name.lower().replace("-", "_"), config)
