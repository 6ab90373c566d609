"""Evaluate a policy with its tools: accuracy, what its code does, and whether the answer depends on it.

    darkroom evaluate --model data/checkpoints/grpo --dataset data/datasets/rl/all --output data/evaluations/grpo

An interrupted evaluation resumes where it stopped. The output folder is described in ``train/evaluation/output.py``.
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

from darkroom.pipelines.command_line.errors import program_of
from darkroom.train.evaluation.settings import EvaluationSettings, ExportFormat, check
from darkroom.train.runs import TrainError
from darkroom.train.runs.command_line import (
    Values,
    config_option,
    guarded,
    is_first_process,
    n_processes,
    takes_settings,
)

if TYPE_CHECKING:
    from darkroom.train.evaluation.questions import QuestionSet
    from darkroom.train.evaluation.rollouts import EvaluatedPolicy
    from darkroom.train.runs.reporting import RunReporter


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """A finished evaluation: its folder and the content of ``report.json``. ``reused``: it was already complete."""

    folder: Path
    made: Mapping[str, Any]
    reused: bool = False


def evaluate(
    settings: EvaluationSettings,
    report: RunReporter | None = None,
    *,
    exports: Sequence[ExportFormat] = (),
    force: bool = False,
) -> EvaluationReport:
    """Evaluate and write ``settings.output`` with its ``exports``. Raises ``UserError`` for what cannot be evaluated.
    Of several processes (``darkroom.train.evaluation.evaluation_run``) only the first returns."""
    from darkroom.pipelines.storage.workspace import Workspace
    from darkroom.train.evaluation.evaluation_run import EvaluationRun, report_record, roll_out_share
    from darkroom.train.evaluation.output import export, read_report, write_output
    from darkroom.train.evaluation.questions import questions_of
    from darkroom.train.evaluation.rollouts import open_judge, open_policy, vision_of
    from darkroom.train.runs.reporting import RunReporter

    check(settings)
    output = settings.output  # replaced as a whole
    if output.exists() and (not output.is_dir() or (any(output.iterdir()) and not (output / "report.json").is_file())):
        raise TrainError(f"{output} exists and is no evaluation; name a new folder with --output")
    report = report or RunReporter()
    home = {} if settings.home is None else {"DARKROOM_HOME": str(settings.home)}
    with Workspace.from_environment({**os.environ, **home}) as workspace:
        evaluated = open_policy(settings, workspace.images)
        question_sets = questions_of(settings, workspace)
        inputs = _inputs(settings, evaluated, question_sets)
        record = None if force else read_report(output, inputs)
        if record is not None:
            report.line(f"{output} is complete for these inputs: nothing to do (--force evaluates again)")
            export(output, exports)
            return EvaluationReport(output, record, reused=True)
        start = time.monotonic()
        judge = open_judge(settings, workspace.images)
        n_questions = sum(len(question_set.questions) for question_set in question_sets)
        rollouts = "rollout" if settings.rollouts == 1 else "rollouts"
        report.line(f"{n_questions:,} questions, {settings.rollouts:,} {rollouts} each")
        run = EvaluationRun(workspace, settings, evaluated, judge, vision_of(settings), report)
        if n_processes() > 1:
            roll_out_share(run, question_sets)  # which closes policy and judge
            if not is_first_process():
                raise SystemExit(0)
            evaluated, judge = open_policy(settings, workspace.images), open_judge(settings, workspace.images)
            run = replace(run, evaluated=evaluated, judge=judge)
        findings = run.run(question_sets)
        if not findings.rollouts:
            raise TrainError(f"no question could be asked: {dict(Counter(findings.unasked))}")
        made = report_record(settings, evaluated, question_sets, findings)
        record = {"inputs": inputs, **made, "seconds": round(time.monotonic() - start, 2)}
        write_output(output, record, findings, evaluated, workspace.images, n_shown=settings.shown)
        export(output, exports)
        return EvaluationReport(output, record)


def metadata(evaluation: EvaluationReport) -> dict[str, Any]:
    """Metadata of the asset ``evaluation`` for Dagster Pipes: figures, tables, charts, path."""
    from darkroom.train.evaluation.report import accuracy_table
    from darkroom.train.runs.history import embedded

    everything = evaluation.made["results"]["all"]
    code, right = everything["code"], everything["accuracy"]["right"]
    charts = [embedded(path.read_bytes(), path.stem) for path in sorted(evaluation.folder.glob("*.png"))]
    values = {
        "accuracy": (right["mean"], "float"),
        "official": (", ".join(evaluation.made["official"]) or "none", "text"),
        "accuracy_95": (f"{right['low']:.1%} – {right['high']:.1%}", "text"),
        "questions": (everything["accuracy"]["n_questions"], "int"),
        "rollouts": (everything["accuracy"]["n_rollouts"], "int"),
        "tool_use": (code["tool_use"]["mean"], "float"),
        "code_pass_rate": (code["pass_rate"], "float"),
        "failed_rollouts": (evaluation.made["n_failed"], "int"),
        "by_benchmark": (accuracy_table(evaluation.made["results"]), "md"),
        "charts": ("\n\n".join(charts), "md"),
        "seconds": (evaluation.made["seconds"], "float"),
        "report": (str((evaluation.folder / "report.html").resolve()), "path"),
    }
    for who, faithfulness in everything["faithfulness"].items():
        values[f"faithful_by_{who}"] = (faithfulness["parts_only"]["over_all"]["mean"], "float")
    return {name: {"raw_value": value, "type": kind} for name, (value, kind) in values.items()}


_ROOMS = ("generation", "models", "records", "storage", "verification", "vision")
_EVALUATION_CODE = tuple(f"darkroom.pipelines.{room}" for room in _ROOMS)
"""The rooms of ``pipelines`` that decide an evaluation's rollouts and grades."""


