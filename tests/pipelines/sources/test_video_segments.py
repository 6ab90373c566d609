"""Rows about a part of a film: the spellings of its times, and the film and the texts that become of them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from pydantic import ValidationError

from darkroom.pipelines.records import from_row, to_row
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.records.samples import VideoRef
from darkroom.pipelines.records.schemas import from_table, to_table
from darkroom.pipelines.sources import BadRow, SourceRow, media
from darkroom.pipelines.sources.columns import Columns, value_at
from darkroom.pipelines.sources.ingest import Intake, ingest_shard
from darkroom.pipelines.sources.jsonl import JsonLinesSource
from darkroom.pipelines.sources.mapping import map_row
from darkroom.pipelines.sources.video_segments import VideoSegment
from darkroom.pipelines.storage import media_validation
from tests.sandbox.clips import X264, encode

SPAN = {"start": "begin", "end": "end"}
FILM = {"question": "What moves?", "answer": "a bar", "clip": "film.mp4", "begin": 5, "end": 7.5}


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten seconds with a key frame every two."""
    folder = tmp_path_factory.mktemp("films")
    encode(folder / "film.mp4", n_frames=250, **X264, g="50")
    return folder


@pytest.fixture
def parts(films: Path) -> Callable[..., list[SourceRow | BadRow]]:
    def rows(changes: dict[str, Any], **segment: Any) -> list[SourceRow | BadRow]:
        columns = Columns(images=None, videos="clip", choices="choices", segment={**SPAN, **segment})
        return list(map_row({**FILM, **changes}, columns, where="q:1", folder=films, license="CC0-1.0"))

    return rows


# --- times


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        *((90, 90), (90.5, 90.5), ("90", 90), (" 90.5 ", 90.5), ("1:30", 90), ("01:30.25", 90.25), ("00:01:30", 90)),
        *(("00:01:30,500", 90.5), ("1:00:00", 3600), ("90:00", 5400), (0, 0), ("0", 0)),
    ],
)
def test_times_are_seconds_or_read_from_a_clock(value, seconds):
    assert VideoSegment(start="at", end=1e9).span({"at": value}, value_at) == (seconds, 1e9)


@pytest.mark.parametrize(
    "value",
    [None, "", "90 s", "1m30s", "-1", -1, math.nan, math.inf, True, "1:75", "1:75:00", "00:01:30:12", "1:5", [1]],
)
def test_other_times_are_a_wrong_type_that_names_its_column(value, parts):
    for name in SPAN.values():
        (row,) = parts({name: value})
        assert row.reason is Reason.WRONG_TYPE
        assert f"column '{name}': expected seconds, or a time like 00:01:30, found" in row.evidence


@pytest.mark.parametrize(("begin", "end"), [(7, 5), (5, 5), ("0:07", "5")])
def test_an_end_before_the_beginning_is_malformed(begin, end, parts):
    (row,) = parts({"begin": begin, "end": end})
    assert row.reason is Reason.MALFORMED_ROW
    assert row.evidence.startswith("the part of the video ends at 5 s, and begins at")


def test_times_outside_of_the_film_are_malformed(parts):
    (row,) = parts({"begin": 5000, "end": 7500})
    assert row.reason is Reason.MALFORMED_ROW
    assert "the film ends at 10.000 s" in row.evidence


@pytest.mark.parametrize(
    "segment", [{"start": 0}, {**SPAN, "step": 1}, {"start": -1, "end": 5}, {**SPAN, "times": "wall"}]
)
def test_a_segment_of_other_parts_is_no_mapping(segment):
    with pytest.raises(ValidationError):
        Columns(videos="clip", segment=segment)


@pytest.mark.parametrize("columns", [{}, {"videos": "clip", "details": ["moments"]}])
def test_a_segment_needs_videos_and_takes_no_numbers_of_frames(columns):
    with pytest.raises(ValidationError, match="`segment` needs `videos`, without `moments`"):
        Columns(segment=SPAN, **columns)


def test_the_columns_of_a_segment_are_needed_and_read(parts):
    columns = Columns(images=None, videos="clip", segment={"start": 0, "end": "end"})
    assert ("end",) in columns.needed()
    assert Columns.model_validate(columns.model_dump(exclude_defaults=True)) == columns
    (row,) = parts({"topic": "bars"})
    assert row.unread == ("column topic",)


# --- the part


def test_a_row_has_its_part_and_the_question_the_part_of_that(parts):
    (row,) = parts({"begin": "0:05", "end": "00:00:07.5"})
    assert row.question == "What moves?\nOnly 1.0 to 3.5 seconds of video 1 count."
    assert len(row.videos) == len(row.cuts) == 1
    (row,) = parts({"begin": 4, "end": 10})
    assert row.question == "What moves?"


def test_each_video_of_a_row_and_each_turn_have_the_part(parts):
    talk = [{"from": role, "value": f"{role}?"} for role in ("human", "gpt")] * 2
    rows = parts({"clip": ["film.mp4", "film.mp4"], "question": talk, "answer": talk}, end=7)
    assert {len(row.videos) for row in rows} == {2}
    assert all(row.question.endswith("video 1 count.\nOnly 1.0 to 3.0 seconds of video 2 count.") for row in rows)


@pytest.fixture
def ingested(films: Path, tmp_path: Path, store) -> Callable[..., Intake]:
    def ingest(*rows: dict[str, Any], folder: Path = films, **segment: Any) -> Intake:
        path = tmp_path / "q.jsonl"
        path.write_text("\n".join(json.dumps({**FILM, **row}) for row in rows))
        columns = Columns(images=None, videos="clip", segment={**SPAN, **segment})
        return ingest_shard(JsonLinesSource("films", path, folder, columns), 0, store)

    return ingest


