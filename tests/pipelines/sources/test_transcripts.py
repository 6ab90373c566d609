"""Released trajectories through their mapping files: turns in our protocols, or a typed reject with file and line."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.records import Sample
from darkroom.pipelines.sources.catalog import open_source, placed, public_sources
from darkroom.pipelines.sources.columns import Columns, TranscriptColumns
from darkroom.pipelines.sources.ingest import Intake, ingest_shard
from darkroom.pipelines.sources.source_config import SourceConfig
from darkroom.pipelines.sources.transcripts import RELEASED
from tests.pipelines.sources import releases


@pytest.fixture
def taken(tmp_path, store):
    def take(name: str, rows) -> Intake:
        path = releases.write(tmp_path, rows, "trajectories.jsonl")
        return ingest_shard(open_source(name, placed(name, path)), 0, store)

    return take


def release(sample: Sample):
    return json.loads(sample.truth.details or "")[RELEASED]


def test_thymes_rows_become_turns_observations_and_images(taken):
    first, second = taken("thyme_sft", releases.THYME[:2]).samples
    assert first.question.startswith("What does the sign say?")
    assert first.answer == "**C. STOP**"
    assert [(ref.width, ref.height) for ref in first.images] == [(640, 480), (160, 120)]
    kept = release(first)
    assert (kept["protocol"], kept["n_question_images"], kept["has_label"]) == ("thyme", 1, False)
    assert kept["observations"] == [{"text": "", "n_images": 1}]
    code, answer = (PROTOCOLS["thyme"].parse(turn) for turn in kept["turns"])
    assert code.code == releases.CODE
    assert answer.answer == "**C. STOP**"
    assert release(second)["observations"] == [{"text": "42", "n_images": 0}]


def test_rows_that_cannot_be_read_are_rejects_with_file_and_line(taken):
    intake = taken("thyme_sft", releases.THYME)
    assert {reject.source_row: reject.reason for reject in intake.rejects} == {
        f"trajectories.jsonl:{index + 1}": reason for index, reason in releases.THYME_REASONS.items()
    }
    assert intake.n_in == len(releases.THYME) == len(intake.samples) + len(intake.rejects)


def test_a_box_in_pixels_becomes_a_crop_in_fractions(taken):
    intake = taken("deepeyes_calls", releases.DEEPEYES)
    assert [reject.reason for reject in intake.rejects] == ["malformed_turn", "malformed_turn"]
    turn = PROTOCOLS["tool_call"].parse(release(intake.samples[0])["turns"][0])
    assert (turn.thought, turn.code) == (
        "I zoom in.",
        f"crop_image_normalized(bbox_2d={[100 / 640, 80 / 480, 260 / 640, 200 / 480]!r}, target_image=1)",
    )
    assert intake.samples[0].answer == "STOP"


def test_parts_of_messages_are_read_and_frames_of_videos_rejected(taken):
    intake = taken("pixel_reasoner_sft", releases.PIXEL_REASONER)
    assert [reject.reason for reject in intake.rejects] == ["not_applicable"]
    sample = intake.samples[0]
    assert (sample.question, len(sample.images)) == ("What does the sign say?", 2)
    assert release(sample)["observations"] == [{"text": "Here is the crop:", "n_images": 1}]


def test_a_call_names_the_image_or_the_observation_that_it_enlarges(taken):
    intake = taken("mini_o3", releases.MINI_O3)
    assert [(reject.reason, "the sign" in reject.evidence) for reject in intake.rejects] == [("malformed_turn", True)]
    crops = [PROTOCOLS["tool_call"].parse(release(sample)["turns"][0]) for sample in intake.samples]
    box = [100 / 640, 80 / 480, 260 / 640, 200 / 480]
    assert [(crop.thought, crop.code) for crop in crops] == [
        ("I look closer.", f"crop_image_normalized(bbox_2d={box!r}, target_image={n})") for n in (1, 2)
    ]
    sample = intake.samples[0]
    assert (sample.question, sample.answer, sample.category) == ("What does the sign say?", "STOP", "vstar")


def test_licence_and_place_are_kept(taken, tmp_path, store):
    path = releases.write(tmp_path, releases.THYME[:1])
    config = placed("thyme_sft", path).model_copy(update={"license": "CC-BY-4.0"})
    (sample,) = ingest_shard(open_source("mine", config), 0, store).samples
    assert (sample.source, sample.source_row, sample.license) == ("mine", "rows.jsonl:1", "CC-BY-4.0")


def test_a_label_of_its_own_is_the_answer(taken, tmp_path, store):
    rows = [releases.computing_row() | {"gt": "42.0"}]
    transcript = TranscriptColumns(column="response", dialect="thyme", label="gt")
    columns = Columns(images="image", transcript=transcript)
    path = releases.write(tmp_path, rows)
    config = SourceConfig(kind="trajectories", path=str(tmp_path), questions=path.name, columns=columns)
    (sample,) = ingest_shard(open_source("labelled", config), 0, store).samples
    assert (sample.answer, release(sample)["has_label"]) == ("42.0", True)


def test_parquet_is_read_as_json_lines_are(tmp_path, store):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "train.parquet"
    pq.write_table(pa.Table.from_pylist(releases.THYME[:2]), path)
    assert len(ingest_shard(open_source("thyme", placed("thyme_sft", path)), 0, store).samples) == 2


def test_the_kind_and_the_transcript_go_together():
    with pytest.raises(ValueError, match=r"columns\.transcript"):
        SourceConfig(kind="trajectories", path="a")
    with pytest.raises(ValueError, match=r"columns\.transcript"):
        SourceConfig(kind="jsonl", path="a", columns=Columns(transcript=TranscriptColumns(column="r", dialect="thyme")))
    assert sum(config.is_release for config in public_sources().values()) == 5


@pytest.mark.parametrize("text", ["<sandbox_output>" * 12_000, "<code>" * 30_000, "<answer>" * 20_000, "{" * 190_000])
@pytest.mark.parametrize("dialect", ["thyme", "deepeyes"])
def test_hostile_texts_are_rejected_in_linear_time(tmp_path: Path, store, text: str, dialect: str):
    path = releases.write(tmp_path, [{"image": [], "question": "?", "response": text}])
    columns = Columns(images="image", transcript=TranscriptColumns(column="response", dialect=dialect))
    config = SourceConfig(kind="trajectories", path=str(tmp_path), questions=path.name, columns=columns)
    start = time.process_time()
    (reject,) = ingest_shard(open_source("hostile", config), 0, store).rejects
    assert reject.reason == "malformed_turn"
    assert time.process_time() - start < 2