def _inputs(settings: EvaluationSettings, evaluated: EvaluatedPolicy, question_sets: Sequence[QuestionSet]) -> str:
    from darkroom import sandbox
    from darkroom.pipelines.records.digest import digest, digest_files
    from darkroom.pipelines.storage.stage_runs import code_digest

    here = Path(__file__).parent
    ours = [path for path in (here / "evaluation").rglob("*.*") if path.suffix != ".pyc"]
    code = digest_files([*ours, here / "models" / "local_policy.py", here / "examples" / "encoding.py"], here)
    questions = [[part.name, [question.sample.sample_id for question in part.questions]] for part in question_sets]
    who = evaluated.policy.identity.as_json()
    return digest([settings.as_json(), who, questions, code, code_digest(*_EVALUATION_CODE), sandbox.sandbox_digest()])


def _pairs(values: Sequence[str]) -> tuple[tuple[str, Path], ...]:
    pairs = [value.partition("=") for value in values]
    if wrong := [name for name, _, path in pairs if not name or not path]:
        expected = "a benchmark is given as NAME=PATH, like vstar_bench=downloads/vstar_bench"
        raise TrainError(f"{expected}; found {wrong[0]!r}")
    return tuple((name, Path(path)) for name, _, path in pairs)


@takes_settings
def main(
    output: Annotated[Path, typer.Option(help="Folder of the report; replaced as a whole when the evaluation ends.")],
    settings: Annotated[Values, EvaluationSettings],
    config: Annotated[Path | None, config_option("rollouts: 4")] = None,
    export: Annotated[
        list[ExportFormat] | None,
        typer.Option(help="Also write the rollouts into the output, for other programs. May be repeated."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Evaluate even if the output is complete.")] = False,
) -> None:
    """Evaluate a model that thinks with images.

    Right answers by benchmark and category with 95 % intervals, avg@k and
    pass@k, what its code does and how often it runs, what it looks at,
    and whether that matters: faithfulness by truth boxes and by a judge,
    and controls in which its images are blanked or swapped.

    A sanity check that needs no model, in a minute:

    `darkroom evaluate --oracle crop --source demo --output OUT`

    A checkpoint on its held-out questions:

    `darkroom evaluate --model CHECKPOINT --dataset DATASET --output OUT --controls 50`

    A server on a public benchmark, four rollouts each:

    `darkroom evaluate --url http://127.0.0.1:8000/v1 --model NAME --benchmark vstar_bench=FOLDER
    --rollouts 4 --temperature 0.7 --output OUT`

    Interrupted? Run the same command: model calls and executions are on the
    ledger of the workspace (DARKROOM_HOME) and are not paid for again.
    """
    with guarded():
        from darkroom.train.evaluation.report import accuracy_table
        from darkroom.train.runs.reporting import reporting

        chosen = EvaluationSettings(output=output, benchmarks=_pairs(settings.pop("benchmarks", ())), **settings)
        with reporting() as report:
            evaluation = evaluate(chosen, report, exports=export or (), force=force)
            report.line(accuracy_table(evaluation.made["results"]))
            if n_failed := evaluation.made["n_failed"]:
                report.line(f"not complete: {n_failed} rollouts failed; run the same command again")
            report.line(f"{evaluation.folder / 'report.html'}")
            report.materialized(metadata(evaluation))


if __name__ == "__main__":
    program_of(main)()
