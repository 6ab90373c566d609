"""The output folder of an evaluation, written whole.

report.json, .md, .html  every figure (``results.py``), policy, questions, digests of all inputs; with charts (*.png)
gallery.html             rollouts to look at, with their images
rollouts.parquet, .csv   every rollout, one row each (``SCHEMA``); on request for spreadsheets (``COLUMNS``)
"""

import csv
import json
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from markdown_it import MarkdownIt
from markupsafe import Markup

from darkroom.pipelines.generation.drafting import provenance
from darkroom.pipelines.generation.rollout import Rollout
from darkroom.pipelines.inspection.gallery import write_gallery
from darkroom.pipelines.inspection.pages import data_url, html_page, spreadsheet_cell
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.publishing.parquet_shards import write_trajectories
from darkroom.pipelines.records import Check, Trajectory, to_row
from darkroom.pipelines.records.schemas import schema_of
from darkroom.pipelines.storage.atomic_write import replace_folder, whole_file
from darkroom.pipelines.storage.images import ImageStore
from darkroom.train.evaluation.metrics import tools_by_round
from darkroom.train.evaluation.observed_images import ObservedImage
from darkroom.train.evaluation.questions import Question
from darkroom.train.evaluation.report import charts, report
from darkroom.train.evaluation.results import Findings
from darkroom.train.evaluation.rollouts import EvaluatedPolicy, ScoredRollout
from darkroom.train.evaluation.settings import ExportFormat

REPORT = "report.json"
_STYLE = Path(__file__).with_name("templates").joinpath("report.css").read_text(encoding="utf-8").rstrip("\n")


def write_output(
    folder: Path,
    record: Mapping[str, Any],
    findings: Findings,
    evaluated: EvaluatedPolicy,
    store: ImageStore,
    *,
    n_shown: int,
) -> None:
    """Write all files beside ``folder``, then replace it."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    pngs = charts(record["results"]) if findings.counted else {}
    for name, png in pngs.items():
        (part / name).write_bytes(png)
    text = report(record)
    (part / "report.md").write_text(text, encoding="utf-8")
    (part / "report.html").write_text(_page(text, pngs, record["who"]["label"]), encoding="utf-8")
    write_rollouts(part / "rollouts.parquet", findings, evaluated)
    rollouts = chosen(findings.counted, n_shown)
    pairs = [(scored.question.sample, trajectory(scored, findings, evaluated)) for scored in rollouts]
    with tempfile.TemporaryDirectory() as rows:
        write_trajectories(Path(rows), pairs, store=store)
        n_named = record["results"]["all"]["n_naming_a_region"]
        note = f" ({n_named} questions name four numbers, as a region has: finding it is not shown)" if n_named else ""
        write_gallery(part / "gallery.html", [Path(rows)], title=f"Rollouts of {evaluated.policy.identity.model}{note}")
    (part / REPORT).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    replace_folder(folder, part)


def read_report(folder: Path, inputs: str) -> dict[str, Any] | None:
    path = folder / REPORT
    if not path.is_file():
        return None
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record if record.get("inputs") == inputs and not record["n_failed"] else None


def _page(text: str, pngs: Mapping[str, bytes], title: str) -> str:
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    for name, png in pngs.items():
        body = body.replace(f'src="{name}"', f'src="{data_url(png)}"')
    links = '<p><a href="gallery.html">Sample rollouts</a> · <a href="report.json">every figure</a></p>'
    return html_page(Markup(f"<main>\n{links}{body}</main>"), title=f"Evaluation of {title}", style=_STYLE)


@dataclass(frozen=True, slots=True)
class SeenImage:
    """An observation's image (sha256), and the region of the question's image ``of`` that it shows (null: none)."""

    round: int
    image: str
    of: int | None
    box: tuple[int, ...] | None
    share: float | None
    shows_target_by_boxes: bool | None
    shows_target_by_judge: bool | None


@dataclass(frozen=True, slots=True)
class RolloutRow:
    """A row of ``rollouts.parquet``; a trajectory's columns follow. ``seen``: every image of the observations."""

    benchmark: str
    category: str
    cycle: str
    number: int
    question: str
    choices: tuple[str, ...]
    gold: str
    right: bool
    score: float
    detail: str
    fault: str | None
    fault_evidence: str | None
    tools: tuple[tuple[str, ...], ...]
    seen: tuple[SeenImage, ...]


SCHEMA = pa.schema([*schema_of(RolloutRow), *schema_of(Trajectory)])


def write_rollouts(path: Path, findings: Findings, evaluated: EvaluatedPolicy) -> None:
    pairs = ((_row(scored, findings), trajectory(scored, findings, evaluated)) for scored in findings.rollouts)
    rows = [to_row(row) | to_row(rollout) for row, rollout in pairs]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path, compression="zstd")


def trajectory(scored: ScoredRollout, findings: Findings, evaluated: EvaluatedPolicy) -> Trajectory:
    plain = trajectory_of(scored.question, scored.task, scored.rollout, evaluated)
    return replace(plain, checks=tuple(_checks(scored, findings)))


