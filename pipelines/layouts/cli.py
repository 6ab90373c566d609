"""`darkroom export`: a shipped dataset, rendered for other trainers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from pipelines.layouts.base import Layout
    from pipelines.layouts.exporting import Exported


def export(
    dataset: Annotated[str, typer.Argument(help="A family, `all` of them, `rl`, or the folder of a shipped dataset.")],
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

    DATASET is a family, `all` of them, `rl`, or the folder of a shipped dataset. For trajectories LAYOUT is one of

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
    from pipelines.layouts import layout_of
    from pipelines.layouts.exporting import export as write
    from pipelines.layouts.shipped import find
    from pipelines.workspace import Workspace

    with _faults_as_messages(), Workspace.from_environment() as workspace:
        prompts = workspace.dataset("rl", "prompts")
        found = find(dataset, workspace.home / "datasets" / "sft", split=split, prompts=prompts)
        found = found.asked(protocol, mode)
        chosen = layout_of(layout, found.kind)
        folder = out or workspace.home / "exports" / layout / found.folder_name
        _print(write(found, chosen, folder), chosen)


@contextmanager
def _faults_as_messages() -> Iterator[None]:
    from pipelines.layouts import LayoutFault

    try:
        yield
    except LayoutFault as fault:
        Console(stderr=True).print(Text.assemble(("error: ", "bold red"), str(fault)), soft_wrap=True)
        raise typer.Exit(1) from fault


def _print(made: Exported, layout: Layout) -> None:
    """The summary. Ends with status 1 when no row could be rendered."""
    console = Console(highlight=False, soft_wrap=True)
    n_rejected = sum(made.reasons.values())
    there = ", as it was" if made.reused else ""
    console.print(
        f"{made.n_rows} rows, {made.n_images} images, {n_rejected} set aside: {made.folder.absolute()}{there}"
    )
    for reason, n in sorted(made.reasons.items()):
        console.print(f"  {reason}: {n}")
    if "images_unsupported" in made.reasons:
        console.print(f"{layout.name} takes texts only: {made.reasons['images_unsupported']} rows have images.")
    if not made.n_rows:
        Console(stderr=True).print(Text.assemble(("error: ", "bold red"), "no row of it fits this layout"))
        raise typer.Exit(1)
    console.print(f"How {layout.trainer} is told to use it: {made.folder.absolute() / 'README.md'}")
