"""`darkroom sandbox`: run a file in the sandbox, and find out what this machine can do."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console
from rich.table import Column, Table

from darkroom.sandbox.calls import Observation
from darkroom.sandbox.doctor import Finding, can_run, describe_machine, diagnose, try_sessions
from darkroom.sandbox.errors import TIER_VARIABLE, Tier, UserError, raised_as
from darkroom.sandbox.limits import Limits
from darkroom.sandbox.pool import SandboxPool
from darkroom.sandbox.terminal import SafeConsole


def run(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The Python file to run.")],
    image: Annotated[
        list[Path] | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="An input image, which FILE opens by this name; repeat for more. The first is `image_path`.",
        ),
    ] = None,
    video: Annotated[
        list[Path] | None,
        typer.Option(exists=True, dir_okay=False, help="An input video; repeat for more. The first is `video_clue_0`."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seeds everything random.")] = 0,
    seconds: Annotated[float, typer.Option(min=0.1, help="Time limit.")] = Limits.seconds,
    repair: Annotated[bool, typer.Option(help="Rewrite trivial mistakes, as for small models, and print each.")] = True,
    tier: Annotated[Tier | None, typer.Option(help=f"Default: {TIER_VARIABLE}, else full.")] = None,
    out: Annotated[Path | None, typer.Option(file_okay=False, help="Folder for the images of the observation.")] = None,
) -> None:
    """Run FILE once and print the observation. Exits with 1 unless its status is ok."""
    console = SafeConsole()
    with raised_as(
        lambda error: UserError(f"{file} is not UTF-8 text (byte {error.start}). To do: name a file of Python code"),
        UnicodeDecodeError,
    ):
        code = file.read_text(encoding="utf-8")
    with (
        SandboxPool(limits=Limits(seconds=seconds), tier=tier, repair="small_model" if repair else "off") as pool,
        pool.group(image or [], names=list(map(str, image or [])), videos=video or []) as group,
        group.session(seed=seed) as session,
    ):
        observation = session.run(code)
    _print_observation(console, observation)
    if out is not None:
        _save_images(console, observation, out)
    if not observation.ok:
        raise typer.Exit(1)


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead, for a program.")] = False,
) -> None:
    """Show which protections this kernel gives, which tier can run, and how to get what is missing.

    Starts a session of each tier and runs code in it, which takes a few seconds.

    Exits with 1 when no tier can run.
    """
    console, findings = SafeConsole(), diagnose()
    findings += try_sessions(findings)
    tiers = {tier: can_run(tier, findings) for tier in get_args(Tier)}
    if as_json:
        report = {"machine": describe_machine(), "tiers": tiers, "findings": [asdict(finding) for finding in findings]}
        typer.echo(json.dumps(report, indent=2, default=str))
    else:
        _print_findings(console, findings, tiers)
    if not any(tiers.values()):
        raise typer.Exit(1)


def _print_findings(console: SafeConsole, findings: list[Finding], tiers: dict[Tier, bool]) -> None:
    console.print(describe_machine(), markup=False, highlight=False)
    table = Table("works", "needed by", Column("protection", overflow="fold"), box=None, pad_edge=False)
    for finding in findings:
        table.add_row("yes" if finding.works else "no", ", ".join(finding.tiers) or "optional", finding.protection)
    console.print(table, width=console.columns)
    for finding in findings:
        if not finding.works:  # as paragraphs: commands are copied from here
            missing = f"\n{finding.protection}: {finding.reason}\n{finding.remedy}\n"
            console.print(missing, markup=False, highlight=False, soft_wrap=True)
    for tier, runs in tiers.items():
        console.print(f"{tier} tier: {'can run' if runs else 'cannot run'}")


def _print_observation(console: Console, observation: Observation) -> None:
    console.print(f"{observation.status} after {observation.seconds:.2f} s", style="bold", markup=False)
    for edit in observation.edits:
        console.print(f"edit {edit.kind}: {edit.before!r} -> {edit.after!r}", style="yellow", markup=False)
    if observation.error is not None:
        console.print(observation.error, style="red", markup=False)
    console.print(observation.text, end="", markup=False, highlight=False)
    for image in observation.images:
        console.print(f"image {image.name} {image.pixels.width}x{image.pixels.height}", markup=False)
    for artefact in observation.artefacts:
        console.print(f"file {artefact.name}, {artefact.n_bytes} bytes {artefact.note}", markup=False)


def _save_images(console: Console, observation: Observation, folder: Path) -> None:
    """Save as numbered files: a name that the code chose never becomes a path of the host."""
    folder.mkdir(parents=True, exist_ok=True)
    for index, image in enumerate(observation.images):
        path = folder / f"image_{index}.png"
        image.pixels.save(path)
        console.print(f"saved {path}", markup=False)