def trajectory_of(question: Question, task: Task, rollout: Rollout, evaluated: EvaluatedPolicy) -> Trajectory:
    protocol = evaluated.protocol_of(question).name
    prompt = evaluated.wording.prompt if evaluated.wording else bundled_prompt(protocol)
    names = (task.trajectory_id, question.sample.sample_id, question.benchmark, protocol)
    said = (rollout.rounds, rollout.final_thought, rollout.answer)
    made_by = provenance(evaluated.policy, prompt.digest, seed=task.seed)
    return Trajectory(*names, task.images, *said, "all_rounds", (), rollout.usage, made_by, task.mode)


def chosen(rollouts: Sequence[ScoredRollout], n: int) -> list[ScoredRollout]:
    """Choose up to ``n`` rollouts for the gallery, evenly spaced: half of them wrong if there are enough."""
    wrong, right = ([scored for scored in rollouts if scored.score.right is is_right] for is_right in (False, True))
    n_wrong = min(len(wrong), max(n // 2, n - len(right)))
    return [*_spread(wrong, n_wrong), *_spread(right, n - n_wrong)]


def _spread(rollouts: Sequence[ScoredRollout], n: int) -> list[ScoredRollout]:
    return list(rollouts[:: max(1, len(rollouts) // max(1, n))][:n])


def _row(scored: ScoredRollout, findings: Findings) -> RolloutRow:
    sample, error = scored.question.sample, scored.rollout.error
    return RolloutRow(
        benchmark=scored.question.benchmark,
        cycle=scored.question.cycle,
        number=scored.number,
        gold=sample.answer,
        right=scored.score.right,
        score=scored.score.value,
        detail=scored.score.detail,
        fault=None if error is None else str(error.reason),
        fault_evidence=None if error is None else error.evidence,
        tools=tuple(tuple(sorted(map(str, kinds))) for kinds in tools_by_round(scored)),
        seen=tuple(_seen(scored, observed, findings) for observed in scored.seen),
        **{name: getattr(sample, name) for name in ("category", "question", "choices")},
    )


def _seen(scored: ScoredRollout, observed: ObservedImage, findings: Findings) -> SeenImage:
    knows, change = bool(scored.question.sample.truth.boxes), observed.change
    return SeenImage(
        round=observed.round,
        image=observed.image.sha256,
        of=observed.of if change else None,
        box=tuple(change.box) if change else None,
        share=change.share if change else None,
        shows_target_by_boxes=findings.by_boxes(scored, observed) if knows else None,
        shows_target_by_judge=None if findings.verdicts is None else findings.by_judge(scored, observed),
    )


def _checks(scored: ScoredRollout, findings: Findings) -> Iterator[Check]:
    yield Check("answer", scored.score.right, scored.score.value, scored.score.detail)
    if scored.question.sample.truth.boxes and scored.seen:
        crops = [observed for observed in scored.seen if observed.is_part(findings.whole_share)]
        shows = any(findings.by_boxes(scored, observed) for observed in crops)
        yield Check("faithful_by_boxes", shows, detail=f"{len(crops)} of {len(scored.seen)} pictures are parts")
    if findings.verdicts is not None and scored.seen:
        yield Check("faithful_by_judge", any(findings.by_judge(scored, observed) for observed in scored.seen))


_BATCH = 64
COLUMNS = (
    *("id", "rollout", "benchmark", "category", "question", "choices", "gold", "answer", "correct", "score", "detail"),
    *("error", "rounds", "rounds_ok", "code_ran", "images_shown", "calls", "prompt_tokens", "completion_tokens"),
)
"""Columns of ``rollouts.csv``. ``rounds_ok``: rounds without an error; ``code_ran``: there is code, and all ran."""


def export(folder: Path, formats: Collection[ExportFormat]) -> None:
    """Write the files of ``formats``, each whole or not at all, from the folder's ``rollouts.parquet`` alone."""
    if ExportFormat.CSV not in formats:
        return
    # with the mark by which spreadsheets recognise UTF-8
    with whole_file(folder / "rollouts.csv") as part, part.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(COLUMNS)
        with pq.ParquetFile(folder / "rollouts.parquet") as rollouts:
            for batch in rollouts.iter_batches(_BATCH):
                writer.writerows([spreadsheet_cell(value) for value in _values(row)] for row in batch.to_pylist())


def _values(row: Mapping[str, Any]) -> tuple[Any, ...]:
    observations, usage = [turn["observation"] for turn in row["rounds"]], row["usage"]
    n_ok = sum(observation["status"] == "ok" for observation in observations)
    return (
        *(row[name] for name in ("sample_id", "number", "benchmark", "category", "question")),
        "\n".join(row["choices"]),
        *(row[name] for name in ("gold", "answer", "right", "score", "detail", "fault")),
        *(len(observations), n_ok, bool(observations) and n_ok == len(observations)),
        sum(len(observation["images"]) for observation in observations),
        *(usage[name] for name in ("calls", "prompt_tokens", "completion_tokens")),
    )
