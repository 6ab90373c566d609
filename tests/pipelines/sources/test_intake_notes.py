"""Notes of intake beside its samples: columns that no mapping names, and rows that contradict each other."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

from darkroom.pipelines.records.samples import bare_sample
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


def test_rows_that_contradict_each_other_are_named(store, mapped, tmp_path):
    first, again = mapped(), replace(mapped(), row="streets.jsonl:8", answer="blue")
    shards = [GivenRows(first), GivenRows(again, replace(again, question="Which shape?"))]
    intakes = [ingest_shard(shard, 0, store) for shard in shards]
    assert [(len(intake.samples), intake.notes) for intake in intakes] == [(1, []), (2, [])]
    notes = IntakeNotes()
    notes.add_samples((sample for intake in intakes for sample in intake.samples), tmp_path)
    assert notes.lines() == [
        NoteLine(
            1,
            "another answer to the same question about the same images",
            "streets.jsonl:7 says 'red', streets.jsonl:8 'blue'",
        )
    ]


def test_an_image_on_very_many_rows_is_named(store, mapped, monkeypatch, tmp_path):
    monkeypatch.setattr(intake_notes, "MANY_ROWS", 3)
    rows = [replace(mapped(), question=f"What is {n}?") for n in range(3)]
    samples = ingest_shard(GivenRows(*rows), 0, store).samples
    notes, fewer = IntakeNotes(), IntakeNotes()
    notes.add_samples(samples, tmp_path)
    fewer.add_samples([*samples[:2], bare_sample("no image", "What is 2 + 2?", license="MIT")], tmp_path)
    assert notes.lines() == [NoteLine(3, f"rows about one image, {samples[0].images[0].sha256[:12]}")]
    assert fewer.lines() == []


def test_rows_without_a_licence_are_counted_with_the_remedy(tmp_path):
    notes = IntakeNotes()
    notes.add_samples((bare_sample(name, f"{name}?", license=name, source_row=name) for name in ("MIT", "")), tmp_path)
    [line] = notes.lines()
    assert (line.n, line.what.partition(":")[0]) == (1, "rows without a licence, which do not ship by default")
    assert "state `license` in the source's file" in line.what


def test_answers_wait_on_disk(tmp_path):
    """What is kept in memory for each sample is a number or two: its texts are not among them."""
    question = "What colour is it? " * 500
    rows = (
        bare_sample(str(n), f"{question}{n % 4000}", answer=f"{n // 4000} {question}", license="MIT")
        for n in range(8000)
    )
    notes = IntakeNotes()
    tracemalloc.start()
    notes.add_samples(rows, tmp_path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert notes.lines()[0].n == 4000
    assert most < 5_000_000


def test_lines_of_shards_are_added_up():
    notes = IntakeNotes()
    for line in [(1, "a", "x"), (5, "b", ""), (2, "a", "y")]:
        notes.add(*line)
    assert notes.lines() == [NoteLine(5, "b", ""), NoteLine(3, "a", "x")]
