"""Training rows against benchmarks, on real photographs: what is found, what is not, what a damaged benchmark says."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest
from PIL import Image

from darkroom.pipelines.demo.images.material import photograph_image, texture
from darkroom.pipelines.selection.decontamination import (
    CONTAMINATION,
    BenchmarkIndex,
    DecontaminationError,
    Scanner,
    TrainingRow,
    read_benchmarks,
    shown_parts,
    to_table,
)
from darkroom.pipelines.selection.decontamination.images import ImageIndex
from darkroom.pipelines.selection.decontamination.index import BenchmarkQuestion, PhraseIndex
from tests.matrices import first_quickly
from tests.pipelines.selection.decontamination.conftest import FEW, QUESTION, SHOWN, SUFFIX
from tests.pipelines.selection.duplicates import documents

UNRELATED = ("camera", "coins", "tissue", "flower", "rocket", "handwriting")


@pytest.fixture
def scanner(built, store):
    return Scanner(built, store)


@pytest.fixture
def row(make_case, store):
    """A trajectory with the given question, whose last round shows the given image."""

    def make(question: str = "What does the sign say?", crop: Image.Image | None = None) -> TrainingRow:
        case = make_case(question=question, crop=crop)
        return TrainingRow.of_trajectory(case.trajectory, case.sample)

    return make


def kinds(found):
    return [(one.benchmark_row, one.kind) for one in found]


def test_an_innocent_row_has_no_finding(scanner, row, make_image):
    assert scanner.find(row(crop=make_image(3, 640, 480).crop((180, 100, 280, 170)))) == []


def test_an_image_is_looked_at_once_for_all_scanners_of_the_same_benchmarks(built, store, row, tmp_path, monkeypatch):
    looks, find = [], ImageIndex.find
    monkeypatch.setattr(ImageIndex, "find", lambda *given: looks.append(given) or find(*given))
    shown = row(crop=photograph_image("cat"))

    def found():
        return Scanner(built, store, tmp_path / "cache").find(shown)

    first = found()
    assert "near_image" in {one.kind for one in first} or "image" in {one.kind for one in first}
    n_looks = len(looks)
    assert n_looks == len({image.image.sha256 for image in shown.images})
    assert found() == first == Scanner(built, store).find(shown)
    assert len(looks) == 2 * n_looks, "the scanner with a folder looked at none again"
    for path in (tmp_path / "cache").iterdir():
        path.write_bytes(b"damaged")
    assert found() == first
    assert len(looks) == 3 * n_looks
    monkeypatch.setattr(built, "sha256s", [*built.sha256s, "f" * 64])
    assert found() == first
    assert len(looks) == 4 * n_looks, "other benchmarks, other matches"


@pytest.mark.parametrize(
    "image", [Image.new("RGB", (1, 1)), Image.new("L", (400, 300), 255), Image.new("RGB", (2, 900))]
)
def test_an_image_that_shows_nothing_has_no_finding(scanner, row, image):
    assert scanner.find(row(crop=image)) == []


def test_a_crop_that_a_rollout_made_is_found_with_its_place(scanner, row, crop):
    found = scanner.find(row(crop=crop(photograph_image("coffee"), (0.45, 0.4, 0.75, 0.75), 3)))
    assert kinds(found) == [("metadata.jsonl:3", "image_part")]
    assert found[0].score >= 0.9
    assert found[0].detail.startswith("round 1, image 0: ")


@pytest.mark.parametrize("name", first_quickly(SHOWN))
@pytest.mark.parametrize(("side", "zoom"), [(0.25, 4), (0.35, 2), (0.5, 1.5)])
def test_enlarged_crops_of_every_photograph_are_found(scanner, row, crop, name, side, zoom):
    box = (0.4, 0.35, 0.4 + side, 0.35 + side)
    found = scanner.find(row(crop=crop(photograph_image(name), box, zoom)))
    assert kinds(found) == [(f"metadata.jsonl:{SHOWN.index(name) + 1}", "image_part")]


@pytest.mark.parametrize("name", first_quickly(UNRELATED))
def test_crops_of_other_photographs_are_not_found(scanner, row, crop, name):
    image = photograph_image(name)
    boxes = [(x / 4, y / 4, (x + 1) / 4, (y + 1) / 4) for x in range(0, 4, 2) for y in range(0, 4, 2)]
    assert [scanner.find(row(crop=crop(image, box, 3))) for box in boxes] == [[]] * len(boxes)


def test_a_benchmark_image_inside_a_training_image_is_found(scanner, row):
    wall = texture("brick").convert("RGB").resize((1000, 800))
    wall.paste(photograph_image("cat").resize((360, 240)), (500, 300))
    assert kinds(scanner.find(row(crop=wall))) == [("metadata.jsonl:2", "image_part")]


def test_a_turned_and_resized_image_is_near(scanner, row):
    turned = photograph_image("coffee").rotate(90, expand=True).resize((300, 450))
    found = scanner.find(row(crop=turned))
    assert kinds(found) == [("metadata.jsonl:3", "near_image")]
    assert "rotated" in found[0].detail


def test_the_same_bytes_are_the_same_image(scanner, make_case, store, benchmarks):
    ref = store.ingest((benchmarks.parent / "photos" / "cat.png").read_bytes())
    case = make_case(images=(ref,))
    assert kinds(scanner.find(TrainingRow.of_sample(case.sample))) == [("metadata.jsonl:2", "image")]


def test_a_copied_question_is_found_and_its_template_is_not(scanner, row):
    found = scanner.find(row(question="So: " + QUESTION.format("cat")))
    assert kinds(found) == [("metadata.jsonl:2", "phrase")]
    assert scanner.find(row(question="Who is this?" + SUFFIX)) == []


def test_short_questions_match_as_a_whole_only():
    index = PhraseIndex([BenchmarkQuestion("b", "1", "How tall is the Tokyo tower?", "x")])
    assert [found.exact for found in index.find("how TALL is the tokyo tower\nA. 333 m\nB. 634 m")] == [True]
    assert index.find("How tall is the Tokyo tower in metres?") == []


def test_what_questions_about_several_images_share_is_template_and_about_one_is_not():
    asked = [BenchmarkQuestion("b", str(n), "What colour is it?", f"image {n}") for n in range(3)]
    assert PhraseIndex(asked).find("What colour is it?") == []
    cycled = [question._replace(about="one image") for question in asked]
    assert len(PhraseIndex(cycled).find("What colour is it?")) == 3


def test_the_report_counts_by_benchmark_and_makes_a_table(scanner, row):
    report = scanner.report([row(question=QUESTION.format("cat")), row()])
    (counts,) = report.counts
    assert (counts.n_rows, counts.n_unread, counts.n_contaminated_rows, counts.n_training_rows) == (6, 0, 1, 1)
    assert counts.n_by_kind == {"phrase": 1}
    assert to_table(report.found).schema == CONTAMINATION


def test_a_built_index_needs_the_images_no_more_and_finds_the_same(benchmarks, tmp_path, store, row, crop):
    shown = row(crop=crop(photograph_image("cat"), (0.3, 0.3, 0.7, 0.7), 2))
    first = BenchmarkIndex.build(read_benchmarks(benchmarks), tmp_path / "index")
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "index").rglob("*.*")}
    again = BenchmarkIndex.build(read_benchmarks(benchmarks), tmp_path / "index")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "index").rglob("*.*")} == written
    assert Scanner(first, store).find(shown) == Scanner(again, store).find(shown) != []


def test_an_interrupted_build_goes_on(benchmarks, tmp_path):
    folder = tmp_path / "index"
    whole = BenchmarkIndex.build(read_benchmarks(benchmarks), folder)
    for path in folder.glob("rows-*"):
        shutil.rmtree(path)
    next(folder.rglob("*.npz")).unlink()
    assert BenchmarkIndex.build(read_benchmarks(benchmarks), folder).sha256s == whole.sha256s


def test_a_damaged_image_is_counted_as_unread(benchmarks, tmp_path, store):
    (benchmarks.parent / "photos" / "cat.png").write_bytes(b"no picture")
    index = BenchmarkIndex.build(read_benchmarks(benchmarks), tmp_path / "index")
    assert Scanner(index, store).report([]).counts[0].n_unread == 1


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ({"vstar": {"kind": "parquet", "path": "/nowhere/x.parquet"}}, "'vstar'.*nowhere"),
        ({"vstar": {"kind": "jsonl", "path": "/nowhere"}}, "'vstar'.*nowhere"),
        ({"vstar": {"kind": "folder", "path": "/nowhere"}}, "'vstar'.*nowhere"),
        ({"vstar": {"kind": "zip", "path": "x"}}, "vstar"),
        (["vstar"], "dictionary"),
    ],
)
def test_a_benchmark_that_cannot_be_read_is_named(tmp_path, listed, said):
    path = tmp_path / "listed.json"
    path.write_text(json.dumps(listed))
    with pytest.raises(DecontaminationError, match=said):
        BenchmarkIndex.build(read_benchmarks(path), tmp_path / "index")


def test_a_missing_list_is_named():
    with pytest.raises(DecontaminationError, match=r"nowhere\.yaml"):
        read_benchmarks(Path("/nowhere.yaml"))


def test_a_folder_of_images_is_a_benchmark(tmp_path, benchmarks):
    path = tmp_path / "listed.yaml"
    path.write_text(f"mine: {{kind: folder, path: {benchmarks.parent / 'photos'}}}")
    index = BenchmarkIndex.build(read_benchmarks(path), tmp_path / "index")
    assert len(index.rows["mine"]) == len(FEW)


def test_a_screenshot_and_a_collage_are_candidates_by_what_they_show(store):
    shown = [photograph_image("astronaut"), documents.HELD_OUT["pie"][1](random.Random(1)), photograph_image("coffee")]
    forms = [documents.SEEN["boxed form"][1](random.Random(seed)) for seed in range(2)]
    whole = [*shown, documents.screenshot(shown[0]), documents.collage([*shown, forms[0]]), forms[1]]
    images = [store.add_pixels(image) for image in whole]
    numbers = {image: number for number, image in enumerate(images)}
    found = {(numbers[image], numbers[of], match.kind) for image, of, match in shown_parts(images, store)}
    assert {(3, 0, "image_part"), (4, 0, "image_part"), (4, 1, "image_part")} <= found
    assert not {pair for pair in found if pair[:2] in {(0, 1), (1, 2), (2, 3), (3, 2)}}
