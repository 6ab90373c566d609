"""Intake: every row of a source becomes a sample or a typed reject."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image

from darkroom.pipelines.demo.images import DemoSource
from darkroom.pipelines.demo.images.material import packaged_bytes
from darkroom.pipelines.records import Reject, Sample, Truth, TruthBox
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.records.schemas import to_table
from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.sources.ingest import ingest_shard
from darkroom.pipelines.storage.images import ImageStore


@dataclass(frozen=True)
class Rows:
    """A source of the rows that it is given."""

    given: tuple[SourceRow | BadRow, ...]
    name: str = "streets"
    n_shards: int = 1
    fingerprint: str = ""

    def rows(self, shard: int):
        return iter(self.given)


@pytest.fixture
def row(make_image, encoded):
    return SourceRow("streets.jsonl:1", (encoded(make_image()),), "What colour is the sign?", "red", license="CC0-1.0")


@pytest.fixture
def refused(store):
    """The one reject of a shard whose only row is the given one."""

    def take(row: SourceRow | BadRow) -> Reject:
        taken = ingest_shard(Rows((row,)), 0, store)
        assert (taken.samples, taken.n_in) == ([], 1)
        (rejected,) = taken.rejects
        return rejected

    return take


def test_the_image_of_several_questions_is_decoded_once(store, row, monkeypatch):
    n_decoded = []
    ingest = store.ingest
    monkeypatch.setattr(store, "ingest", lambda data: n_decoded.append(1) or ingest(data))
    rows = tuple(replace(row, row=f"streets.jsonl:{n}", question=f"What is written on sign {n}?") for n in range(5))
    taken = ingest_shard(Rows(rows), 0, store)
    assert (len(taken.samples), len(n_decoded)) == (5, 1)


@pytest.mark.parametrize("reason", list(Reason))
def test_a_bad_row_keeps_its_reason_and_evidence(refused, reason):
    rejected = refused(BadRow("streets.jsonl:7", reason, "column 'q': a list", {"q": []}))
    assert (rejected.reason, rejected.evidence) == (reason.value, "column 'q': a list")
    assert (rejected.source, rejected.source_row) == ("streets", "streets.jsonl:7")
    assert json.loads(rejected.row) == ({} if reason is Reason.REMOVED else {"q": []})


@pytest.mark.parametrize(
    ("change", "evidence"),
    [
        ({"question": " "}, "the question is empty"),
        ({"answer": "\n"}, "the answer is empty"),
        ({"answer": "NaN"}, "the answer is NaN"),
        ({"choices": ("A. red", "B. blue"), "answer": "C"}, "none of the choices"),
        ({"choices": ("A. red", "B. blue"), "answer": "A or B"}, "none of the choices"),
        ({"choices": ("red", "blue"), "answer": "red"}, "a choice reads"),
        ({"question": "what is \ud800?"}, "surrogate"),
        ({"answer": "\ud800"}, "surrogate"),
        ({"choices": ("A. red", "B. \ud800"), "answer": "A"}, "surrogate"),
    ],
)
def test_a_malformed_row_says_what_is_wrong(refused, row, change, evidence):
    rejected = refused(replace(row, **change))
    assert rejected.reason == "malformed_row"
    assert evidence in rejected.evidence


@pytest.mark.parametrize(
    "box",
    [
        TruthBox("sign", 0, 0, 97, 64),
        TruthBox("sign", 0, 0, 96, 65),
        TruthBox("sign", -1, 0, 5, 5),
        TruthBox("sign", 200, 200, 300, 300),
        TruthBox("sign", 5, 5, 5, 9),
        TruthBox("sign", 9, 9, 5, 5),
        TruthBox("sign", 0, 0, 5, 5, image=1),
        TruthBox("sign", 0, 0, 5, 5, image=-1),
        TruthBox("sign", 0, 0, 10**30, 10**30),
    ],
)
def test_a_box_outside_its_image_is_named(refused, row, box):
    rejected = refused(replace(row, truth=Truth(boxes=(TruthBox("fine", 0, 0, 96, 64), box))))
    assert rejected.reason == "box_outside_image"
    assert "'sign'" in rejected.evidence


def test_a_box_where_there_is_no_image_is_outside(refused, row):
    assert (
        refused(replace(row, images=(), truth=Truth(boxes=(TruthBox("s", 0, 0, 1, 1),)))).reason == "box_outside_image"
    )


def test_a_damaged_image_is_named_by_its_number(refused, row):
    rejected = refused(replace(row, images=(row.images[0], row.images[0][:900])))
    assert rejected.reason == "truncated_image"
    assert rejected.evidence.startswith("image 1: ")
    assert json.loads(rejected.row)["images"] == [f"{len(row.images[0])} bytes", "900 bytes"]


def test_the_second_of_two_equal_rows_is_a_duplicate_of_the_first(store, row):
    again = replace(row, row="streets.jsonl:2", category="other", license="other")
    taken = ingest_shard(Rows((row, again)), 0, store)
    assert [sample.source_row for sample in taken.samples] == ["streets.jsonl:1"]
    (rejected,) = taken.rejects
    assert (rejected.reason, rejected.disposition, rejected.source_row) == ("duplicate", "rejected", "streets.jsonl:2")
    assert "streets.jsonl:1" in rejected.evidence


@pytest.mark.parametrize(
    "change",
    [{"question": "Which?"}, {"answer": "blue"}, {"truth": Truth(count=1)}, {"choices": ("A. red",), "answer": "A"}],
)
def test_rows_that_differ_in_content_are_two_samples(store, row, change):
    assert len(ingest_shard(Rows((row, replace(row, **change))), 0, store).samples) == 2


def test_a_sample_is_the_same_wherever_it_comes_from(store, row):
    one, other = Rows((row,)), Rows((replace(row, row="7"),), name="elsewhere")
    ids = {ingest_shard(source, 0, store).samples[0].sample_id for source in (one, other)}
    assert len(ids) == 1


def test_a_row_without_images_is_a_sample(store, row):
    assert ingest_shard(Rows((replace(row, images=()),)), 0, store).samples[0].images == ()


def test_a_video_is_stored_and_makes_another_sample(store, row, clip):
    plain, filmed = ingest_shard(Rows((row, replace(row, videos=(clip(),)))), 0, store).samples
    assert plain.videos == ()
    assert (filmed.videos[0].n_frames, store.read(filmed.videos[0])) == (24, clip())
    assert filmed.sample_id != plain.sample_id


def test_a_damaged_video_is_named_by_its_number(refused, row, clip):
    rejected = refused(replace(row, videos=(clip(), clip()[:900])))
    assert rejected.reason == "unreadable_video"
    assert rejected.evidence.startswith("video 1: ")
    assert json.loads(rejected.row)["videos"] == [f"{len(clip())} bytes", "900 bytes"]


def test_boxes_are_in_pixels_of_the_upright_image(store, row, make_image, encoded):
    exif = Image.Exif()
    exif[0x0112] = 6
    tall = replace(row, images=(encoded(make_image(), exif=exif),), truth=Truth(boxes=(TruthBox("s", 0, 80, 64, 96),)))
    (sample,) = ingest_shard(Rows((tall,)), 0, store).samples
    assert (sample.images[0].width, sample.images[0].height) == (64, 96)


def test_what_was_derived_of_images_is_noted_and_made_once(store, row, encoded):
    clear = Image.new("RGBA", (96, 64))
    clear.paste((0, 0, 0, 255), (8, 8, 16, 16))
    rows = (row, replace(row, images=(encoded(clear),)))
    taken = ingest_shard(Rows(rows), 0, store)
    assert (1, "samples with an image flattened on white", "") in taken.notes
    (image,) = taken.samples[1].images
    assert (image.mode, image.parent) == ("RGB", digest_bytes(encoded(clear)))
    assert store.open(image).getpixel((0, 0)) == (255, 255, 255)
    assert ingest_shard(Rows(rows), 0, store) == taken


@pytest.mark.parametrize("choice", ["(A) red", "A) red", "A: red", "a. red"])
def test_choices_may_be_lettered_in_any_usual_way(store, row, choice):
    given = replace(row, choices=(choice, "B. blue"), answer="red")
    assert len(ingest_shard(Rows((given,)), 0, store).samples) == 1


def test_a_demo_without_its_material_is_quarantined(store, monkeypatch):
    def missing(package: str, path: str) -> bytes:
        return packaged_bytes(package, f"{path}.gone")

    monkeypatch.setattr("darkroom.pipelines.demo.images.material.packaged_bytes", missing)
    taken = ingest_shard(DemoSource(n_shards=40, n_scenes=0), 0, store)
    assert {rejected.disposition for rejected in taken.rejects} == {"quarantined"}
    assert taken.n_in == len(taken.samples) + len(taken.rejects)


TEXTS = st.sampled_from(["", " ", "red", "A", "\ud800", "E", "A. red"])


def test_every_row_is_a_sample_or_a_reject_that_a_table_can_hold(make_image, encoded):
    whole = encoded(make_image())
    images = st.lists(st.sampled_from([whole, whole[:700], b"", b"text", encoded(make_image(1), "TIFF")]), max_size=2)
    box = st.builds(TruthBox, TEXTS, *[st.integers(-2, 99)] * 4, st.integers(-1, 2))
    truths = st.builds(Truth, boxes=st.lists(box, max_size=2).map(tuple))
    choices = st.sampled_from([(), ("A. red", "B. blue"), ("red",), ("A. red", "A. red")])
    good = st.builds(SourceRow, TEXTS, images.map(tuple), TEXTS, TEXTS, choices, truths, TEXTS)
    bad = st.builds(BadRow, TEXTS, st.sampled_from(Reason), TEXTS, st.dictionaries(TEXTS, TEXTS, max_size=2))

    @given(st.lists(st.one_of(good, bad), max_size=6))
    @settings(max_examples=60)
    def check(rows: list[SourceRow | BadRow]) -> None:
        with TemporaryDirectory() as folder:
            taken = ingest_shard(Rows(tuple(rows)), 0, ImageStore(str(Path(folder))))
        assert taken.n_in == len(rows) == len(taken.samples) + len(taken.rejects)
        assert len({sample.sample_id for sample in taken.samples}) == len(taken.samples)
        to_table(Sample, taken.samples)
        to_table(Reject, taken.rejects)

    check()


def test_a_text_that_no_model_could_read_is_a_short_reject(refused, row):
    rejected = refused(replace(row, question="?" * 300_000))
    assert (rejected.reason, rejected.evidence) == (
        "malformed_row",
        "a text of 300,000 characters, at most 200,000: cut it",
    )
    assert len(rejected.row) < 20_000
    assert "(300,000 characters)" in rejected.row
    assert len(refused(BadRow("a.jsonl:1", Reason.MALFORMED_ROW, "not JSON", {"line": "x" * 300_000})).row) < 20_000
