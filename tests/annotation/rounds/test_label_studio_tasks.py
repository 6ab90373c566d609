from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from markdown_it import MarkdownIt

from darkroom.annotation._plugin.darkroom_studio.content import rules_shown
from darkroom.annotation.rounds.campaign import Campaign, Terms, terms_of
from darkroom.annotation.rounds.next_tasks import plain, record_task, results
from darkroom.annotation.rounds.submissions import RecordFields, RecordState, read_submission
from darkroom.pipelines.records import AnnotationEvent, ImageRef, PoolImage
from darkroom.pipelines.records.geometry import Box
from tests.annotation.desk import ANN, BOB, ITEM, SIZE

IMAGE = ImageRef(ITEM, *SIZE, "RGB", "JPEG")
ITEM_OF_POOL = PoolImage(IMAGE, "ours", "a.jpg", "CC0-1.0")
TERMS = terms_of(Campaign(), "annotate")
FIELDS = RecordFields("Which number?", "42", "quantity", 42, (Box(10, 20, 110, 80), Box(0, 0, 1, 1)))


def waiting(round: str, **more: object) -> RecordState:
    judges = [] if round == "cross_check" else [BOB]
    return replace(
        RecordState(ITEM, round=round, fields=FIELDS, authors=[ANN], judges=judges, sent_back_by=[BOB]), **more
    )


def test_a_prediction_reads_as_the_record_that_it_was_made_from() -> None:
    raw = {"id": 1, "completed_by": ANN, "result": results(FIELDS, ITEM_OF_POOL)}
    assert read_submission(raw, Terms(0.05, 2).gate("annotate", SIZE)).fields == FIELDS


@pytest.mark.parametrize(
    ("round", "seats", "shown"),
    [
        ("annotate", [], {"rules"}),
        ("cross_check", [ANN], {"question_shown", "record_shown"}),
        ("accept", [ANN, BOB], {"question_shown", "record_shown"}),
    ],
)
def test_a_task_shows_what_its_round_needs_and_no_name(round: str, seats: list[int], shown: set[str]) -> None:
    task = record_task(ITEM_OF_POOL, waiting(round), round=round, terms=TERMS)
    assert set(task["data"]) == {"image", "gate"} | shown
    assert task["data"]["gate"].items() >= TERMS.gate(round, SIZE).items()
    assert [one["completed_by"] for one in task.get("annotations", [])] == seats
    assert all(one["ground_truth"] is False and one["result"] == [] for one in task.get("annotations", []))
    assert "example.com" not in str(task)


def test_a_rework_says_why_and_not_who() -> None:
    event = AnnotationEvent(
        "cross_check", 0, "bob@example.com", "", 1.0, "reject", ("too_easy",), "look *again*", "41", False, (), 3, 4
    )
    task = record_task(ITEM_OF_POOL, waiting("rework", history=[event]), round="rework", terms=TERMS)
    assert "Answerable without looking closer" in task["data"]["reasons"]
    assert "look \\*again\\*" in task["data"]["reasons"]
    assert "bob" not in str(task)
    assert [one["completed_by"] for one in task["annotations"]] == [BOB]
    assert task["predictions"][0]["result"], "the record is there to be corrected"


def test_a_policys_record_is_a_prediction_of_the_first_round_only() -> None:
    written = {"model_version": "policy qwen", "result": []}
    first = record_task(ITEM_OF_POOL, RecordState(ITEM), round="annotate", terms=TERMS, pre_annotation=written)
    assert first["predictions"] == [written]
    assert "A model filled this in" in first["data"]["rules"]
    later = record_task(ITEM_OF_POOL, waiting("cross_check"), round="cross_check", terms=TERMS, pre_annotation=written)
    assert later["predictions"][0]["model_version"] == "the record"


def test_the_rule_is_said_in_the_images_own_pixels() -> None:
    said = rules_shown(*SIZE, 0.05)
    assert "4,000 × 3,000" in said
    assert "600,000 pixels" in said
    assert "774 × 774" in said


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=40))
def test_peoples_words_are_shown_as_they_are(words: str) -> None:
    html = MarkdownIt().render(f"**Answer:** {plain(words)}")
    tokens = MarkdownIt().parse(f"**Answer:** {plain(words)}")
    shown = "".join(child.content for child in tokens[1].children or [] if child.type in ("text", "text_special"))
    assert shown == f"Answer: {words}", html
