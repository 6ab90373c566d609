"""Tasks that records wait for, as Label Studio takes them."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from darkroom.annotation._plugin.darkroom_studio.content import rules_shown
from darkroom.annotation.label_studio.forms import CATEGORIES, REASONS
from darkroom.annotation.label_studio.protocol import NOTHING
from darkroom.annotation.rounds.campaign import Campaign, Terms, is_selected, terms_of
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.journal_file import RecordTask, TaskRequest
from darkroom.annotation.rounds.planted_errors import ERRORS, plant
from darkroom.annotation.rounds.submissions import ROUNDS, Record, RecordFields, RecordState
from darkroom.annotation.rounds.task_exchange import PendingTask
from darkroom.pipelines.records import AnnotationEvent, PoolImage
from darkroom.pipelines.records.geometry import Box

N_RESERVED = 2
"""Annotations that every check has from the start, like one with a planted error, which excludes author and checker:
Label Studio serves the tasks with most annotations first."""
PREFILLED = "the record"
PRE_ANNOTATED = "**A model filled this in.** Check every box and every word, or write something better."
Prediction = Mapping[str, Any]
"""Fields of a form that a task shows filled in."""
_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&])")


def pending_tasks(
    records: Iterable[Record],
    journal: Journal,
    campaign: Campaign,
    *,
    pre_annotations: Mapping[str, Prediction] = NOTHING,
    recorded_terms: Mapping[str, Terms | None] = NOTHING,
) -> Iterator[PendingTask]:
    """The tasks that records wait for and that were not handed out, under the terms of their request, or today's."""
    staff = [person.person_id for person in journal.people().values() if person.role == "admin"]
    frozen, today = journal.terms(), {round: terms_of(campaign, round) for round in ROUNDS}
    for record in records:
        stored = {task.request.key(campaign.name): task for task in record.tasks}
        for request, state in _next_requests(campaign, record, recorded_terms):
            key = request.key(campaign.name)
            before = stored.get(key)
            if before is not None and before.task_id is not None:
                continue
            terms = (before and frozen.get(before.terms)) or recorded_terms.get(key) or today[request.round]
            n_excluded = before.request.overlap - before.request.n_wanted if before else N_RESERVED
            if request.round == "cross_check" and len(state.excluded) < n_excluded:
                state = replace(state, judges=[*state.judges, *staff[:1]])
            asked, image = terms.asked(request), record.item.image.sha256
            if drafted := pre_annotations.get(image):
                use = terms.pre_annotation or campaign.pre_annotation(image)
                terms = terms._replace(pre_annotation=use) if request.round == "annotate" else terms
                drafted = None if use == "withheld" else drafted
            task = record_task(record.item, state, round=request.round, terms=terms, pre_annotation=drafted)
            if asked.base_annotation:  # the server deletes a task that was not begun when its base is corrected
                task["data"]["base"] = [*asked.frozen]
            yield PendingTask(asked._replace(overlap=asked.n_wanted + len(state.excluded)), task, terms)


def _next_requests(
    campaign: Campaign, record: Record, recorded: Container[str]
) -> Iterator[tuple[TaskRequest, RecordState]]:
    """The round the record waits for; parallel to an acceptance, a check of the record with a planted error, which no
    one gets who has seen the record. One that was handed out, or is ``recorded``, stays of its kind."""
    item, tasks, state = record
    if state.stage != "waiting":
        return
    waiting = state.next_request or record.current_task.request
    yield waiting, state
    if waiting.round != "accept" or waiting.attempt or waiting.serial or state.fields is None:
        return
    request = waiting._replace(round="cross_check", n_wanted=1, bases="")
    stored = {task.request.planted_error for task in tasks}
    kinds = [e for e in ERRORS if e in stored or request._replace(planted_error=e).key(campaign.name) in recorded]
    if kinds or is_selected(campaign.gold_share, "gold", campaign.name, item.image.sha256, seed=campaign.seed):
        seed = f"{campaign.name} {item.image.sha256}" + (f" {campaign.seed}" if campaign.seed else "")
        planted = plant(state.fields, (item.image.width, item.image.height), seed=seed, errors=kinds or ERRORS)
        if planted is not None:
            experts = {verdict.person_id for verdict in state.verdicts}
            judges = [person for person in (*state.judges, *_checkers(tasks)) if person not in experts]
            yield request._replace(planted_error=planted.kind), replace(state, fields=planted.fields, judges=judges)


def _checkers(tasks: Iterable[RecordTask]) -> list[int]:
    """Everybody who was served a check and skipped it or submitted something, valid or not."""
    raws = (version.raw for task in tasks if task.request.round == "cross_check" for version in task.versions)
    signed = (raw.get("completed_by") for raw in raws if raw.get("result") or raw.get("was_cancelled"))
    return [person for person in signed if isinstance(person, int)]


