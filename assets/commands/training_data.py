"""``darkroom inspect-mask``, ``conformance`` and ``export``: a dataset as the model to be trained reads it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from darkroom.assets.terminal.progress import progress_bar
from darkroom.pipelines.command_line.console import CONSOLE, open_workspace, print_line
from darkroom.pipelines.records.trajectories import LossPolicy
from darkroom.train.examples.encoding import Layout

if TYPE_CHECKING:
    from darkroom.pipelines.publishing.layouts import Layout as ExportLayout
    from darkroom.pipelines.publishing.layouts.exporter import Exported

_Dataset = Annotated[str, typer.Argument(help="A family, `all`, or a folder with one or several datasets.")]
_Model = Annotated[Path, typer.Option(help="Folder of the model to be trained.")]
_Layout = Annotated[Layout, typer.Option(help="turns: observations as user turns. inline: inside the answer.")]
_Pixels = Annotated[int | None, typer.Option(min=784, help="As in `darkroom train sft`.")]


def inspect_mask(
    dataset: _Dataset,
    model: _Model,
    row: Annotated[int, typer.Option(min=0, help="Index of the row, from 0.")] = 0,
    layout: _Layout = "turns",
    min_pixels: _Pixels = None,
    max_pixels: _Pixels = None,
    train_observations: Annotated[
        bool,
        typer.Option("--train-observations", help="Train on observations too (ablation of `darkroom train sft`)."),
    ] = False,
    loss_policy: Annotated[LossPolicy | None, typer.Option(help="Ablation: instead of what the row says.")] = None,
    without_comments: Annotated[
        bool, typer.Option("--without-comments", help="Ablation: code is read without its comments.")
    ] = False,
    html: Annotated[Path | None, typer.Option(help="Write an HTML page with the row's images instead.")] = None,
) -> None:
    """Show which tokens of a row are trained (green) and which are masked (dim), as `darkroom train sft` encodes it.

    `darkroom inspect-mask crop --model data/checkpoints/tiny --row 3`
    """
    from darkroom.train.examples.encoding import open_reader
    from darkroom.train.examples.loss_mask import mask_of, row_at, show
    from darkroom.train.runs.command_line import guarded

    with guarded():
        shown = row_at(_folders(dataset), row)  # before the model's libraries are imported, which takes seconds
        reader = open_reader(
            model,
            layout=layout,
            min_pixels=min_pixels,
            max_pixels=max_pixels,
            train_observations=train_observations,
            loss_policy=loss_policy,
            without_comments=without_comments,
        )
        show(mask_of(shown, reader, model), html)


def conformance(
    dataset: _Dataset,
    model: _Model,
    report: Annotated[
        Path | None, typer.Option(help="Write every row's verdict to this file: .jsonl (JSON lines) or .parquet.")
    ] = None,
    layout: _Layout = "turns",
    min_pixels: _Pixels = None,
    max_pixels: _Pixels = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Maximum tokens of a row; default: the model's context length.")
    ] = None,
) -> None:
    """Check every row of a dataset like the gate before training; the exit status is 1 if one does not conform.

    Image tokens match the images, images of tool turns survive the chat template, no observation is trained, nothing is
    truncated, placeholders match. Verdicts are cached in DARKROOM_HOME/conformance: unchanged rows are not checked
    again.

    After the demo, whose tiny model joins line breaks and words, so that rows of other families do not conform:

    `darkroom conformance direct --model data/checkpoints/tiny --report rows.jsonl`
    """
    from darkroom.pipelines.storage.workspace import Workspace
    from darkroom.train.runs.command_line import guarded

    if report is not None and report.suffix not in (".jsonl", ".parquet"):
        raise typer.BadParameter(f"--report writes .jsonl or .parquet; found {str(report)!r}")
    with guarded():
        from darkroom.train.examples.conformance import ConformanceGate, examine, explanation, summary
        from darkroom.train.examples.conformance.report import copy_report
        from darkroom.train.examples.encoding import open_reader
        from darkroom.train.models.loading import context_length

        reader = open_reader(model, layout=layout, min_pixels=min_pixels, max_pixels=max_pixels)
        gate = ConformanceGate(_folders(dataset), model, reader, max_tokens or context_length(model))
        reports = Workspace.from_environment().local / "conformance"
        with progress_bar("rows") as progress:
            verdicts = examine(gate, reports, progress=progress)
        CONSOLE.print(summary(verdicts), highlight=False, soft_wrap=True)
        if report is not None:
            copy_report(verdicts, report)
            print_line(f"verdicts of all rows: {report.absolute()}")
        if verdicts.n_refused:
            typer.secho(explanation(verdicts), fg="red", err=True)
            raise typer.Exit(1)


def _folders(dataset: str) -> list[Path]:
    from darkroom.pipelines.publishing.dataset_reader import find_trajectories
    from darkroom.pipelines.storage.atomic_write import local_copy
    from darkroom.pipelines.storage.workspace import Workspace

    with Workspace.from_environment() as workspace:
        folders = find_trajectories(dataset, workspace.home / "datasets" / "sft")
        copies = workspace.local / "datasets"
        return [local_copy(folder, copies / folder.parent.name / folder.name) for folder in folders]


def export(
    dataset: Annotated[str, typer.Argument(help="A family, `all`, `rl`, or the folder of a shipped dataset.")],
    layout: Annotated[str, typer.Option(help="For which trainer; the list is above.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The folder to write; default: DARKROOM_HOME/exports/LAYOUT/DATASET.", file_okay=False),
    ] = None,
    split: Annotated[str, typer.Option(help="Which split of the dataset.")] = "train",
    protocol: Annotated[
        str | None, typer.Option(help="For `rl`: how prompts are asked, thyme, pyvision or tool_call; default: thyme.")
    ] = None,
    mode: Annotated[
        str | None, typer.Option(help="For `rl`: free, forced or forbidden, where the protocol has it.")
    ] = None,
) -> None:
    """Render a shipped dataset for another trainer, every row verified.

    DATASET is a family, `all`, `rl`, or a folder of a shipped dataset. For trajectories LAYOUT is one of

    - `trl_turns`, `trl_inline`: TRL; parquet with loss flags, and the chat template that reads them
    - `llama_factory`: LLaMA-Factory; sharegpt with dataset_info.json
    - `ms_swift`, `ms_swift_inline`: ms-swift; a loss flag on every message
    - `verl_sft`, `verl_rl`: verl; parquet with images inside
    - `openrlhf_rl`, `openrlhf_sft`: OpenRLHF; its SFT takes texts only

    and for `rl`, whose prompts come with their graders and a reward function, one of

    - `trl_grpo`, `verl_rl`, `ms_swift_grpo`, `easyr1`, `openrlhf_rl`

    The folder's README.md says which configuration to use and what the trainer cannot express. A row that the layout
    cannot hold is in rejects.jsonl, with its reason. The folder appears whole; the same rows again do nothing.

    Examples:

    `darkroom export crop --layout llama_factory --out crop_for_llama_factory`

    `darkroom export all --layout verl_rl`

    `darkroom export rl --layout trl_grpo --protocol pyvision`
    """
    from darkroom.pipelines.publishing.layouts import LayoutError, layout_of
    from darkroom.pipelines.publishing.layouts.export_source import find_source
    from darkroom.pipelines.publishing.layouts.exporter import export as write
    from darkroom.pipelines.publishing.rl_dataset import RL_PROMPTS

    with open_workspace() as workspace:
        source = find_source(
            dataset, workspace.home / "datasets" / "sft", split=split, prompts=workspace.dataset(*RL_PROMPTS)
        )
        source = source.in_protocol(protocol, mode)
        trainer_layout = layout_of(layout, source.kind)
        folder = out or workspace.local / "exports" / layout / source.folder_name
        exported = write(source, trainer_layout, folder)
        _print_export(exported, trainer_layout)
        if not exported.n_rows:
            raise LayoutError("no row of it fits this layout")
        print_line(f"How to use it with {trainer_layout.trainer}: {folder.absolute() / 'README.md'}")


def _print_export(exported: Exported, layout: ExportLayout) -> None:
    n_rejected, folder = sum(exported.reasons.values()), exported.folder.absolute()
    unchanged = ", unchanged" if exported.reused else ""
    print_line(f"{exported.n_rows} rows, {exported.n_images} images, {n_rejected} rejected: {folder}{unchanged}")
    for reason, n in sorted(exported.reasons.items()):
        print_line(f"  {reason}: {n}")
    if "images_unsupported" in exported.reasons:
        print_line(f"{layout.name} takes texts only: {exported.reasons['images_unsupported']} rows have images.")