def test_the_record_names_the_film_and_its_times_and_only_the_part_is_stored(ingested, films, store):
    intake = ingested({}, {"question": "What else?"}, {"begin": 8.5, "end": 10})
    first, second, third = intake.samples
    (video,) = first.videos
    assert (video.parent, video.n_frames) == (third.videos[0].parent, 91)
    assert video.made_by == "ingest: cut from a longer one;4.000 to 7.640 s of it;asked 5.000 to 7.500 s"
    assert second.videos == first.videos
    assert (3, "samples with a video cut from a longer one", "") in intake.notes
    assert sorted(path.name for path in Path(store.url).rglob("*") if path.is_file()) == sorted(
        sample.videos[0].sha256 for sample in (first, third)
    )


def test_a_film_beyond_the_limits_can_be_asked_about_in_parts(ingested, monkeypatch):
    monkeypatch.setattr(media_validation, "MAX_FRAMES", 100)
    intake = ingested({}, {"begin": 1, "end": 9})
    assert [sample.videos[0].n_frames for sample in intake.samples] == [91]
    (rejected,) = intake.rejects
    assert rejected.reason == Reason.TOO_LARGE_VIDEO
    assert "the limit is 100; ask about a shorter part" in rejected.evidence
    assert json.loads(rejected.row)["cuts"]


def test_a_video_beyond_the_limit_is_not_read(films, monkeypatch):
    monkeypatch.setattr(media, "MAX_VIDEO_BYTES", 100)
    with ZipFile(films.parent / "films.zip", "w") as archive:
        archive.write(films / "film.mp4", "film.mp4")
    for folder in (films, films.parent / "films.zip"):
        columns = Columns(images=None, videos="clip")
        (row,) = map_row(FILM, columns, where="q:1", folder=folder, license="")
        assert row.reason is Reason.TOO_LARGE_VIDEO
        assert "`segment` in the mapping" in row.evidence


def test_films_come_from_archives_and_as_bytes(ingested, films):
    with ZipFile(films.parent / "films.zip", "w") as archive:
        archive.write(films / "film.mp4", "film.mp4")
    (packed,) = ingested({}, folder=films.parent / "films.zip").samples
    assert packed.videos == ingested({}).samples[0].videos
    columns = Columns(images=None, videos="clip", segment=SPAN)
    row = {**FILM, "clip": (films / "film.mp4").read_bytes()}
    (given,) = map_row(row, columns, where="q:1", folder=films, license="")
    assert given.cuts == ((packed.videos[0].parent, packed.videos[0].made_by),)


def test_a_video_without_a_film_is_the_record_that_it_was():
    video = VideoRef("1" * 64, "mp4", 10, 10, 5, 1.0)
    part = VideoRef("1" * 64, "mp4", 10, 10, 5, 1.0, "2" * 64, "ingest: cut from a longer one")
    assert list(to_row(video)) == ["sha256", "format", "width", "height", "n_frames", "fps"]
    assert from_row(VideoRef, to_row(video)) == video
    assert from_table(VideoRef, to_table(VideoRef, [video, part])) == [video, part]


# --- times in texts


@pytest.mark.parametrize(
    ("times", "question", "kept"),
    [
        ("film", "What happens at 0:06?", "What happens at 00:02?"),
        ("film", "From 00:00:05 to 00:00:07.5?", "From 00:00:01 to 00:00:04?"),
        ("segment", "What happens at 0:01?", "What happens at 00:02?"),
        ("other", "Is it 14:30, or 0:06?", "Is it 14:30, or 0:06?"),
        ("film", "Is the ratio 3:2, in 1:234:5?", "Is the ratio 3:2, in 1:234:5?"),
        (None, "After 6 seconds?", "After 6 seconds?"),
    ],
)
def test_clock_times_in_texts_move_to_the_parts_clock(times, question, kept, parts):
    (row,) = parts({"question": question}, times=times)
    assert row.question.splitlines()[0] == kept


def test_answers_and_choices_move_with_the_question(parts):
    (row,) = parts({"question": "When?", "answer": "0:06", "choices": ["0:05", "0:06"]}, times="film")
    assert (row.choices, row.answer) == (("A. 00:01", "B. 00:02"), "00:02")


@pytest.mark.parametrize("texts", [{"question": "At 0:06?"}, {"answer": "00:00:06"}, {"choices": ["0:06", "0:07"]}])
def test_a_time_that_may_count_from_two_beginnings_must_be_stated(texts, parts):
    (row,) = parts(texts)
    assert row.reason is Reason.MALFORMED_ROW
    assert "state `times: film`, `segment` or `other`" in row.evidence


def test_a_time_before_the_part_is_malformed(parts):
    (row,) = parts({"question": "What changed since 0:01?"}, times="film")
    assert (row.reason, "0:01 in a text is before the part" in row.evidence) == (Reason.MALFORMED_ROW, True)


def test_hours_stay_hours(parts):
    cuts = [type("Part", (), {"start": 3600.0, "kept_start": 3599.0})()]
    segment = VideoSegment(**SPAN, times="film")
    assert segment.moved("1:02:30 or 62:30", cuts) == "00:02:31 or 02:31"
    late = [type("Part", (), {"start": 10.0, "kept_start": 8.0})()]
    assert segment.moved("1:15:08 or 75:08", late) == "01:15:00 or 75:00"
