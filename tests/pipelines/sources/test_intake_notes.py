"""Notes of intake beside its samples: columns that no mapping names, and rows that contradict each other."""

from __future__ import annotations

from dataclasses import replace

from darkroom.pipelines.sources import intake_notes
from darkroom.pipelines.sources.columns import Columns
from darkroom.pipelines.sources.ingest import ingest_shard
from darkroom.pipelines.sources.intake_notes import IntakeNotes, NoteLine, unread_in
from tests.pipelines.sources.given_rows import GivenRows

ROW = {"image": "a.png", "question": "Which?", "answer": "red", "id": 7, "extra": {"label": "red", "index": 0}, "x": ""}


def test_a_column_that_no_mapping_names_is_unread():
    assert unread_in(ROW, Columns()) == ("column id", "column extra")


def test_of_a_structure_the_fields_that_are_not_named_are_unread():
    assert unread_in(ROW, Columns(answer="extra.label", row_id="id")) == ("column answer", "field extra.index")


def test_of_answers_as_objects_the_other_fields_are_unread():
    row = {"image": "a.png", "question": "?", "answer": [{"answer": "red", "answer_confidence": "yes"}] * 10}
    assert unread_in(row, Columns()) == ("field answer_confidence of answers",)
    assert unread_in({**row, "answer": [{"from": "gpt", "value": "red"}]}, Columns()) == ()


def test_rows_that_contradict_each_other_are_named(store, mapped):
    first, again = mapped(), replace(mapped(), row="streets.jsonl:8", answer="blue")
    intake = ingest_shard(GivenRows(first, again, replace(again, question="Which shape?")), 0, store)
    assert len(intake.samples) == 3
    assert intake.notes == [
        NoteLine(
            1,
            "another answer to the same question about the same images, within a shard",
            "streets.jsonl:7 says 'red', streets.jsonl:8 'blue'",
        )
    ]


def test_an_image_on_very_many_rows_is_named(store, mapped, monkeypatch):
    monkeypatch.setattr(intake_notes, "MANY_ROWS", 3)
    rows = [replace(mapped(), question=f"What is {n}?") for n in range(3)]
    (line,) = ingest_shard(GivenRows(*rows), 0, store).notes
    assert line.n == 3
    assert line.what.startswith("rows about one image, ")
    assert ingest_shard(GivenRows(*rows[:2]), 0, store).notes == []


def test_lines_of_shards_are_added_up():
    notes = IntakeNotes()
    for line in [(1, "a", "x"), (5, "b", ""), (2, "a", "y")]:
        notes.add(*line)
    assert notes.lines() == [NoteLine(5, "b", ""), NoteLine(3, "a", "x")]
