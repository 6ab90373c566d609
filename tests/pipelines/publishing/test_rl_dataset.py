"""The RL dataset: joined, each question once, mixed by quotas, no image in two splits, read by ``datasets`` alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from datasets import load_dataset

from darkroom.pipelines.generation.sandbox_sessions import Sandboxes
from darkroom.pipelines.inspection.explain import RL, explain
from darkroom.pipelines.publishing.rl_dataset import KEY, RlDataset, rl_folder
from darkroom.pipelines.records import PassRate, RLRow, Sample, Truth, Votes
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.rl.necessity import ToolNecessities
from darkroom.pipelines.rl.pass_rates import PassRates
from darkroom.pipelines.rl.rows import difficulty_of
from darkroom.pipelines.rl.suitability import Suitability, SuitabilityLabels
from darkroom.pipelines.selection.screening import Screening
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.sources.ingest import ingest_shard
from tests.conftest import signed
from tests.pipelines.rl.shards import N_PROBLEMS, N_SIGNS, judging
from tests.pipelines.rl.test_necessity import answer
from tests.pipelines.scripted import Scripted

N_ROWS = N_SIGNS + N_PROBLEMS


@pytest.fixture
def finished(rated):
    """Every stage of the shard."""
    images, ledger = rated.workspace.images, rated.workspace.ledger
    rated.materialize(ToolNecessities(student=Scripted(answer), sandboxes=Sandboxes(images, ledger), n_forced=1))
    rated.materialize(Suitability(judge=judging(lambda turn: True)))
    rated.materialize(SuitabilityLabels())
    return rated


def made(shard, annotated: list[Sample] | None = None, **mix):
    workspace = shard.workspace
    partitions = [shard.partition, "none-0000"]
    report, _ = RlDataset(workspace, partitions, annotated or [], Screening(workspace), **mix).publish()
    return report


def rows(shard) -> list[RLRow]:
    return shard.workspace.tables.read(KEY, RLRow)


def shipped(shard, split: str = "train", **options):
    files = [str(path) for path in sorted(rl_folder(shard.workspace).glob(f"{split}-*.parquet"))]
    return load_dataset("parquet", data_files=files, split="train", cache_dir=str(shard.workspace.home / "cache"))


def test_a_row_says_all_that_was_measured_of_its_question(finished):
    assert made(finished).n_out == N_ROWS
    by_row = {row.sample.source_row: row for row in rows(finished)}
    sign, problem = by_row["sign/0"], by_row["sum/0"]
    assert (sign.necessity is not None, sign.suitability) == (True, None)
    assert (problem.necessity, problem.suitability and problem.suitability.suitable) == (None, True)
    assert {row.difficulty for row in by_row.values()} <= {"hard", "medium"}


def test_it_is_read_by_datasets_with_images_and_nulls(finished):
    made(finished, validation_share=0)
    found = {row["source_row"]: row for row in shipped(finished)}
    sign, problem = found["sign/1"], found["sum/1"]
    assert (sign["images"][0].size, sign["answer"], sign["grader"]["kind"]) == ((640, 480), "S1X", "text")
    assert (sign["necessity_prior"], sign["suitable"], sign["n_answers"]) == (1.0, None, 8)
    assert (problem["images"], problem["suitable"], problem["necessity_prior"]) == ([], True, None)
    assert sign["boxes"][0]["x1"] == 100
    assert problem["prompt"] == problem["question"]


def test_the_same_again_writes_nothing(finished):
    made(finished)
    folder = rl_folder(finished.workspace)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    assert made(finished).reused
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before


def test_what_a_stage_took_out_is_in_no_row(finished):
    never = Scripted(lambda turn: "<answer>nothing</answer>", name="another student")
    finished.materialize(PassRates(student=never, drop_unsolved=True))
    assert made(finished).n_out == 0


def test_quotas_take_so_many_of_a_source_and_say_of_the_others_why(finished):
    report = made(finished, quotas={"questions": 5}, n_rows=3)
    assert (report.n_in, report.n_out, report.reasons) == (N_ROWS, 3, {"not_selected": N_ROWS - 3})
    smaller = {row.sample.sample_id for row in rows(finished)}
    made(finished, quotas={"questions": 5})
    assert smaller < {row.sample.sample_id for row in rows(finished)}


@pytest.fixture
def written(finished) -> Sample:
    """A question that a person wrote about an image of its own."""

    class One:
        name, n_shards, fingerprint = "annotation/test", 1, "one"

        def rows(self, shard):
            image = signed(77, "EXIT", (300, 300, 348, 324))
            yield SourceRow("7", (image,), "What is on the sign?", "EXIT", (), Truth(), license="CC0-1.0")

    (sample,) = ingest_shard(One(), 0, finished.workspace.images).samples
    return sample


def test_what_people_wrote_comes_without_pass_rate_and_has_a_quota_of_its_own(finished, written):
    assert made(finished, annotated=[written]).n_out == N_ROWS + 1
    (row,) = (row for row in rows(finished) if row.origin == "annotated")
    assert (row.difficulty, row.pass_rate, row.sample.answer) == ("unknown", None, "EXIT")
    assert made(finished, [written], quotas={"annotated": 0}).n_out == N_ROWS


def test_a_question_of_unknown_licence_does_not_ship(finished, written):
    report = made(finished, annotated=[replace(written, license="")])
    assert (report.n_out, report.reasons) == (N_ROWS, {"licence_unknown": 1})
    assert "Left out: 1 rows of unknown licence" in (rl_folder(finished.workspace) / "README.md").read_text()


def test_of_two_that_are_alike_the_one_that_people_wrote_stays(finished):
    sample = next(sample for sample in finished.samples().values() if sample.source_row == "sign/0")
    twin = replace(sample, sample_id="f" * 64, source="annotation/test", question=sample.question + " ")
    report = made(finished, annotated=[twin])
    assert report.reasons == {"near_duplicate": 1}
    assert {row.origin for row in rows(finished) if row.sample.answer == "S0X"} == {"annotated"}


def test_a_persons_row_that_cannot_be_graded_is_set_aside(finished, written):
    vague = replace(written, sample_id="e" * 64, truth=replace(written.truth, details='{"grader": {"kind": "box"}}'))
    report = made(finished, annotated=[vague])
    assert report.n_in == N_ROWS + 1
    (out,) = finished.workspace.tables.read_rejects(KEY)
    assert (out.reason, out.sample_id) == (Reason.GRADER_CANNOT_TELL, "e" * 64)


def test_no_image_is_in_two_splits(finished):
    made(finished, validation_share=0.5)
    images = [
        {image["sha256"] for row in shipped(finished, split) for image in row["image_refs"]}
        for split in ("train", "validation")
        if list(rl_folder(finished.workspace).glob(f"{split}-*.parquet"))
    ]
    assert sum(map(len, images)) == len(set().union(*images)) == N_SIGNS


def test_the_card_is_written_from_facts(finished):
    made(finished)
    card = (Path(rl_folder(finished.workspace)) / "README.md").read_text()
    for part in (
        f"{N_ROWS} questions",
        "| rl_candidates | judge |",
        "| pass_rates | student |",
        "| grader text | 4 |",
        'A tie counts as "no"',
        f"  8  {'█' * 24} {N_PROBLEMS}",
        "| licence CC0-1.0 | 8 |",
        "Agreement with people: not measured (0 labels say nothing",
    ):
        assert part in card, part


@pytest.mark.parametrize(
    ("n_right", "difficulty"), [(0, "unsolved"), (1, "hard"), (3, "hard"), (4, "medium"), (5, "medium"), (6, "easy")]
)
def test_difficulty_is_the_share_of_right_answers(n_right, difficulty):
    votes = Votes("student", (True,) * n_right + (False,) * (8 - n_right), 8)
    assert difficulty_of(PassRate("s", votes, not n_right)) == difficulty
    assert difficulty_of(None) == "unknown"


def test_everything_that_was_asked_about_a_sample_is_found_again(finished):
    way = next(way for way in explain(finished.workspace, "sign/0").histories if way.family == RL)
    assert [passage.stage for passage in way.passages] == [
        "rl_candidates",
        "checked_labels",
        "pass_rates",
        "tool_necessity",
    ]
    kinds = Counter(act.what.split(",")[0].split(" ")[0] for act in way.calls)
    once = {"belongs_together": 1, "self_contained": 1}
    assert kinds == {**once, "relabel": 4, "pass_rate": 8, "forced": 2, "forbidden": 4}
