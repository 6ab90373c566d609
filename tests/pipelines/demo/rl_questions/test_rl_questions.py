"""The embedded source of RL prompts: what intake makes of it, and what its rows promise."""

from __future__ import annotations

import hashlib
import io
import json
import os
import socket
import subprocess
import sys
from collections import Counter
from itertools import product
from time import process_time

import pytest
from PIL import Image, ImageStat

from darkroom.pipelines.demo.images.material import packaged_bytes
from darkroom.pipelines.demo.oracle.rl_answers import LARGE, TINY, target_share
from darkroom.pipelines.demo.rl_questions import DRAWN, DemoRLSource
from darkroom.pipelines.demo.rl_questions.word_problems import n_paths
from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.samples import details_of
from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.sources.ingest import Intake, ingest_shard
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.grading import grade, grader_of, measure_discrimination

pytestmark = pytest.mark.e2e  # on every row of the embedded source
PLANTED = {"wrong_label": 6, "mismatch": 5, "outside_knowledge": 5, "trivial": 4, "ambiguous": 3}
MATHS = {"geometry", "algebra", "number_theory", "combinatorics", "functions", "probability", "calculus"}
DIGEST = """
import hashlib
from darkroom.pipelines.demo.rl_questions import DemoRLSource
print(hashlib.sha256("".join(map(repr, DemoRLSource().rows(0))).encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def rows() -> list[SourceRow]:
    """Every row, made while no socket can be connected."""

    def refuse(*_: object) -> None:
        raise AssertionError("the demo opened a socket")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(socket.socket, "connect", refuse)
        patched.setattr(socket, "getaddrinfo", refuse)
        made = list(DemoRLSource().rows(0))
    assert all(isinstance(row, SourceRow) for row in made)
    return made


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> ImageStore:
    return ImageStore(str(tmp_path_factory.mktemp("store")))


@pytest.fixture(scope="module")
def taken(store) -> Intake:
    return ingest_shard(DemoRLSource(), 0, store)


@pytest.fixture(scope="module")
def samples(taken) -> list[Sample]:
    return taken.samples


def kind(sample: Sample) -> str:
    return sample.source_row.split("/")[0]


def planted(sample: Sample) -> str | None:
    return details_of(sample).get("planted")


def test_intake_sets_aside_the_copies_and_the_cut_image_alone(taken):
    assert [(reject.source_row, reject.reason) for reject in taken.rejects] == [
        ("copy/00", "duplicate"),
        ("copy/01", "duplicate"),
        ("cut/00", "truncated_image"),
    ]
    assert taken.n_in == len(taken.samples) + 3 == 301


def test_there_are_rows_of_every_kind(samples):
    asked = {name: n for name, (_, n) in DRAWN.items()}
    assert sum(asked.values()) == 130
    assert Counter(map(kind, samples)) == {"construction": 70, "reckoning": 75, **asked, **PLANTED}


def test_the_planted_rows_say_what_is_wrong_with_them(samples):
    assert Counter(filter(None, map(planted, samples))) == PLANTED
    assert all((planted(sample) or kind(sample)) == kind(sample) for sample in samples)


def test_every_problem_says_whether_a_drawing_would_help(samples):
    problems = [sample for sample in samples if not sample.images]
    assert {sample.category for sample in problems} == MATHS
    suitable = Counter(details_of(sample)["suitable"] for sample in problems)
    assert suitable == {True: 71, False: 76}


def test_every_grader_has_its_questions_about_images(samples):
    graders = Counter(grader_of(sample).kind for sample in samples if sample.images and not planted(sample))
    assert graders.keys() == {"choice", "number", "text", "list", "maths", "box", "judged"}
    assert min(graders.values()) >= 6


def test_every_grader_tells_its_answer_from_corrupted_ones(samples):
    """The first three questions of a kind; no row is made whose grader does not (`require_discrimination`)."""
    kinds = [kind(sample) for sample in samples]
    few = [sample for n, sample in enumerate(samples) if kinds[:n].count(kinds[n]) < 3]
    assert len(few) >= 3 * len(DRAWN)
    for sample in few:
        told = measure_discrimination(sample, grader_of(sample))
        assert told.holds, (sample.source_row, str(told))


def test_measures_have_a_unit_and_a_tolerance(samples):
    measures = [sample for sample in samples if kind(sample) in ("ruler", "dial", "thermometer")]
    for sample in measures:
        grader = grader_of(sample)
        assert (grader.kind, grader.tolerance) == ("number", 0.05)
        value, unit = sample.answer.split()
        assert grader.unit == unit
        assert grade(f"{float(value) * 1.04:.4f}", sample, grader).right
        assert not grade(f"{float(value) * 1.06:.4f}", sample, grader).right


def test_a_box_is_the_place_of_its_target(samples):
    boxes = [sample for sample in samples if grader_of(sample).kind == "box"]
    assert len(boxes) == 19
    assert all(json.loads(sample.answer) == list(sample.truth.boxes[0].box) for sample in boxes)


def test_targets_are_of_all_sizes(samples):
    shares = [target_share(sample) for sample in samples if sample.truth.boxes]
    assert sum(share < TINY for share in shares) >= 10
    assert sum(TINY <= share < LARGE for share in shares) >= 10
    assert sum(share >= LARGE for share in shares) >= 10


def test_every_target_stands_out_from_what_is_beside_it(samples, store):
    for sample in samples:
        for box in sample.truth.boxes:
            image = store.open(sample.images[0])
            around = image.crop(box.box.grown(8).clipped(*image.size))
            assert max(ImageStat.Stat(around).stddev) > 12, sample.source_row


def test_a_wrong_label_has_its_true_answer_beside_it(samples):
    for sample in samples:
        known = details_of(sample)
        assert ("true_answer" in known) == (planted(sample) == "wrong_label")
        assert known.get("true_answer") != sample.answer


def test_choices_are_lettered_and_no_letter_is_right_most_of_the_time(samples):
    letters = Counter(sample.answer for sample in samples if sample.choices)
    assert set(letters) == set("ABCD")
    assert max(letters.values()) <= 0.45 * letters.total()
    for sample in samples:
        assert len({choice[3:] for choice in sample.choices}) == len(sample.choices)


def test_questions_are_unique(samples):
    assert len({sample.question for sample in samples}) == len(samples)


def test_every_row_says_its_licence(samples):
    assert all(sample.license and "unknown" not in sample.license for sample in samples)


@pytest.mark.parametrize(("width", "height", "closed"), list(product((3, 4), (3, 5), ((1, 1), (2, 1)))))
def test_counted_paths_are_those_that_can_be_walked(width, height, closed):
    def walked(x: int, y: int) -> int:
        if (x, y) == closed or x > width or y > height:
            return 0
        return 1 if (x, y) == (width, height) else walked(x + 1, y) + walked(x, y + 1)

    assert n_paths(width, height, closed) == walked(0, 0)


def test_intake_takes_less_than_ten_seconds_of_cpu(tmp_path):
    begun = process_time()
    ingest_shard(DemoRLSource(), 0, ImageStore(str(tmp_path)))
    assert process_time() - begun < 10


def test_its_images_are_small(rows):
    for row in rows:
        for image in row.images:
            assert len(image) < 100_000, row.row
            assert max(Image.open(io.BytesIO(image)).size) <= 480, row.row


def test_another_process_makes_the_same_rows(rows):
    environment = {**os.environ, "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"}
    said = subprocess.run([sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == hashlib.sha256("".join(map(repr, rows)).encode()).hexdigest()


def test_sample_ids_are_the_same_every_time(samples, tmp_path):
    again = ingest_shard(DemoRLSource(), 0, ImageStore(str(tmp_path)))
    assert [sample.sample_id for sample in again.samples] == [sample.sample_id for sample in samples]


def test_another_seed_gives_other_rows(samples, tmp_path):
    other = ingest_shard(DemoRLSource(seed=1), 0, ImageStore(str(tmp_path)))
    assert len(other.rejects) <= 8
    same = {sample.sample_id for sample in samples} & {sample.sample_id for sample in other.samples}
    assert len(same) < 20
    assert DemoRLSource(seed=1).fingerprint != DemoRLSource().fingerprint == DemoRLSource(seed=0).fingerprint


def test_there_is_one_shard():
    assert (DemoRLSource().name, DemoRLSource().n_shards) == ("demo_rl", 1)
    with pytest.raises(ValueError, match="the one shard 0"):
        DemoRLSource().rows(1)


def test_a_package_without_its_file_makes_bad_rows_and_no_crash(monkeypatch):
    from darkroom.pipelines.demo.images import material

    def missing(package: str, path: str) -> bytes:
        return packaged_bytes(package, f"{path}.gone")

    material.photograph_image.cache_clear()
    monkeypatch.setattr(material, "packaged_bytes", missing)
    bad = [row for row in DemoRLSource().rows(0) if isinstance(row, BadRow)]
    monkeypatch.undo()
    assert {row.reason for row in bad} == {"material_missing"}
    assert len(bad) > 130
