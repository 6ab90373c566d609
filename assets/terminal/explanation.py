"""``darkroom explain`` in the terminal: the sample, what became of it, then its history by family, rejects first."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Column, Table
from rich.text import Text

from darkroom.assets.terminal import table
from darkroom.pipelines.inspection.explain import RL, Explanation, FamilyHistory, Passage, RowAmbiguous
from darkroom.pipelines.inspection.ledger_calls import LedgerCall
from darkroom.pipelines.records.reject_reasons import Reason

_COLOURS = {"kept": "green", "rejected": "red", "quarantined": "yellow", "not_applicable": "dim", "ok": "green"}
_SHORT = 12
_VOTES = ("votes", "forced", "forbidden")
"""Columns with votes: ● yes, ○ no, · no answer."""


def print_explanation(console: Console, explanation: Explanation) -> None:
    subject = explanation.subject
    console.print(Text.assemble((f"{subject.kind} ", "bold"), subject.id))
    if explanation.sample is not None:
        console.print(_sample(explanation.sample))
    console.print(_passages(explanation.intake))
    # rejects are what people look for; families to which the row does not apply come last
    histories = sorted(explanation.histories, key=lambda history: (not history.is_applicable, not history.rejected))
    if len(histories) > 1:
        for part in _titled("By family", _outcomes(histories)):
            console.print(part)
    for history in histories:
        if len(histories) == 1 or history.is_applicable:
            for part in _history(history):
                console.print(part)


def print_candidates(console: Console, error: RowAmbiguous) -> None:
    rows = ((subject.kind, Text(subject.id), Text(subject.where)) for subject in error.candidates)
    console.print(table(("kind", "id", "where"), rows, header_style="table.header"))


def _sample(sample: Mapping[str, Any]) -> Table:
    images = ["{width}x{height} {format} {sha256}".format(**image) for image in sample["images"]]
    videos = ["{width}x{height} {n_frames} frames {sha256}".format(**video) for video in sample.get("videos") or ()]
    truth = {name: part for name, part in sample["truth"].items() if part not in (None, [], "")}
    facts = {
        "sample": sample["sample_id"],
        "source": f"{sample['source']}:{sample['source_row']}",
        "licence": sample["license"],
        "category": sample["category"],
        "question": "\n".join([sample["question"], *sample["choices"]]),
        "answer": sample["answer"],
        "truth": json.dumps(truth, ensure_ascii=False),
        "images": "\n".join(images),
        "videos": "\n".join(videos),
    }
    return _facts(facts)


def _outcomes(histories: Sequence[FamilyHistory]) -> Table:
    """The last stage of every family, one line each; those to which the row does not apply share a line."""
    lines = table(("family", "outcome", "stage", "reason and evidence"))
    inapplicable: dict[str, list[str]] = {}
    for history in histories:
        last = history.rejected or history.passages[-1]
        if not history.is_applicable:
            inapplicable.setdefault(last.evidence, []).append(history.family)
            continue
        why = Text(": ".join(filter(None, (last.reason, last.check, last.evidence))))
        lines.add_row(history.family, _outcome(last), last.stage.rpartition("/")[-1], why)
    for evidence, families in inapplicable.items():
        lines.add_row(", ".join(families), Text(Reason.NOT_APPLICABLE, style="dim"), "", Text(evidence))
    return lines


def _history(history: FamilyHistory) -> Iterator[RenderableType]:
    trajectory_id = "" if history.family == RL else f"  {history.trajectory_id or 'not drafted'}"
    yield Rule(Text.assemble((history.family, "bold"), trajectory_id), align="left")
    yield _passages(history.passages, history.family)
    votes = ((f"{passage.stage} {name}", passage.row.get(name)) for passage in history.passages for name in _VOTES)
    if polls := [(name, poll) for name, poll in votes if poll]:
        yield from _titled("Votes", _votes(polls))
    row = history.row
    for title, name in (("Hint (privileged)", "hint"), ("Draft", "text")):
        if row.get(name):
            yield from _titled(title, Text(row[name]))
    for number, turn in enumerate(row.get("rounds") or (), start=1):
        yield from _round(number, turn)
    if "final_thought" in row:  # else the answer is the sample's
        yield from _titled("Answer", Text(row["final_thought"]), Text(row["answer"], style="bold"))
    if row.get("checks"):
        yield from _titled("Checks", _checks(row["checks"]))
    if row.get("provenance"):
        yield from _titled("Usage and provenance", _facts({**row["usage"], **row["provenance"]}))
    for call in history.calls:
        if call.kind == "policy" and not call.what.startswith("turn") and history.family != RL:
            yield from _titled(f"{call.what}, by {call.model}", Text(call.output))
    calls = _calls(history.calls) if history.calls else Text("none found", style="dim")
    yield from _titled("Calls in the ledger", calls)


def _round(number: int, turn: Mapping[str, Any]) -> Iterator[RenderableType]:
    observation = turn["observation"]
    code = Syntax(turn["code"], "python", theme="ansi_dark", background_color="default", word_wrap=True)
    yield from _titled(f"Round {number}", Text(turn["thought"]), code)
    images = []
    for image in observation["images"]:
        origin = f" made of {image['parent'][:_SHORT]}" if image.get("parent") else ""
        images.append(f"{image['width']}x{image['height']} {image['sha256']}{origin}")
    lines = [
        Text(observation["status"], style=_COLOURS.get(observation["status"], "red")),
        Text(observation["text"].rstrip()),
        Text(observation["error"] or "", style="red"),
        *map(Text, images),
        *(Text(f"edit {edit['kind']}: {edit['before']!r} -> {edit['after']!r}") for edit in observation["edits"]),
    ]
    yield Padding(Group(*(line for line in lines if line.plain)), (0, 0, 0, 2))


def _passages(passages: Sequence[Passage], family: str = "") -> Table:
    lines = table(("stage", "partition", "outcome", "reason", "evidence"))
    for passage in passages:
        stage = passage.stage.removeprefix(f"{family}/")
        reason = ": ".join(filter(None, (passage.reason, passage.check)))
        lines.add_row(stage, passage.partition, _outcome(passage), Text(reason), Text(passage.evidence))
    return lines


def _outcome(passage: Passage) -> Text:
    return Text(passage.outcome, style=_COLOURS.get(passage.outcome, ""))


def _checks(checks: Sequence[Mapping[str, Any]]) -> Table:
    lines = table(("check", "", "score", "reason and detail"))
    for check in checks:
        verdict = Text("passed", style="green") if check["passed"] else Text("failed", style="red")
        score = "" if check["score"] is None else f"{check['score']:.3f}"
        score += f" of {check['n_trials']}" if check.get("n_trials") else ""
        detail = Text(": ".join(filter(None, (check["reason"], check["detail"]))))
        lines.add_row(f"{check['name']} v{check['version']}", verdict, score, detail)
    return lines


def _votes(polls: Sequence[tuple[str, Mapping[str, Any]]]) -> Table:
    lines = table(("question", "judge", "votes", "", "first reason"))
    for name, votes in polls:
        marks = "".join({True: "●", False: "○", None: "·"}[ballot] for ballot in votes["ballots"])
        counts = f"{votes['ballots'].count(True)} of {len(votes['ballots'])}"
        reason = Text(next(iter(votes["reasons"]), "")[:80])
        lines.add_row(name.removesuffix(" votes"), votes["judge"], marks, counts, reason)
    return lines


def _calls(calls: Sequence[LedgerCall]) -> Table:
    lines = table(("call", "model", "seconds", "USD", "time (UTC)", "key", "output"))
    for call in calls:
        text, time = " ".join(call.output.split()), call.made_at[:19].replace("T", " ")
        output = Text(text if len(text) <= 60 else f"{text[:59]}…")
        numbers = (f"{call.seconds:.2f}", f"{call.cost_usd:.4f}")
        lines.add_row(call.what, call.model or call.kind, *numbers, time, call.key[:_SHORT], output)
    seconds, cost_usd = sum(call.seconds for call in calls), sum(call.cost_usd for call in calls)
    lines.add_row(f"{len(calls)} calls", "", f"{seconds:.2f}", f"{cost_usd:.4f}", "", "", "", style="bold")
    return lines


def _facts(facts: Mapping[str, Any]) -> Table:
    grid = Table(Column(style="dim"), Column(overflow="fold"), box=None, show_header=False)
    for name, value in facts.items():
        if value not in ("", None):
            grid.add_row(name, Text(str(value)))
    return grid


def _titled(title: str, *parts: RenderableType) -> Iterator[RenderableType]:
    yield Text(f"\n{title}", style="bold")
    yield from (Padding(part, (0, 0, 0, 2)) for part in parts if not isinstance(part, Text) or part.plain)
