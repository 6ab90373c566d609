"""``darkroom export`` and ``publish``: shipped datasets, for other trainers and on the Hugging Face hub."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from click import Choice

from darkroom.assets.commands import datasets, layouts
from darkroom.pipelines.command_line.console import AsJson, open_workspace, print_json, print_line
from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.publishing.dataset_reader import find_datasets
from darkroom.pipelines.publishing.layouts import LayoutError, layout_of
from darkroom.pipelines.publishing.layouts.export_source import find_source
from darkroom.sandbox.errors import UserError

if TYPE_CHECKING:
    from darkroom.pipelines.publishing.hub import HubDataset
    from darkroom.pipelines.storage.workspace import Workspace


def export(
    dataset: Annotated[str, typer.Argument(help="A family, `all`, `rl` or a dataset folder.", autocompletion=datasets)],
    layout: Annotated[str, typer.Option(metavar="LAYOUT", help="One of the trainers above.", autocompletion=layouts)],
    out: Annotated[
        Path | None,
        typer.Option(help="The folder to write; default: DARKROOM_HOME/exports/LAYOUT/DATASET.", file_okay=False),
    ] = None,
    split: Annotated[str, typer.Option(help="Which split of the dataset.")] = "train",
    protocol: Annotated[
        str | None,
        typer.Option(click_type=Choice(list(PROTOCOLS)), help="For `rl`: how prompts are asked; default: thyme."),
    ] = None,
    mode: Annotated[
        Literal["free", "forced", "forbidden"] | None, typer.Option(help="For `rl`: where the protocol has it.")
    ] = None,
    as_json: AsJson = False,
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
    from darkroom.pipelines.publishing.layouts.exporter import export as write
    from darkroom.pipelines.publishing.rl_dataset import RL_PROMPTS

    with open_workspace() as workspace:
        shipped, prompts = workspace.home / "datasets" / "sft", workspace.dataset(*RL_PROMPTS)
        source = find_source(dataset, shipped, split=split, prompts=prompts).in_protocol(protocol, mode)
        trainer_layout = layout_of(layout, source.kind)
        folder = out or workspace.local / "exports" / layout / source.folder_name
        exported = write(source, trainer_layout, folder)
        if as_json:
            print_json(asdict(exported))
        else:
            unchanged, where = ", unchanged" if exported.reused else "", exported.folder.absolute()
            rejected = f"{sum(exported.reasons.values())} rejected"
            print_line(f"{exported.n_rows} rows, {exported.n_images} images, {rejected}: {where}{unchanged}")
            print_line(f"manifest {exported.manifest}")
            for reason, n in sorted(exported.reasons.items()):
                print_line(f"  {reason}: {n}")
            if n_with := exported.reasons.get("images_unsupported"):
                print_line(f"{trainer_layout.name} takes texts only: {n_with} rows have images.")
        if not exported.n_rows:
            raise LayoutError("no row of it fits this layout")
        if not as_json:
            print_line(f"How to use it with {trainer_layout.trainer}: {folder.absolute() / 'README.md'}")


def publish(
    dataset: Annotated[str, typer.Argument(help="A family, `rl`, or a dataset's folder.", autocompletion=datasets)],
    repository: Annotated[str, typer.Argument(help="Where on the hub, as OWNER/NAME; made if it is not there.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List files and check the card; send nothing.")] = False,
    private: Annotated[bool, typer.Option("--private", help="Make the repository private, if it is made.")] = False,
) -> None:
    """Upload a shipped dataset to the Hugging Face hub: its card and its parquet files, in one commit.

    Before, the card is checked against the files; what does not hold is printed, and nothing is sent. The hub
    then checks the card's YAML by its own rules. Data files of an earlier version are deleted by the same commit. The
    token is that of `hf auth login`, or HF_TOKEN; HF_ENDPOINT names another hub.

    `darkroom publish crop ann/street-crops --dry-run`
    """
    from darkroom.pipelines.publishing.hub import check_repository

    check_repository(repository)
    with open_workspace() as workspace:
        shipped = _dataset(workspace, dataset)
        for name, size in shipped.files().items():
            print_line(f"{size:>15,}  {name}")
        problems = shipped.problems()
        for problem in problems:
            print_line(f"problem: {problem}")
        if problems:
            raise UserError(f"{dataset} is not fit for the hub: see above")
        counts = ", ".join(f"{split} {n_rows:,} rows" for split, n_rows in shipped.rows().items())
        print_line(f"{counts}; the card holds; manifest {shipped.digest}")
        if dry_run:
            print_line(f"Nothing was sent. Without --dry-run it goes to {repository}")
        else:
            print_line(shipped.upload(repository, private=private))


def _dataset(workspace: Workspace, name: str) -> HubDataset:
    """Raises ``TableMissing`` where there is none, ``UserError`` for several."""
    from darkroom.pipelines.publishing.hub import HubDataset

    if name == "rl":
        return HubDataset(workspace.local_datasets("rl", "prompts"))
    folders = find_datasets(name, workspace.home / "datasets" / "sft")
    if len(folders) > 1:
        raise UserError(f"{name} holds {len(folders)} datasets; a repository takes one: name a family")
    [folder] = folders
    return HubDataset(folder if isinstance(folder, Path) else workspace.local_datasets("sft", folder.name))
