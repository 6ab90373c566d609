"""``darkroom audit``: whether a dataset holds what it says."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from darkroom.assets.commands import datasets
from darkroom.assets.commands.training import local_trajectories
from darkroom.assets.terminal import progress_bar
from darkroom.pipelines.command_line.console import CONSOLE, AsJson, open_workspace, print_json, print_line
from darkroom.pipelines.command_line.errors import describe
from darkroom.pipelines.publishing.dataset_reader import ALL, dataset_files, find_datasets
from darkroom.pipelines.publishing.layouts.export_source import shipped_folders
from darkroom.sandbox.errors import UserError, raised_as
from darkroom.train.examples.encoding import Layout, open_reader
from darkroom.train.models.loading import context_length
from darkroom.train.runs.command_line import guarded

if TYPE_CHECKING:
    from darkroom.pipelines.inspection.audit import AuditReport, Encode, Part
    from darkroom.pipelines.storage.stage_runs import Progress
    from darkroom.pipelines.storage.store_paths import StorePath
    from darkroom.pipelines.storage.workspace import Workspace

_PARTS = ("replay", "checks", "counts", "encoding")
_Pixels = Annotated[int | None, typer.Option(min=784, help="With --model: as in `darkroom train sft`.")]


class _AuditImpossible(UserError):
    """Nothing could be audited; status 1 is for findings."""

    exit_status = 2


def audit(
    dataset: Annotated[str, typer.Argument(help="A family, `all`, `rl` or a dataset folder.", autocompletion=datasets)],
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART",
            help="replay, checks, counts or encoding; repeatable. Default: all, encoding only with --model.",
            autocompletion=lambda incomplete: [part for part in _PARTS if part.startswith(incomplete)],
        ),
    ] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Most rows per file; leaves out the card's counts.")] = None,
    min_match: Annotated[
        float, typer.Option(min=0, max=1, help="With --only replay: status 1 only below this share of equal rows.")
    ] = 1.0,
    digest: Annotated[str | None, typer.Option(help="Compare it with what `darkroom publish` printed.")] = None,
    mapping: Annotated[str | None, typer.Option(help="For a released file: a public source or a YAML mapping.")] = None,
    model: Annotated[Path | None, typer.Option(help="The model to be trained: check how it reads every row.")] = None,
    layout: Annotated[Layout, typer.Option(help="With --model: observations as turns, or inline.")] = "turns",
    min_pixels: _Pixels = None,
    max_pixels: _Pixels = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="With --model: maximum tokens of a row; default: the model's context length."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="With --model: a file for verdicts, .jsonl or .parquet.")] = None,
    as_json: AsJson = False,
) -> None:
    """Execute, measure and count everything in a dataset again, and list what is not as it says.

    - `replay`: code is executed in the sandbox, each row in a fresh session with its images and seed; status, text,
      error and every pixel are compared. Needs only the dataset: no ledger, no image store.
    - `checks`: each check of the row's family is done again: crops show their target, turned images are upright,
      contrast rose, no privileged fact leaks. What needs the truth about a sample (its box, its angle) is measured
      where this workspace made the dataset, and reported as not measured elsewhere.
    - `counts`: votes, rates and the card's figures are counted from the rows.
    - `encoding`: how the model in `--model` reads every row, as the gate before training: image tokens match the
      images, images of tool turns survive the chat template, no observation is trained, nothing is truncated. Verdicts
      are cached in DARKROOM_HOME/conformance.

    DATASET may also be the folder of an export (`darkroom export`; executed are those for LLaMA-Factory and ms-swift),
    or, with `--mapping`, a released trajectory file.

    Every finding says whether the dataset was made so or changed after it was shipped, by the file MANIFEST.

    The exit status is 0 without a finding, 1 with findings, 2 where nothing could be audited.

    `darkroom audit all --json`

    `darkroom audit crop --only replay --rows 100`

    `darkroom audit direct --only encoding --model data/checkpoints/tiny --out rows.jsonl`
    """
    parts = _parts(only, model, out, min_match, digest, bool(mapping))
    read_as = {"layout": layout, "min_pixels": min_pixels, "max_pixels": max_pixels}
    encode = None if model is None else _encoder(dataset, model, out, max_tokens, **read_as)
    from darkroom.pipelines.inspection.audit import audit as audit_datasets, find_conversations

    with (
        raised_as(lambda error: _AuditImpossible(describe(error)[0]), UserError, OSError),
        open_workspace() as workspace,
    ):
        conversations = find_conversations(Path(dataset), mapping)
        folders: Sequence[StorePath] = [Path(dataset)] if conversations else _folders(dataset, workspace)
        if digest is not None and len(folders) > 1:
            raise typer.BadParameter(f"--digest is of one dataset; {dataset} holds {len(folders)}")
        with progress_bar("rows") as progress:
            perform = partial(audit_datasets, parts=parts, workspace=workspace, encode=encode, digest=digest)
            report = perform(conversations or folders, limit=rows, progress=progress)
    if as_json:
        print_json(report.as_json())
    else:
        from darkroom.assets.terminal.reports import print_audit

        print_audit(CONSOLE, report)
        if report.n_replayed:
            print_line(f"{report.rate:.2%} of the rows gave the same observations when executed again")
        print_line(f"audited: {', '.join(map(str, folders))}")
        if out is not None:
            print_line(f"verdicts of all rows: {out.absolute()}")
    if report.rate < min_match if parts == ["replay"] else report.n_findings:
        raise typer.Exit(1)


def _parts(
    only: list[str] | None, model: Path | None, out: Path | None, min_match: float, digest: str | None, mapped: bool
) -> list[Part] | None:
    """The chosen parts, None for all. Raises ``typer.BadParameter`` for options that do not fit together."""
    for part in only or ():
        if part not in _PARTS:
            raise typer.BadParameter(f"{part!r} is not one of {', '.join(map(repr, _PARTS))}", param_hint="--only")
    if "encoding" in (only or ()) and model is None:
        raise typer.BadParameter("--only encoding needs --model, the folder of the model to be trained")
    if out is not None and model is None:
        raise typer.BadParameter("--out is for --model: it writes how the model reads every row")
    if out is not None and out.suffix not in (".jsonl", ".parquet"):
        raise typer.BadParameter(f"--out writes .jsonl or .parquet; found {str(out)!r}")
    if min_match < 1 and only != ["replay"]:
        raise typer.BadParameter("--min-match is for --only replay")
    if digest and (mapped or "checks" not in (only or ("checks",))):
        raise typer.BadParameter("--digest is of a dataset or an export, and compared by the part checks")
    return cast("list[Part]", only) or None


def _encoder(dataset: str, model: Path, out: Path | None, max_tokens: int | None, **read_as: Any) -> Encode:
    """The part ``encoding`` for trajectories of the dataset; the model's libraries are imported when it is called."""

    def encode(folders: Sequence[StorePath], progress: Progress | None) -> AuditReport:
        from darkroom.pipelines.storage.workspace import Workspace

        with guarded():
            from darkroom.train.examples.conformance import ConformanceGate, encoding_report, examine
            from darkroom.train.examples.conformance.report import copy_report

            local = local_trajectories(dataset)  # before the model is read, which takes seconds
            gate = ConformanceGate(local, model, open_reader(model, **read_as), max_tokens or context_length(model))
            verdicts = examine(gate, Workspace.from_environment().local / "conformance", progress=progress)
            if out is not None:
                copy_report(verdicts, out)
            return encoding_report(verdicts)

    return encode


def _folders(dataset: str, workspace: Workspace) -> list[StorePath]:
    from darkroom.pipelines.publishing.rl_dataset import rl_folder

    shipped, prompts = workspace.home / "datasets" / "sft", rl_folder(workspace)
    if dataset != ALL:
        return shipped_folders(dataset, shipped, prompts)
    rl = [prompts] if dataset_files(prompts) else []
    return [*find_datasets(ALL, shipped, may_be_empty=bool(rl)), *rl]