def record_task(
    item: PoolImage, state: RecordState, *, round: str, terms: Terms, pre_annotation: Prediction | None = None
) -> dict[str, Any]:
    """The task of a round, which the server's gate reads; ``pre_annotation`` is for the first round."""
    image = item.image
    data: dict[str, Any] = {
        "image": f"/darkroom/images/{item.shown.sha256}",
        "gate": terms.gate(round, (image.width, image.height)),
    }
    if round in ("annotate", "rework"):
        data["rules"] = rules_shown(image.width, image.height, terms.max_share)
    if state.fields is None and pre_annotation is not None:
        data["rules"] += f"\n\n{PRE_ANNOTATED}"
    if round == "rework":
        data["reasons"] = reasons_shown(state) + conversation_shown(state)
    if round == "cross_check":
        data["gate"]["blind_first"] = True  # the server shows the record to whoever has given an own answer
    if round in ("cross_check", "accept") and state.fields is not None:
        data["question_shown"] = f"**Question:** {plain(state.fields.question)}"
        data["record_shown"] = record_shown(state.fields) + conversation_shown(state)
    task: dict[str, Any] = {"data": data}
    if round != "annotate" and state.fields is not None:
        task["predictions"] = [{"model_version": PREFILLED, "result": results(state.fields, item)}]
    elif pre_annotation is not None:
        task["predictions"] = [dict(pre_annotation)]
    if state.excluded:
        # Label Studio serves no task to an account with an annotation on it; ground_truth is true by default
        task["annotations"] = [{"completed_by": p, "result": [], "ground_truth": False} for p in state.excluded]
    return task


def results(fields: RecordFields, item: PoolImage) -> list[dict[str, Any]]:
    """A record as Label Studio's result list, for a prediction; its boxes are in pixels of the original image."""
    frame = {"original_width": item.shown.width, "original_height": item.shown.height, "image_rotation": 0}
    entries: list[dict[str, Any]] = []
    for number, box in enumerate(fields.boxes, 1):
        value = {**to_percent(box, item.image.width, item.image.height), "rectanglelabels": ["target"]}
        entries.append({**_result("box", "rectanglelabels", value), "id": f"box{number}", **frame})
    if fields.category:
        entries.append(_result("category", "choices", {"choices": [fields.category]}))
    for name, text in (("question", fields.question), ("answer", fields.answer)):
        if text:
            entries.append(_result(name, "textarea", {"text": [text]}))
    if fields.count is not None:
        entries.append(_result("count", "number", {"number": fields.count}))
    return entries


def _result(name: str, kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": name, "from_name": name, "to_name": "image", "type": kind, "value": dict(value)}


def record_shown(fields: RecordFields) -> str:
    titles = {category.name: category.title for category in CATEGORIES}
    count = "" if fields.count is None else f"\n\n**Count:** {fields.count}"
    category = titles.get(fields.category, fields.category)
    return f"**Answer:** {plain(fields.answer)}\n\n**Category:** {category}{count}"


def conversation_shown(state: RecordState) -> str:
    """The rejection before the last rewriting, and the author's reply, without names; empty without any."""
    history = state.history
    place = max((n for n, event in enumerate(history) if event.round == "rework"), default=0)
    if not place:
        return ""
    reply = history[place].comment
    answer = f"\n\n**The author's reply:** “{plain(reply)}”" if reply else ""
    return f"\n\n**Rejected before:**\n\n{_objections(history[:place])}{answer}"


def reasons_shown(state: RecordState) -> str:
    against = _objections(state.history)
    return f"**This record was rejected:**\n\n{against}\n\nCorrect it, or ask something better about the image."


def _objections(history: Sequence[AnnotationEvent]) -> str:
    """The reasons and comments of the last round's rejection, without names."""
    titles, last = {reason.name: reason.title for reason in REASONS}, history[-1]
    here = (last.round, last.attempt)
    against = [e for e in history if (e.round, e.attempt) == here and e.verdict in ("fix", "reject")]
    texts: list[str] = []
    for event in against or [last]:
        texts += [plain(titles.get(reason, reason)) for reason in event.reasons]
        texts += [
            f"{c.name.capitalize()}: “{plain(c.before)}” → “{plain(c.after)}”" if c.name != "boxes" else "Other boxes"
            for c in event.changes
        ]
        texts += [f"“{plain(event.comment)}”"] if event.comment else []
    return "\n".join(f"- {line}" for line in dict.fromkeys(texts))


def plain(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text).replace("\n", "  \n")


def to_percent(box: tuple[int, int, int, int], original_width: int, original_height: int) -> dict[str, float]:
    """The inverse of ``to_corners``. Raises ``ValueError`` for a box that does not fit the image."""
    pixels = Box(*box)
    if not pixels.fits(original_width, original_height):
        raise ValueError(f"{tuple(box)} is no box inside {original_width}x{original_height} pixels")
    return {
        "x": 100 * pixels.x1 / original_width,
        "y": 100 * pixels.y1 / original_height,
        "width": 100 * pixels.width / original_width,
        "height": 100 * pixels.height / original_height,
        "rotation": 0,
    }
