"""Evaluation of a policy with its tools: right answers, what its programs do, and whether they matter.

    python -m train.evaluate --model data/checkpoints/grpo --dataset data/datasets/rl/all --output data/evaluations/grpo

Every rollout goes through the one loop that made the training data, with the sandbox and the ledger: an evaluation that
was killed goes on where it was. The output folder is described in ``train/evaluation/output.py``.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from train.evaluation.settings import Settings, check
from train.faults import TrainFault
from train.program import guarded, recipe_values

if TYPE_CHECKING:
    from pipelines.images import ImageStore
    from pipelines.workspace import Workspace
    from train.evaluation.course import Done
    from train.evaluation.playing import Contestant
    from train.evaluation.questions import Asked
    from train.reporting import Report


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """A finished evaluation: the folder, and what its ``report.json`` holds. ``reused``: there was nothing to do."""

    folder: Path
    made: Mapping[str, Any]
    reused: bool = False

    @property
    def accuracy(self) -> float:
        """Share of right answers, over all benchmarks."""
        return float(self.made["results"]["all"]["accuracy"]["right"]["mean"])

    @property
    def complete(self) -> bool:
        """Whether every rollout could be had."""
        return not self.made["n_failed"]


def evaluate(settings: Settings, report: Report | None = None, *, force: bool = False) -> EvaluationReport:
    """Evaluates and writes ``settings.output``. Raises ``TrainFault`` for what cannot be evaluated."""
    from pipelines.workspace import Workspace
    from train.evaluation.contestants import open_contestant
    from train.evaluation.output import read_report
    from train.reporting import Report

    check(settings)
    _require_own(settings.output)
    report = report or Report()
    workspace = Workspace.from_environment()
    if settings.home is not None:
        workspace = Workspace.from_environment({**os.environ, "DARKROOM_HOME": str(settings.home)})
    with workspace:
        contestant = open_contestant(settings, workspace.images)
        asked = _asked(settings, workspace)
        inputs = _inputs(settings, contestant, asked)
        made = None if force else read_report(settings.output, inputs)
        if made is not None:
            report.line(f"{settings.output} is complete for these inputs: nothing to do (--force evaluates again)")
            return EvaluationReport(settings.output, made, reused=True)
        return _evaluated(settings, workspace, contestant, asked, inputs, report)


def metadata(found: EvaluationReport) -> dict[str, Any]:
    """What the page of the asset ``evaluation`` shows: figures, tables, charts, where it lies (for Dagster Pipes)."""
    from train.evaluation.tables import accuracy_table
    from train.history import embedded

    everything = found.made["results"]["all"]
    code, right = everything["code"], everything["accuracy"]["right"]
    charts = [embedded(path.read_bytes(), path.stem) for path in sorted(found.folder.glob("*.png"))]
    values = {
        "accuracy": (right["mean"], "float"),
        "accuracy_95": (f"{right['low']:.1%} – {right['high']:.1%}", "text"),
        "questions": (everything["accuracy"]["n_questions"], "int"),
        "rollouts": (everything["accuracy"]["n_rollouts"], "int"),
        "tool_use": (code["tool_use"]["mean"], "float"),
        "code_pass_rate": (code["pass_rate"], "float"),
        "failed_rollouts": (found.made["n_failed"], "int"),
        "by_benchmark": (accuracy_table(found.made["results"]), "md"),
        "charts": ("\n\n".join(charts), "md"),
        "seconds": (found.made["seconds"], "float"),
        "report": (str((found.folder / "report.html").resolve()), "path"),
    }
    for who, told in everything["faithfulness"].items():
        values[f"faithful_by_{who}"] = (told["parts_only"]["over_all"]["mean"], "float")
    return {name: {"raw_value": value, "type": kind} for name, (value, kind) in values.items()}


def _evaluated(
    settings: Settings,
    workspace: Workspace,
    contestant: Contestant,
    asked: Sequence[Asked],
    inputs: str,
    report: Report,
) -> EvaluationReport:
    from train.evaluation.contestants import open_judge, vision_of
    from train.evaluation.course import Course
    from train.evaluation.output import write_output

    start = time.monotonic()
    judge = open_judge(settings, workspace.images)
    report.line(f"{sum(len(one.questions) for one in asked)} questions, {settings.rollouts} rollout(s) each")
    done = Course(workspace, settings, contestant, judge, vision_of(settings), report).run(asked)
    if not done.findings.played:
        raise TrainFault(f"no question could be asked: {dict(Counter(done.unasked))}")
    made = _made(settings, contestant, asked, done, inputs, seconds=time.monotonic() - start)
    write_output(settings.output, made, done.findings, contestant, workspace.images, shown=settings.shown)
    return EvaluationReport(settings.output, made)


def _made(
    settings: Settings, contestant: Contestant, asked: Sequence[Asked], done: Done, inputs: str, *, seconds: float
) -> dict[str, Any]:
    from pipelines.records import Usage, to_row
    from train.evaluation.results import results

    found, identity = done.findings, contestant.policy.identity
    protocols = sorted({contestant.protocol_of(one.question).name for one in found.played})
    modes = sorted({one.task.mode for one in found.played})
    return {
        "program": "evaluate",
        "inputs": inputs,
        "settings": settings.as_json(),
        "who": {
            "label": f"the oracle of {settings.oracle}" if settings.oracle else identity.model,
            **identity.as_json(),
            "protocol": ", ".join(protocols),
            "mode": ", ".join(modes),
            "max_rounds": contestant.max_rounds,
            "rollouts": settings.rollouts,
        },
        "asked": [{"name": one.name, "n": len(one.questions), "left_out": dict(one.left_out)} for one in asked],
        "unasked": {reason: n // settings.rollouts for reason, n in Counter(done.unasked).items()},
        "n_failed": len(found.failed),
        "failures": dict(Counter(str(one.rollout.fault.reason) for one in found.failed if one.rollout.fault)),
        "results": results(found),
        "usage": to_row(sum((one.rollout.usage for one in found.played), Usage())),
        "seconds": round(seconds, 2),
    }


def _asked(settings: Settings, workspace: Workspace) -> list[Asked]:
    from pipelines.sources import Catalog, SourceFault
    from train.evaluation.benchmarks import opened
    from train.evaluation.questions import of_benchmark, of_dataset, of_source

    store: ImageStore = workspace.images
    asked = [of_dataset(folder, store, split=settings.split, limit=settings.limit) for folder in settings.datasets]
    for name, path in settings.benchmarks:
        asked.append(of_benchmark(name, opened(name, path), store, limit=settings.limit))
    for name in settings.sources:
        try:
            source = Catalog(workspace.sources).open(name)
        except SourceFault as fault:
            raise TrainFault(str(fault)) from fault
        asked.append(of_source(source, store, limit=settings.limit))
    return _distinct(asked)


def _distinct(asked: Sequence[Asked]) -> list[Asked]:
    """Two origins of one name would be one benchmark in every table: the later is told apart by its number."""
    names: Counter[str] = Counter()
    told: list[Asked] = []
    for one in asked:
        names[one.name] += 1
        name = one.name if names[one.name] == 1 else f"{one.name} ({names[one.name]})"
        questions = tuple(replace(question, benchmark=name) for question in one.questions)
        told.append(replace(one, name=name, questions=questions))
    return told


def _inputs(settings: Settings, contestant: Contestant, asked: Sequence[Asked]) -> str:
    import sandbox
    from pipelines.digest import digest, digest_files
    from pipelines.stages import code_digest

    here = Path(__file__).parent
    code = digest_files([*(here / "evaluation").rglob("*.py"), here / "local.py"], here)
    questions = [[one.name, [question.sample.sample_id for question in one.questions]] for one in asked]
    who = contestant.policy.identity.as_json()
    return digest([settings.as_json(), who, questions, code, code_digest(), sandbox.sandbox_digest()])


def _require_own(output: Path) -> None:
    """The output is replaced whole: a folder with anything else in it is not touched."""
    if output.exists() and (not output.is_dir() or (any(output.iterdir()) and not (output / "report.json").is_file())):
        raise TrainFault(f"{output} exists and is no evaluation; name a new folder with --output")


def _pairs(values: Sequence[str]) -> tuple[tuple[str, Path], ...]:
    """``vstar_bench=PATH`` as name and path."""
    found = [value.partition("=") for value in values]
    if wrong := [name for name, _, path in found if not name or not path]:
        raise TrainFault(
            f"a benchmark is given as NAME=PATH, like vstar_bench=downloads/vstar_bench; found {wrong[0]!r}"
        )
    return tuple((name, Path(path)) for name, _, path in found)


_DEFAULT = Settings(output=Path())


def main(
    output: Annotated[Path, typer.Option(help="Folder of the report; replaced whole when the evaluation is done.")],
    model: Annotated[str, typer.Option(help="Folder of a checkpoint; with --url, the name of a model there.")] = "",
    url: Annotated[str, typer.Option(help="An OpenAI-compatible endpoint, with /v1. Key: OPENAI_API_KEY.")] = "",
    oracle: Annotated[
        str, typer.Option(help="A family, like `crop`: its oracle knows the truth. A sanity check.")
    ] = "",
    dataset: Annotated[
        list[Path] | None, typer.Option(help="Folder of an RL dataset, or of an SFT dataset. May be given again.")
    ] = None,
    split: Annotated[str, typer.Option(help="Of datasets: validation, train or all.")] = _DEFAULT.split,
    benchmark: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=PATH: vstar_bench, hr_bench_4k, hr_bench_8k, mmstar or infovqa with its download; or a name of "
            "yours with a YAML file. May be given again."
        ),
    ] = None,
    source: Annotated[
        list[str] | None, typer.Option(help="A source of the catalog, like `demo`. May be given again.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="YAML file with values for any of these flags, as in `rollouts: 4`; the command line wins.",
            callback=recipe_values,
            is_eager=True,
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many rows of each.")] = None,
    protocol: Annotated[str, typer.Option(help="thyme, pyvision or tool_call; SFT rows bring theirs.")] = "thyme",
    mode: Annotated[
        str, typer.Option(help="The protocol's prompt: free; tool_call also forced and forbidden.")
    ] = "free",
    rollouts: Annotated[int, typer.Option(min=1, help="Per question, for avg@k and pass@k.")] = _DEFAULT.rollouts,
    temperature: Annotated[float, typer.Option(min=0.0, help="0 takes the likeliest token.")] = _DEFAULT.temperature,
    top_p: Annotated[float, typer.Option(min=0.01, max=1.0, help="Of sampling.")] = _DEFAULT.top_p,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest turn.")] = _DEFAULT.max_tokens,
    max_rounds: Annotated[int, typer.Option(min=0, help="Programs that a rollout may run.")] = _DEFAULT.max_rounds,
    max_pixels: Annotated[
        int | None, typer.Option(min=784, help="Scale pictures down to so many pixels; default: the model's own limit.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Conversations generated at once.")] = _DEFAULT.batch_size,
    seed: Annotated[int, typer.Option(help="Seed of all rollouts.")] = _DEFAULT.seed,
    judge_url: Annotated[str, typer.Option(help="Endpoint of a judge that sees: free answers, faithfulness.")] = "",
    judge_model: Annotated[str, typer.Option(help="The judge's name there.")] = "",
    judge_votes: Annotated[int, typer.Option(min=1, help="Votes on every picture.")] = _DEFAULT.judge_votes,
    whole_share: Annotated[
        float, typer.Option(min=0.01, max=1.0, help="A crop of more than this share of a picture is no crop.")
    ] = _DEFAULT.whole_share,
    cover: Annotated[
        float, typer.Option(min=0.01, max=1.0, help="Share of a target's box that a crop must show.")
    ] = _DEFAULT.cover,
    controls: Annotated[
        int, typer.Option(min=0, help="Play so many rollouts again with blank and swapped pictures. 0: none.")
    ] = _DEFAULT.controls,
    shown: Annotated[int, typer.Option(min=0, help="Rollouts in the gallery.")] = _DEFAULT.shown,
    home: Annotated[Path | None, typer.Option(help="Workspace with ledger and images; default: DARKROOM_HOME.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Evaluate even if the output is complete.")] = False,
) -> None:
    """Evaluate a model that thinks with images.

    Right answers by benchmark and category with 95 % intervals, avg@k and
    pass@k, what its programs do and how often they run, what it looks at,
    and whether that matters: faithfulness by truth boxes and by a judge,
    and controls in which its pictures are blanked or swapped.

    A sanity check that needs no model, in a minute:
    python -m train.evaluate --oracle crop --source demo --output OUT

    A checkpoint on its held-out questions:
    python -m train.evaluate --model CHECKPOINT --dataset SFT_OR_RL_DATASET
    --output OUT --controls 50

    A server on a public benchmark, four rollouts each:
    python -m train.evaluate --url http://127.0.0.1:8000/v1 --model NAME
    --benchmark vstar_bench=FOLDER --rollouts 4 --temperature 0.7 --output OUT

    Killed? Run the same command: what was written and executed is on the
    ledger of the workspace (DARKROOM_HOME) and is not paid for again.
    """
    with guarded():
        settings = Settings(
            output=output,
            model=model,
            url=url,
            oracle=oracle,
            datasets=tuple(dataset or ()),
            split=split,
            benchmarks=_pairs(benchmark or ()),
            sources=tuple(source or ()),
            limit=limit,
            protocol=protocol,
            mode=mode,
            rollouts=rollouts,
            temperature=temperature,
            top_p=top_p,
            max_tokens=max_tokens,
            max_rounds=max_rounds,
            max_pixels=max_pixels,
            batch_size=batch_size,
            seed=seed,
            judge_url=judge_url,
            judge_model=judge_model,
            judge_votes=judge_votes,
            whole_share=whole_share,
            cover=cover,
            controls=controls,
            shown=shown,
            home=home,
        )
        _report(settings, force=force)


def _report(settings: Settings, *, force: bool) -> None:
    from train.evaluation.tables import accuracy_table
    from train.reporting import reporting

    with reporting() as report:
        found = evaluate(settings, report, force=force)
        report.line(accuracy_table(found.made["results"]))
        if not found.complete:
            report.line(f"not complete: {found.made['n_failed']} rollouts failed; run the same command again")
        report.line(f"{found.folder / 'report.html'}")
        report.materialized(metadata(found))


if __name__ == "__main__":
    typer.run(main)
