"""The limits of the rounds, without a server: terms, shares, verdicts, versions, boxes, planted errors, sentences."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from darkroom.annotation import AnnotationError
from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.rounds import planted_errors
from darkroom.annotation.rounds.accepted_source import as_shown, to_sample
from darkroom.annotation.rounds.campaign import Campaign, Terms, is_selected, require_experts, shortages, terms_of
from darkroom.annotation.rounds.doctor import RoundReport
from darkroom.annotation.rounds.journal_file import (
    AnnotationVersion,
    RecordTask,
    RoundProject,
    StoredTask,
    TaskRequest,
    version_digest,
)
from darkroom.annotation.rounds.next_tasks import (
    conversation_shown,
    reasons_shown,
    record_shown,
    record_task,
    results,
    to_percent,
)
from darkroom.annotation.rounds.planted_errors import plant
from darkroom.annotation.rounds.state_machine import common_version, email_of
from darkroom.annotation.rounds.submissions import (
    Record,
    RecordFields,
    RecordState,
    Verdict,
    frozen_bases,
    signer_of,
    used_version,
)
from darkroom.annotation.rounds.sync import SyncPreview, preview_role, pulled_since
from darkroom.annotation.rounds.tables import ACCEPTED, ANNOTATIONS, CROSS_CHECKS, has_reached
from darkroom.pipelines.records import Annotated, AnnotationEvent, FieldChange, ImageRef, PoolImage, TruthBox
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from tests.annotation.desk import ANN, BOB, CEM, EVE, ITEM, PEOPLE, SIZE

IMAGE = ImageRef(ITEM, *SIZE, "RGB", "JPEG")
POOL_IMAGE = PoolImage(IMAGE, "ours", "a.jpg", "CC0-1.0")
FIELDS = RecordFields("Which?", "red", "attribute", None, (Box(10, 20, 110, 80),))
TERMS = Terms(0.05, 2)


def test_a_share_is_of_13_hexadecimal_digits():
    chosen = [n for n in range(300) if is_selected(0.25, "a", str(n))]
    assert chosen == [n for n in range(300) if int(digest(["a", str(n)])[:13], 16) < 0.25 * 16**13]
    seeded = [n for n in range(300) if is_selected(0.25, "a", str(n), seed=9)]
    assert seeded == [n for n in range(300) if int(digest(["a", str(n), 9])[:13], 16) < 0.25 * 16**13]


def test_a_missing_seed_is_the_secret():
    assert Campaign(seed=3).seeded(7).seed == 3
    assert Campaign().seeded(7).seed == 7
    assert Campaign().seed == 0


def test_an_image_is_of_one_part():
    half = Campaign(pre_annotated_share=0.5, seed=4)
    parts = Counter(half.pre_annotation(f"item {n}") for n in range(400))
    assert parts.keys() == {"shown", "withheld"}
    assert 150 < parts["shown"] < 250
    assert {Campaign(seed=4).pre_annotation(f"item {n}") for n in range(50)} == {"all"}
    assert {half.model_copy(update={"pre_annotated_share": 0}).pre_annotation(str(n)) for n in range(50)} == {
        "withheld"
    }


@pytest.mark.parametrize(
    ("fields", "ok"),
    [
        ({"max_share": 0.0}, False),
        ({"max_share": 1.0}, True),
        ({"max_share": 1.01}, False),
        ({"min_side": 0}, True),
        ({"min_side": -1}, False),
        ({"n_images": 1}, True),
        ({"n_images": 0}, False),
        ({"max_rework": 0}, True),
        ({"max_rework": -1}, False),
        ({"experts_per_record": 1}, True),
        ({"experts_per_record": 15}, True),
        ({"experts_per_record": 0}, False),
        ({"experts_per_record": 16}, False),
        ({"checked_twice": 1}, True),
        ({"checked_twice": -0.1}, False),
        ({"checked_twice": 1.1}, False),
        ({"gold_share": 1}, True),
        ({"gold_share": -0.1}, False),
        ({"gold_share": 1.1}, False),
        ({"pre_annotated_share": 0}, True),
        ({"pre_annotated_share": 1.1}, False),
        ({"pre_annotated_share": -0.1}, False),
        ({"rates": {"hour": 0}}, True),
        ({"rates": {"hour": -1}}, False),
        ({"rates": {"hour": float("inf")}}, False),
        ({"currency": "EURO"}, False),
        ({"unknown": 1}, False),
    ],
)
def test_rules_have_limits(fields: dict[str, Any], ok: bool):
    if ok:
        assert Campaign(**fields)
        return
    with pytest.raises(ValueError, match=next(iter(fields))):
        Campaign(**fields)


def test_the_rules_of_the_paper_hold_by_default():
    rules = Campaign()
    assert (rules.min_side, rules.max_share, rules.max_rework, rules.experts_per_record) == (2048, 0.05, 2, 1)
    assert (rules.checked_twice, rules.gold_share, rules.pre_annotated_share) == (0, 0.05, 1)
    assert (rules.annotators_check, rules.expert_rule, rules.n_images) == (True, "majority", None)


def test_verdicts_and_rules_are_of_their_round():
    terms = TERMS._replace(experts_per_record=3, checked_twice=0.5, seed=2, expert_rule="majority")
    twice = [f"item {n}" for n in range(60) if terms.n_verdicts("cross_check", f"item {n}") == 2]
    assert twice == [f"item {n}" for n in range(60) if is_selected(0.5, "checked twice", f"item {n}", seed=2)]
    assert {terms.n_verdicts("cross_check", f"item {n}") for n in range(60)} == {1, 2}
    assert [terms.n_verdicts(round, twice[0]) for round in ("annotate", "rework", "accept")] == [1, 1, 3]
    assert TERMS.n_verdicts("accept", "x") == 1
    assert [terms.rule(round) for round in ("accept", "cross_check")] == ["majority", "unanimity"]
    assert terms._replace(expert_rule="unanimity").rule("accept") == "unanimity"


def test_terms_of_a_round_have_what_it_needs():
    rules = Campaign(experts_per_record=3, expert_rule="unanimity", checked_twice=0.2, seed=5)
    accept, check, annotate = (terms_of(rules, round) for round in ("accept", "cross_check", "annotate"))
    assert (accept.experts_per_record, accept.expert_rule, accept.checked_twice, accept.seed) == (3, "unanimity", 0, 0)
    assert (check.experts_per_record, check.expert_rule, check.checked_twice, check.seed) == (1, "majority", 0.2, 5)
    assert (annotate.experts_per_record, annotate.checked_twice, annotate.seed) == (1, 0, 0)
    assert terms_of(rules.model_copy(update={"checked_twice": 0}), "cross_check").seed == 0
    assert len(annotate.form) == len(annotate.digest) == 20
    assert Terms.from_json(json.dumps(accept._asdict())) == accept


def test_a_gate_is_the_rules_of_an_image_of_this_size():
    gate = TERMS.gate("accept", (40, 30))
    assert (gate["kind"], gate["width"], gate["height"], gate["max_share"]) == ("accept", 40, 30, 0.05)
    assert gate["accept_needs_box"] is False, "of a version without forms"
    assert TERMS._replace(form="f").gate("accept", (40, 30))["accept_needs_box"] is True


def test_a_first_request_is_for_as_many_as_the_terms_ask():
    terms = TERMS._replace(experts_per_record=3)
    request = TaskRequest("accept", "item", 0, 0, overlap=3, n_wanted=1)
    asked = terms.asked(request)
    assert (asked.n_wanted, asked.overlap) == (3, 5), "two are excluded"
    for other in (request._replace(serial=1), request._replace(planted_error="moved_box")):
        assert terms.asked(other) is other


def test_changes_of_terms_are_named():
    after = TERMS._replace(max_share=0.1, expert_rule="unanimity", reasons=("other",))
    assert after.changes(TERMS) == [
        "max_share 0.05 -> 0.1",
        "expert_rule majority -> unanimity",
        "a new version of the form",
    ]
    assert TERMS.changes(TERMS) == []
    assert TERMS._replace(form="new").changes(TERMS) == TERMS._replace(categories=()).changes(TERMS)
    assert TERMS._replace(pre_annotation="all").changes(TERMS) == []


def account(role: str) -> dict[str, Any]:
    return {"role": role, "is_active": True}


def test_few_people_are_counted_in_words():
    short = shortages(Campaign(), [account("annotator"), account("expert")])
    command = "`darkroom annotate users add EMAIL --role annotator`"
    assert short == {"annotator": f"1 annotator; this campaign needs at least 3 ({command})"}
    assert shortages(Campaign(), [])["expert"].startswith("0 experts; this campaign needs at least 1 (")


@pytest.mark.parametrize(("n_wanted", "n_experts", "is_short"), [(1, 0, False), (2, 1, True), (2, 2, False)])
def test_experts_are_required_where_several_judge(n_wanted: int, n_experts: int, is_short: bool):
    rules = Campaign(experts_per_record=n_wanted)
    if not is_short:
        require_experts(rules, [account("expert")] * n_experts)
        return
    with pytest.raises(AnnotationError, match="too few experts: 1 expert;"):
        require_experts(rules, [account("expert")] * n_experts)


OTHER, THIRD = replace(FIELDS, answer="blue"), replace(FIELDS, answer="green")


@pytest.mark.parametrize(
    ("versions", "majority", "unanimous"),
    [
        ([FIELDS], FIELDS, FIELDS),
        ([None], None, None),
        ([FIELDS, FIELDS], FIELDS, FIELDS),
        ([FIELDS, OTHER], None, None),
        ([FIELDS, None], None, None),
        ([FIELDS, FIELDS, None], FIELDS, None),
        ([OTHER, FIELDS, OTHER], OTHER, None),
        ([FIELDS, OTHER, THIRD], None, None),
        ([FIELDS, FIELDS, OTHER, None], None, None),
        ([FIELDS, FIELDS, FIELDS, None], FIELDS, None),
    ],
)
def test_a_version_needs_more_than_half_or_all_verdicts(versions, majority, unanimous):
    verdicts = [Verdict(n, fields) for n, fields in enumerate(versions)]
    assert common_version(verdicts, "majority") == majority
    assert common_version(verdicts, "unanimity") == unanimous


def test_of_versions_that_differ_in_the_order_of_boxes_the_smallest_is_the_record():
    one, two = Box(0, 0, 5, 5), Box(9, 9, 12, 12)
    versions = [replace(FIELDS, boxes=boxes) for boxes in ((two, one), (one, two), (two, one))]
    assert common_version([Verdict(n, of) for n, of in enumerate(versions)], "unanimity").boxes == (one, two)


def test_changes_of_a_record_are_by_field_and_boxes_have_no_order():
    boxes = (Box(0, 0, 5, 5), Box(9, 9, 12, 12))
    before, after = replace(FIELDS, boxes=boxes), replace(FIELDS, boxes=boxes[::-1])
    assert after.changes(before) == ()
    changed = replace(after, answer="blue", count=2, boxes=boxes[:1])
    assert changed.changes(before) == (
        FieldChange("answer", "red", "blue"),
        FieldChange("count", "null", "2"),
        FieldChange("boxes", "[[0, 0, 5, 5], [9, 9, 12, 12]]", "[[0, 0, 5, 5]]"),
    )


def version(number: int, annotation: int = 7, **raw: Any) -> AnnotationVersion:
    return AnnotationVersion(number, annotation, f"d{number}", 3, {"id": annotation, **raw})


@pytest.mark.parametrize(
    ("base", "planted", "used"), [("", "", 2), ("d0", "", 0), ("d9", "", 2), ("d1", "moved_box", 0)]
)
def test_the_base_of_a_later_round_is_read_else_the_latest_version(base, planted, used):
    task = RecordTask(TaskRequest("annotate", ITEM, 0, 0, planted_error=planted), 3, 9)
    versions = [version(n) for n in range(3)]
    assert used_version(task, versions, {7: base} if base else {}) is versions[used]


def test_bases_of_all_who_judged_are_frozen():
    requests = [
        TaskRequest("annotate", ITEM, 0, 0),
        TaskRequest("cross_check", ITEM, 0, 0, 7, "d7"),
        TaskRequest("accept", ITEM, 0, 0, 8, "d8", bases='[[9, "d9"]]'),
    ]
    assert frozen_bases([RecordTask(request, 1, 1) for request in requests]) == {0: "", 7: "d7", 8: "d8", 9: "d9"}


def test_annotations_come_oldest_first_with_their_versions():
    task = RecordTask(TaskRequest("annotate", ITEM, 0, 0), 3, 9, [version(0, 9), version(1, 7), version(2, 9)])
    assert [[one.seq for one in versions] for versions in task.annotations] == [[1], [0, 2]]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ({"completed_by": 3}, None),
        ({"completed_by": 3, "updated_by": 3}, None),
        ({"completed_by": 3, "updated_by": 4}, Reason.FORGED_SUBMISSION),
        ({"updated_by": 4}, Reason.FORGED_SUBMISSION),
        ({}, Reason.BROKEN_SUBMISSION),
        ({"completed_by": "3"}, Reason.BROKEN_SUBMISSION),
    ],
)
def test_a_submission_is_signed_by_who_entered_it(raw, reason):
    if reason is None:
        assert signer_of(raw) == 3
        return
    with pytest.raises(RowError) as raised:
        signer_of(raw)
    assert raised.value.reason is reason


def test_a_versions_digest_is_of_what_people_change_and_of_a_foreign_editor():
    raw = {"completed_by": 3, "result": ["x"], "lead_time": 1.0}
    assert version_digest(raw | {"updated_by": 3}) == version_digest(raw | {"updated_by": None}) == version_digest(raw)
    changes = ({"updated_by": 4}, {"result": []}, {"lead_time": 2.0}, {"was_cancelled": True}, {"ground_truth": True})
    assert len({version_digest(raw | change) for change in ({}, *changes)}) == 6
    assert version_digest(raw | {"created_at": "later"}) == version_digest(raw)


def test_a_task_is_finished_with_as_many_submissions_as_it_wants():
    task = StoredTask(1, "k", "", overlap=4, n_wanted=2, n_submissions=2)
    assert task.is_finished
    assert not task._replace(n_submissions=1).is_finished


def test_authors_and_judges_do_not_judge_and_who_sent_it_back_does_not_rework_it():
    state = RecordState(ITEM, authors=[ANN, BOB], judges=[BOB, CEM], sent_back_by=[EVE])
    for round, excluded in (
        ("annotate", []),
        ("cross_check", [ANN, BOB, CEM]),
        ("accept", [ANN, BOB, CEM]),
        ("rework", [EVE]),
    ):
        assert replace(state, round=round).excluded == excluded
    waiting = replace(state, n_verdicts=3, verdicts=[Verdict(1, None)])
    assert (waiting.n_missing, RecordState(ITEM).n_missing) == (2, 1)


def test_the_current_task_is_the_last_of_the_round_without_an_error():
    requests = [
        TaskRequest("cross_check", ITEM, 1, 0),
        TaskRequest("cross_check", ITEM, 1, 1),
        TaskRequest("cross_check", ITEM, 0, 2),
        TaskRequest("cross_check", ITEM, 2, 0, planted_error="moved_box"),
        TaskRequest("accept", ITEM, 3, 0),
    ]
    tasks = [RecordTask(request, n, 1) for n, request in enumerate(requests)]
    assert Record(POOL_IMAGE, tasks, RecordState(ITEM, round="cross_check")).current_task.task_id == 1
    assert Record(POOL_IMAGE, tasks, RecordState(ITEM, round="accept")).current_task.task_id == 4


@pytest.mark.parametrize(
    ("round", "stage", "n_passed"),
    [
        ("annotate", "waiting", 0),
        ("rework", "waiting", 0),
        ("cross_check", "waiting", 1),
        ("accept", "waiting", 2),
        ("accept", "rejected", 2),
        ("accept", "accepted", 3),
    ],
)
def test_a_record_has_reached_the_tables_that_it_passed(round, stage, n_passed):
    state = RecordState(ITEM, round=round, stage=stage)
    assert [has_reached(state, key) for key in (ANNOTATIONS, CROSS_CHECKS, ACCEPTED)] == [
        n < n_passed for n in range(3)
    ]


def test_an_account_that_is_unknown_is_named_by_its_number():
    people = {person.person_id: person for person in PEOPLE}
    assert [email_of(number, people) for number in (ANN, 99, None, "2")] == [
        "ann@example.com",
        "account 99",
        "account None",
        "account 2",
    ]


def annotated(*boxes: TruthBox, view_of: ImageRef = IMAGE) -> Annotated:
    return Annotated(view_of, "ours", "a.jpg", "CC0-1.0", "Which?", "red", "attribute", None, boxes, 0, False, ())


def test_a_record_about_a_view_has_the_smallest_boxes_that_cover_the_same():
    view = ImageRef("v" * 64, 1000, 750, "RGB", "JPEG")
    row = annotated(TruthBox("target", 10, 21, 111, 80))
    shown = as_shown(row, view)
    assert (shown.image, shown.boxes[0].box, shown.boxes[0].label) == (view, Box(2, 5, 28, 20), "target")
    assert as_shown(row, None) is row
    sample = to_sample(row, campaign="streets")
    assert (sample.source, sample.source_row, sample.truth.boxes) == ("annotation/streets", "a.jpg", row.boxes)
    assert sample.sample_id != to_sample(replace(row, answer="blue"), campaign="streets").sample_id
    assert sample.sample_id == to_sample(row, campaign="other").sample_id


def test_a_box_is_percent_of_the_image_with_its_edges():
    assert to_percent((0, 0, 400, 300), 400, 300) == {"x": 0, "y": 0, "width": 100, "height": 100, "rotation": 0}
    assert to_percent((100, 30, 300, 90), 400, 300) == {"x": 25, "y": 10, "width": 50, "height": 20, "rotation": 0}
    for box in ((0, 0, 401, 300), (-1, 0, 5, 5), (5, 5, 5, 9), (0, 0, 400, 301)):
        with pytest.raises(ValueError, match="is no box inside 400x300"):
            to_percent(box, 400, 300)


def test_a_record_is_a_list_of_what_it_has():
    view = replace(POOL_IMAGE, view=ImageRef("v" * 64, 1000, 750, "RGB", "JPEG"))
    entries = results(replace(FIELDS, boxes=(Box(0, 0, 400, 300), Box(400, 300, 800, 600)), count=0), view)
    assert [entry["id"] for entry in entries] == ["box1", "box2", "category", "question", "answer", "count"]
    assert (entries[0]["original_width"], entries[0]["original_height"], entries[0]["image_rotation"]) == (1000, 750, 0)
    assert (entries[1]["value"]["x"], entries[1]["value"]["width"]) == (10, 10), "percent of the original"
    assert entries[-1]["value"] == {"number": 0}
    assert results(RecordFields("", "", "", None, ()), view) == []


def waiting(round: str = "cross_check", **more: Any) -> RecordState:
    return replace(RecordState(ITEM, round=round, fields=FIELDS, authors=[ANN]), **more)


def test_a_task_has_what_its_round_shows():
    check = record_task(POOL_IMAGE, waiting(), round="cross_check", terms=TERMS)
    assert check["data"]["image"] == f"/darkroom/images/{ITEM}"
    assert check["data"]["gate"]["blind_first"] is True
    assert check["predictions"][0]["model_version"] == "the record"
    assert check["annotations"] == [{"completed_by": ANN, "result": [], "ground_truth": False}]
    accept = record_task(POOL_IMAGE, waiting("accept"), round="accept", terms=TERMS)
    assert "blind_first" not in accept["data"]["gate"]
    assert accept["data"]["question_shown"] == "**Question:** Which?"
    first = record_task(POOL_IMAGE, RecordState(ITEM), round="annotate", terms=TERMS)
    assert first.keys() == {"data"}
    assert first["data"].keys() == {"image", "gate", "rules"}
    again = record_task(POOL_IMAGE, waiting("annotate"), round="annotate", terms=TERMS)
    assert "predictions" not in again, "a first record is written from nothing"
    draft = {"model_version": "m", "result": []}
    kept = record_task(POOL_IMAGE, waiting("annotate"), round="annotate", terms=TERMS, pre_annotation=draft)
    assert (kept["predictions"], "A model filled" in kept["data"]["rules"]) == ([draft], False)


def test_a_count_of_zero_is_shown_and_a_category_by_its_title():
    shown = record_shown(replace(FIELDS, category="ocr", count=0))
    assert shown.startswith("**Answer:** red\n\n**Category:** ")
    assert shown.endswith("\n\n**Count:** 0")
    assert "**Category:** ocr" not in shown
    assert record_shown(replace(FIELDS, category="mystery")) == "**Answer:** red\n\n**Category:** mystery"


def event(verdict: str, *reasons: str, round: str = "accept", attempt: int = 1, comment: str = "", changes=()) -> Any:
    return AnnotationEvent(round, attempt, "p@x", "", 1.0, verdict, reasons, comment, "", None, tuple(changes), 3, 4)


def test_a_rework_names_the_reasons_of_all_in_the_last_round_who_spoke_against_it():
    fix = event("fix", changes=[FieldChange("answer", "a*", "b"), FieldChange("boxes", "[]", "[[]]")])
    history = [
        event("reject", "too_easy", attempt=0),
        event("reject", "earlier", round="cross_check"),
        event("accept", comment="fine"),
        fix,
        event("reject", "mine", comment="no!"),
        event("reject", "mine"),
    ]
    lines = reasons_shown(waiting("rework", history=history)).splitlines()[2:-2]
    assert lines == ["- Answer: “a\\*” → “b”", "- Other boxes", "- mine", "- “no\\!”"]
    void = reasons_shown(waiting("rework", history=[event("reject", "other"), event("void", "no box", attempt=2)]))
    assert void.splitlines()[2:-2] == ["- no box"]


def test_who_checks_a_rewritten_record_reads_what_was_said_against_it_and_the_reply():
    rejected = event("reject", "ambiguous", round="cross_check", attempt=0, comment="two signs")
    written, reply = event("", round="annotate", attempt=0), event("", round="rework", comment="only one is *red*")
    said = "\n\n**Rejected before:**\n\n- Ambiguous question\n- “two signs”"
    replied = f"{said}\n\n**The author's reply:** “only one is \\*red\\*”"
    assert conversation_shown(waiting(history=[written])) == ""
    assert conversation_shown(waiting(history=[written, rejected])) == "", "the reasons are shown where it is rewritten"
    assert conversation_shown(waiting(history=[written, rejected, replace(reply, comment="")])) == said
    later = [event("accept", round="cross_check"), event("reject", "mine")]
    for history in ([written, rejected, reply], [written, rejected, reply, *later]):
        assert conversation_shown(waiting(history=history)) == replied
    state = waiting("rework", history=[written, rejected, reply, *later])
    assert record_task(POOL_IMAGE, state, round="rework", terms=TERMS)["data"]["reasons"].endswith(replied)


def words(**lists: Any) -> RecordFields:
    return RecordFields("Which?", lists.pop("answer"), lists.pop("category", "attribute"), lists.pop("count", None), ())


def answers(fields: RecordFields, error: str = "wrong_answer", n_seeds: int = 40) -> set[str]:
    planted = (plant(fields, SIZE, seed=seed, errors=[error]) for seed in range(n_seeds))
    return {one.fields.answer for one in planted if one is not None}


@pytest.mark.parametrize(
    ("answer", "category", "found"),
    [
        ("left", "location", {"right"}),
        ("left or right", "location", set()),  # two words of one list
        ("Left 4", "location", {"Right 4"}),
        ("4", "location", set("12356789")),
        ("14", "location", {*(f"1{n}" for n in "12356789"), *(f"{n}4" for n in "23456789")}),
        ("x", "ocr", set("abcdefghijklmnopqrstuvwyz")),
        ("4x", "ocr", {f"{n}x" for n in "12356789"}),  # a digit before a letter
        ("Q" * 25, "ocr", set()),
    ],
)
def test_a_wrong_answer_is_the_plainest_error(answer, category, found):
    assert answers(words(answer=answer, category=category), n_seeds=400) == found


def test_letters_are_changed_in_texts_of_at_most_24_characters():
    assert all(len(one) == 24 for one in answers(words(answer="Q" * 24, category="ocr")))
    assert answers(words(answer="Q" * 24, category="ocr"))


@pytest.mark.parametrize(
    ("answer", "count", "found"),
    [
        ("3", 3, {"1", "2", "4", "5"}),
        ("0 of 10", 0, {"1 of 10", "2 of 10"}),
        ("1", 1, {"0", "2", "3"}),
        ("3 and 3", 3, {"1 and 3", "2 and 3", "4 and 3", "5 and 3"}),  # the first one
        ("Three or three", 3, {"One or three", "Two or three", "Four or three", "Five or three"}),
        ("13", 3, {"13"}),
        ("3.5", 3, {"3.5"}),
        ("2.3", 3, {"2.3"}),
        ("3.", 3, {"1.", "2.", "4.", "5."}),
        ("ten", 10, {"eight", "nine", "eleven", "twelve"}),
        ("twelve", 12, {"ten", "eleven", "twelve"}),  # there are no words for 13 and 14
        ("14", 14, {"12", "13", "15", "16"}),
    ],
)
def test_a_wrong_count_is_off_by_one_or_two_and_stands_in_the_answer(answer, count, found):
    assert answers(words(answer=answer, category="quantity", count=count), "wrong_count") == found


@pytest.mark.parametrize(("category", "count"), [("quantity", None), ("attribute", 3)])
def test_a_count_is_wrong_only_of_a_quantity(category, count):
    assert answers(words(answer="3", category=category, count=count), "wrong_count") == set()


def test_a_wrong_category_has_no_count():
    planted = plant(words(answer="3", category="quantity", count=3), SIZE, seed=1, errors=["wrong_category"])
    assert (planted.kind, planted.fields.count) == ("wrong_category", None)


def test_a_moved_box_stays_in_the_image_and_half_its_size_away_from_every_target():
    targets = (Box(0, 0, 20, 10), Box(60, 30, 100, 50))
    fields = replace(FIELDS, boxes=targets)
    moved, at = set(), Counter[int]()
    for seed in range(200):
        boxes = plant(fields, (100, 50), seed=seed, errors=["moved_box"]).fields.boxes
        assert len(boxes) == 2
        ((position, box),) = [(n, box) for n, box in enumerate(boxes) if box != targets[n]]
        assert (box.width, box.height) == (targets[position].width, targets[position].height)
        assert box.fits(100, 50)
        around = Box(
            box.x1 - box.width // 2, box.y1 - box.height // 2, box.x2 + box.width // 2, box.y2 + box.height // 2
        )
        assert not any(around.intersection(target).area for target in targets)
        moved.add(box)
        at[position] += 1
    assert at.keys() == {0, 1}
    small = [box for box in moved if box.width == 20]
    assert (max(box.x2 for box in small), min(box.x1 for box in small)) == (100, 0)
    assert max(box.y2 for box in small) == 50 or min(box.y1 for box in small) == 0
    gaps = [box.x1 - 20 for box in small if box.y1 < 15 and box.x1 >= 20]
    assert min(gaps) < 14, "no farther than it must"


def test_a_box_with_no_place_to_go_is_not_moved(monkeypatch):
    assert plant(replace(FIELDS, boxes=(Box(0, 0, 60, 50),)), (100, 50), seed=0, errors=["moved_box"]) is None
    assert planted_errors.ERRORS == ("wrong_answer", "moved_box", "wrong_category", "wrong_count")


def report(**more: Any) -> list[str]:
    return list(RoundReport("accept", RoundProject(7), **more).sentences())


def test_a_doctor_counts_and_lists_at_most_ten_tasks():
    assert report() == []
    assert report(changed=[4]) == [
        "accept, project 7: 1 task with other data than were handed out; --repair replaces what nobody has answered (4)"
    ]
    (ten,) = report(unfinished_missing=list(range(10)))
    assert ten == (
        "accept, project 7: 10 tasks missing, unfinished; --repair hands them out again (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)"
    )
    (more,) = report(unpulled=list(range(1200)))
    assert "1,200 tasks with submissions" in more
    assert more.endswith("(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …)")
    assert [line.rpartition("(")[2] for line in report(wrong_overlap={5: 1, 6: 2}, foreign=[9])] == ["5, 6)", "9)"]
    gone = report(project_is_missing=True, changed=[4], form_error="x")
    assert len(gone) == 1
    assert "the project is missing" in gone[0]
    assert report(form_error="another form", unheld=[1])[0] == "accept, project 7: another form"


def test_a_preview_says_what_keeps_its_terms_and_what_goes_out():
    preview = SyncPreview()
    assert list(preview.sentences()) == ["submitted work keeps its state", "would hand out: nothing"]
    preview.open_tasks.update({("annotate", "max_share 0.05 -> 0.1"): 1, ("accept", "x"): 1200, ("rework", ""): 3})
    preview.next_tasks.update({"annotate": 1200, "accept": 1, "rework": 0})
    assert list(preview.sentences()) == [
        "annotate: max_share 0.05 -> 0.1, for tasks handed out from now on; 1 open task keeps its terms",
        "accept: x, for tasks handed out from now on; 1,200 open tasks keep their terms",
        "submitted work keeps its state",
        "would hand out: 1,200 × annotate, 1 × accept",
    ]


def people(**roles: str) -> list[Person]:
    return [Person(n, name, name, role) for n, (name, role) in enumerate(roles.items())]


def previewed(role: str, *, of: str = "ann", **roles: str) -> list[str]:
    preview = SyncPreview()
    preview.open_tasks.update({("annotate", ""): 2, ("annotate", "x"): 1, ("accept", ""): 4})
    return list(preview_role(of, role, people(**roles), preview))


def test_a_new_or_the_same_role_changes_nothing_else():
    assert previewed("expert") == ["ann: new account, expert"]
    assert previewed("expert", ann="expert") == ["ann: expert already, nothing changes"]
    assert previewed("expert", ann="") == [
        "ann: no role -> expert; what they submitted, and what is handed out, keeps counting"
    ]


def test_a_role_that_is_left_names_the_rounds_and_who_is_left_for_them():
    first, lost, left = previewed("expert", ann="annotator", bob="annotator", cem="annotator")
    assert first.startswith("ann: annotator -> expert;")
    assert "they no longer open annotate, " in lost
    assert "open there: 3 × annotate, for 2 other annotators" in lost
    assert left.strip().startswith("2 annotators are left: a rejected record")
    enough = previewed("expert", ann="annotator", bob="annotator", cem="annotator", dan="annotator")
    assert len(enough) == 2
    with_checkers = previewed("expert", ann="annotator", bob="annotator", cem="checker", dan="checker")
    assert len(with_checkers) == 2
    few = previewed("expert", ann="annotator", cem="checker", dan="checker")
    assert few[-1].strip().startswith("0 annotators and 2 checkers are left")
    assert previewed("annotator", ann="expert")[-1].strip() == "nobody is left for accept"
    assert len(previewed("annotator", ann="expert", eve="expert")) == 2
    assert len(previewed("annotator", ann="checker")) == 1, "annotators check, too"


class Versions:
    def __init__(self, *versions: tuple[int, dict, dict | None]) -> None:
        self.versions_after = lambda number: versions


def test_an_annotation_that_is_new_and_edited_is_one_submission():
    x, y = {"result": ["x"]}, {"result": ["y"]}
    cancelled = {"result": ["x"], "was_cancelled": True}
    for versions, said in (
        ((), "0 submissions"),
        (((1, x, None),), "1 submission"),
        (((1, x, None), (1, y, x)), "1 submission"),
        (((1, {"result": []}, None),), "0 submissions"),
        (((1, y, x),), "0 submissions, 1 edited"),
        (((1, x | {"lead_time": 2}, x),), "0 submissions"),
        (((1, cancelled, x),), "0 submissions, 1 edited"),
        (((1, x | {"was_cancelled": False}, x),), "0 submissions"),
        (((1, cancelled, None), (2, y, x), (2, x, y)), "0 submissions, 1 skipped, 1 edited"),
    ):
        assert pulled_since(Versions(*versions), 0) == said
