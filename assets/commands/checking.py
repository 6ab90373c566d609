"""Commands that look at a dataset as a model to be trained reads it."""

from pathlib import Path
from typing import Annotated

import typer

from assets.commands.faults import CONSOLE
from train.conversations import Layout

_Dataset = Annotated[str, typer.Argument(help="A family, `all`, or a folder with a dataset (or with several).")]
_Model = Annotated[Path, typer.Option(help="Folder of the model that is to be trained.")]
_Layout = Annotated[Layout, typer.Option(help="turns: observations as user turns. inline: inside the answer.")]
_MinPixels = Annotated[int | None, typer.Option(min=784, help="As `python -m train.sft` has it.")]
_MaxPixels = Annotated[int | None, typer.Option(min=784, help="As `python -m train.sft` has it.")]


def inspect_mask(
    dataset: _Dataset,
    model: _Model,
    row: Annotated[int, typer.Option(help="Which row, from 0.")] = 0,
    layout: _Layout = "turns",
    min_pixels: _MinPixels = None,
    max_pixels: _MaxPixels = None,
    train_observations: Annotated[
        bool, typer.Option("--train-observations", help="As in the ablation of `python -m train.sft`.")
    ] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page with the row's pictures instead.")] = None,
) -> None:
    """Which tokens of a row are trained (green) and which are not (dim), as the training program reads it.

    `darkroom inspect-mask crop --model data/checkpoints/tiny --row 3`
    """
    from train.masks import mask_of, row_at, show
    from train.program import guarded
    from train.reading import open_reader

    with guarded():
        reader = open_reader(
            model,
            layout=layout,
            min_pixels=min_pixels,
            max_pixels=max_pixels,
            train_observations=train_observations,
        )
        show(mask_of(row_at(_folders(dataset), row), reader, model), html)


def conformance(
    dataset: _Dataset,
    model: _Model,
    report: Annotated[
        Path | None, typer.Option(help="Write every row's verdict there: .jsonl (JSON lines) or .parquet.")
    ] = None,
    layout: _Layout = "turns",
    min_pixels: _MinPixels = None,
    max_pixels: _MaxPixels = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="The longest row that is let in; default: what the model reads.")
    ] = None,
) -> None:
    """Check every row of a dataset as the gate before training does; the status is 1 when one does not conform.

    Image tokens equal the images, tool-turn images survive the chat template, no observation is trained, nothing is cut
    off, placeholders match. The verdicts are kept in DARKROOM_HOME/conformance: the same rows are not checked twice.

    `darkroom conformance all --model data/checkpoints/tiny --report rows.jsonl`
    """
    from assets.replaying import progress_bar
    from pipelines.workspace import Workspace
    from train.program import guarded

    with guarded():
        from train.conformance import Gate, examine, refusal, summary
        from train.conformance.report import copy_report
        from train.models import context_length
        from train.reading import open_reader

        reader = open_reader(model, layout=layout, min_pixels=min_pixels, max_pixels=max_pixels)
        gate = Gate(_folders(dataset), model, reader, max_tokens or context_length(model))
        reports = Workspace.from_environment().home / "conformance"
        with progress_bar(CONSOLE, "rows") as progress:
            found = examine(gate, reports, progress=progress)
        CONSOLE.print(summary(found), highlight=False, soft_wrap=True)
        if report is not None:
            copy_report(found, report)
            CONSOLE.print(f"every row with its verdict: {report.absolute()}", highlight=False, soft_wrap=True)
        if found.n_refused:
            typer.secho(refusal(found), fg="red", err=True)
            raise typer.Exit(1)


def _folders(dataset: str) -> list[Path]:
    """The folders that a name stands for. Raises ``TrainFault`` when there are none."""
    from pipelines.shipped import find_datasets
    from pipelines.tables import TableMissing
    from pipelines.workspace import Workspace
    from train.faults import TrainFault

    try:
        return find_datasets(dataset, Workspace.from_environment().home / "datasets" / "sft")
    except TableMissing as fault:
        raise TrainFault(str(fault)) from fault
