"""Near-duplicates and rows of a benchmark do not ship, and the reject says why."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image, ImageOps
from skimage import data

from darkroom.pipelines.records import ImageRef, Sample, Trajectory
from darkroom.pipelines.selection import screening
from darkroom.pipelines.selection.decontamination import TrainingRow
from darkroom.pipelines.selection.decontamination.benchmarks import ShownImage
from darkroom.pipelines.selection.duplicates import key_index, texts
from darkroom.pipelines.selection.sampling import Split, grouped
from darkroom.pipelines.selection.screening import DistinctImages, Mapped, ScreenedRows, Screening
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.row_files import RowStream
from darkroom.pipelines.storage.workspace import Workspace


def _row(make_case, store: ImageStore, n: int, pixels, question: str) -> tuple[Sample, Trajectory]:
    case, image = make_case(), store.add_pixels(pixels)
    sample = replace(case.sample, sample_id=f"s{n}", question=question, choices=(), images=(image,))
    return sample, replace(case.trajectory, trajectory_id=f"t{n}", sample_id=f"s{n}", images=(image,), rounds=())


@pytest.fixture
def cat() -> Image.Image:
    return Image.fromarray(data.cat())


@pytest.fixture
def coffee() -> Image.Image:
    return Image.fromarray(data.coffee())


def test_a_row_whose_image_and_question_are_near_another_goes(workspace: Workspace, make_case, cat, coffee) -> None:
    question, store = "What is the colour of the eyes of the animal in the picture?", workspace.images
    rows = [
        _row(make_case, store, 0, cat, question),
        _row(make_case, store, 1, cat.resize((200, 133)), question),
        _row(make_case, store, 2, cat, "How many whiskers can be counted on the left side?"),
        _row(make_case, store, 3, coffee, question),
    ]
    errors = Screening(workspace).screen("crop", rows)
    assert {row: error.reason.value for row, error in errors.items()} == {"t1": "near_duplicate"}
    assert "t0" in errors["t1"].evidence
    assert not (workspace.home / "contamination").exists()


def test_rows_whose_answers_differ_are_other_rows(workspace: Workspace, make_case, cat) -> None:
    """Of a form filled in otherwise, or a chart with another bar: the image may be taken for one, the answer tells."""
    question, store = "What is written in the third field of the form?", workspace.images
    answers = ["Keller", "Novak", "keller.", "Novak", "Okafor"]
    pixels = [cat, cat.resize((300, 200)), cat.resize((225, 150)), cat.crop((4, 2, 450, 298)), ImageOps.mirror(cat)]
    rows = [_row(make_case, store, n, image, question) for n, image in enumerate(pixels)]
    rows = [(replace(sample, answer=text), row) for (sample, row), text in zip(rows, answers, strict=True)]
    bare = [(replace(sample, images=()), replace(row, images=())) for sample, row in rows]
    for of in (rows, bare):
        errors = Screening(workspace).screen("crop", of)
        assert {row: error.evidence.split()[7] for row, error in errors.items()} == {"t2": "t0,", "t3": "t1,"}


def test_of_choices_the_right_ones_text_is_the_answer_whatever_its_letter(workspace: Workspace, make_case, cat) -> None:
    walk = ", ".join(f"past the {nth} of the posts" for nth in ("first", "second", "third", "fourth", "fifth", "sixth"))
    question, store = f"Walking up the path {walk}, which of these creatures does one meet?", workspace.images
    listed = [("A. cat", "B. dog"), ("A. dog", "B. cat"), ("A. dog", "B. cat")]
    pixels = [cat, cat.resize((300, 200)), cat.resize((225, 150))]
    rows = [_row(make_case, store, n, image, question) for n, image in enumerate(pixels)]
    of_choices = [
        (replace(sample, choices=choices, answer=letter), row)
        for (sample, row), choices, letter in zip(rows, listed, ("A", "B", "A"), strict=True)
    ]
    assert set(Screening(workspace).screen("crop", of_choices)) == {"t1"}, "the cat twice, by two letters, and the dog"


def test_a_row_that_shows_a_benchmarks_image_goes_with_its_evidence(
    workspace: Workspace, make_case, cat, coffee, tmp_path: Path
) -> None:
    folder = tmp_path / "private"
    folder.mkdir()
    cat.convert("RGB").save(folder / "cat.jpg", quality=80)
    workspace.home.mkdir(parents=True, exist_ok=True)
    workspace.benchmarks.write_text(json.dumps({"private": {"kind": "folder", "path": str(folder)}}))
    rows = [_row(make_case, workspace.images, 0, cat, "A?"), _row(make_case, workspace.images, 1, coffee, "B?")]
    errors = Screening(workspace).screen("crop", rows)
    assert {row: error.reason.value for row, error in errors.items()} == {"t0": "contaminated"}
    assert errors["t0"].evidence.startswith("private cat.jpg: near_image")
    found = pq.read_table(workspace.home / "contamination" / "crop.parquet").to_pylist()
    assert {(row["trajectory_id"], row["benchmark_row"]) for row in found} == {("t0", "cat.jpg")}


@pytest.mark.parametrize(
    "change",
    [
        ImageOps.mirror,
        lambda image: image.rotate(90, expand=True),
        lambda image: image.crop((20, 0, image.width - 20, image.height * 9 // 10)),
    ],
)
def test_a_changed_image_with_the_same_question_goes(workspace: Workspace, make_case, cat, change) -> None:
    """By hash alone, as it shipped before, none of these was found."""
    question, store = "What is the colour of the eyes of the animal in the picture?", workspace.images
    rows = [_row(make_case, store, 0, cat, question), _row(make_case, store, 1, change(cat), question)]
    assert set(Screening(workspace).screen("crop", rows)) == {"t1"}


def test_a_mirrored_part_of_a_benchmarks_image_is_found(workspace: Workspace, make_case, cat, tmp_path: Path) -> None:
    folder = tmp_path / "private"
    folder.mkdir()
    cat.convert("RGB").save(folder / "cat.png")
    workspace.home.mkdir(parents=True, exist_ok=True)
    workspace.benchmarks.write_text(json.dumps({"private": {"kind": "folder", "path": str(folder)}}))
    part = ImageOps.mirror(cat).crop((150, 60, 350, 220))
    errors = Screening(workspace).screen("crop", [_row(make_case, workspace.images, 0, part, "A?")])
    assert errors["t0"].evidence.startswith("private cat.png: image_part")
    assert errors["t0"].evidence.endswith("mirrored")


def test_images_that_are_one_changed_are_in_one_split(workspace: Workspace, make_case, cat, coffee) -> None:
    images = [cat, ImageOps.mirror(cat), coffee]
    samples = [_row(make_case, workspace.images, n, image, "A?")[0] for n, image in enumerate(images)]
    same = Screening(workspace).same_images(image for sample in samples for image in sample.images)
    assert same == {samples[1].images[0].sha256: samples[0].images[0].sha256}
    published: list[tuple[Split, Sample]] = [("train", samples[0]), ("validation", samples[2])]
    splits = grouped(samples, validation_share=0.5, same=same, published=published)
    assert [splits.of(sample.sample_id) for sample in samples] == ["train", "train", "validation"]
    published = [("validation", samples[0]), ("train", samples[2])]
    splits = grouped(samples, validation_share=0.5, same=same, published=published)
    assert [splits.of(sample.sample_id) for sample in samples] == ["validation", "validation", "train"]


def test_a_set_of_images_is_compared_once(workspace: Workspace, make_case, cat, coffee, monkeypatch) -> None:
    images = [workspace.images.add_pixels(image) for image in (cat, ImageOps.mirror(cat), coffee)]
    same = Screening(workspace).same_images(images)
    kept = list((workspace.local / "same_images").iterdir())
    with monkeypatch.context() as patched:
        patched.setattr(Screening, "_same", lambda *_: pytest.fail("compared again"))
        assert Screening(workspace).same_images(images) == same
    assert Screening(workspace).same_images(images[::-1]) == {images[0].sha256: images[1].sha256}
    for path in kept:
        path.write_text("{")  # cut off
    assert Screening(workspace).same_images(images) == same
    for n in range(screening._KEPT + 2):
        Screening(workspace).same_images([workspace.images.add_pixels(cat.crop((0, 0, 200 + n, 200)))])
    assert len(list(kept[0].parent.iterdir())) == screening._KEPT == 8


def test_an_image_about_which_no_question_is_near_anothers_is_not_opened(
    workspace: Workspace, make_case, cat, coffee, monkeypatch
) -> None:
    texts = ["What is the colour of the eyes?", "How many cups are there?", "How many cups are there?"]
    rows = [
        _row(make_case, workspace.images, n, image, text)
        for n, (image, text) in enumerate(zip((cat, coffee, ImageOps.mirror(coffee)), texts, strict=True))
    ]
    opened, open_image = [], ImageStore.open
    screening._look_of.cache_clear()
    monkeypatch.setattr(ImageStore, "open", lambda store, ref: opened.append(ref.sha256) or open_image(store, ref))
    assert set(Screening(workspace).screen("crop", rows)) == {"t2"}
    assert {sample.images[0].sha256 for sample, _ in rows[1:]} == set(opened)


@pytest.mark.parametrize("n_each", [1, 12])
def test_questions_are_near_however_many_there_are(n_each: int) -> None:
    questions = {f"What is written on sign {n} at the old station?" for n in range(n_each)}
    others = {f"What is written on plate {n} at the old station today?" for n in range(n_each)}
    assert (n_each + 1) ** 2 <= screening._FEW_PAIRS or n_each**2 > screening._FEW_PAIRS
    assert not screening._have_near(questions, others)
    asked = "What is written on the red sign at the old station?"
    assert screening._have_near(questions | {asked}, others | {f"{asked} Now."})


def test_rows_are_rejected_in_the_order_of_their_groups(workspace: Workspace, make_case, cat, coffee) -> None:
    """Those without images first, then by the first row of each image."""
    question = "What is the colour of the eyes of the animal in the picture?"
    rows = [_row(make_case, workspace.images, n, image, question) for n, image in enumerate([cat, coffee] * 2)]
    bare = [_row(make_case, workspace.images, n, cat, question) for n in (4, 5)]
    rows += [(replace(sample, images=()), replace(row, images=())) for sample, row in bare]
    errors = Screening(workspace).screen("crop", rows)
    assert list(errors) == ["t5", "t2", "t3"]
    for row, of in (("t5", "t4"), ("t2", "t0"), ("t3", "t1")):
        assert f"those of {of}," in errors[row].evidence


def _ref(name: str) -> ImageRef:
    return ImageRef(name * 64, 3, 3, "RGB", "PNG")


def test_images_are_numbered_in_the_order_of_their_first_mentions(tmp_path: Path) -> None:
    images = DistinctImages([None, _ref("f"), _ref("a"), _ref("f"), None, _ref("c"), _ref("a")], tmp_path)
    assert images.numbers.tolist() == [-1, 0, 1, 0, -1, 2, 1]
    assert images.first.tolist() == [1, 2, 5]
    assert [images[n] for n in range(len(images))] == [_ref("f"), _ref("a"), _ref("c")]
    for none in ([], [None]):
        assert len(DistinctImages(none, tmp_path)) == 0


def _training(n: int, question: str, image: str, answer: str = "!") -> TrainingRow:
    shown = [ShownImage(_ref(image), "image 0")] if image else []
    return TrainingRow("", f"s{n}", (question, "thought"), tuple(shown), answer)


def test_rows_have_their_questions_by_place_and_by_image(tmp_path: Path) -> None:
    of = [_training(n, f"q{n}", image) for n, image in enumerate(["", "b", "a", "b", "a", ""])]
    rows = ScreenedRows(
        [*of, _training(6, "q1", "b"), _training(7, "q7", "c", "Red."), _training(8, "", "", "red")], tmp_path
    )
    assert len(rows) == 9
    assert [rows.row_id(n) for n in (0, 8)] == ["s0", "s8"]
    assert list(rows.questions()) == ["q0", "q1", "q2", "q3", "q4", "q5", "q1", "q7", ""]
    assert [rows.questions_about(n) for n in range(3)] == [{"q1", "q3"}, {"q2", "q4"}, {"q7"}]
    assert rows.answers[7] == rows.answers[8] != rows.answers[0]
    signs = ScreenedRows([_training(0, "q", "", "!"), _training(1, "q", "", "?"), _training(2, "q", "", "!")], tmp_path)
    assert signs.answers[0] == signs.answers[2] != signs.answers[1], "answers without words are told apart as they are"


def test_what_is_mapped_is_computed_when_it_is_asked_for() -> None:
    asked: list[int] = []
    mapped = Mapped([7, 5], lambda n: asked.append(n) or n * 2)
    assert (len(mapped), asked) == (2, [])
    assert (mapped[1], mapped[0], mapped[1]) == (10, 14, 10)
    assert asked == [5, 7, 5]


def test_up_to_a_hundred_pairs_of_questions_are_compared_by_themselves(monkeypatch) -> None:
    monkeypatch.setattr(screening, "near_texts", lambda *_: pytest.fail("searched"))
    few = {f"word{n} one two three" for n in "abcdefghij"}
    assert not screening._have_near(few, {f"other{n} four five six" for n in "abcdefghij"})
    assert screening._have_near(few, {"worda one two three!"})
    assert screening._have_near({"same", "x"}, {"y", "same"})
    assert not screening._have_near(set(), {"a"})


def test_of_many_questions_those_of_one_image_are_not_compared_with_each_other() -> None:
    own = {f"What is on the red sign number{n} at the old station?" for n in "abcdefghijk"}
    twins = {
        "Who stands to the left of the tall man in the blue coat?",
        "Who stands to the left of the tall man in the blue coat",
    }
    for questions, others in (
        (own | twins, {f"{n} rare thing" for n in "abcdefghijk"}),
        ({f"{n} rare" for n in "abcdefghijklm"}, own | twins),
    ):
        assert not screening._have_near(questions, others)
    asked = "How many birds sit on the long wire above the road?"
    assert screening._have_near(own | {asked}, {f"{n} rare" for n in "abcdefghijk"} | {asked.lower()})


@pytest.mark.e2e
def test_what_screening_leaves_in_memory_of_a_row_is_small(workspace: Workspace, make_case, monkeypatch) -> None:
    """Four times the rows, each with its own question: less than 400 bytes more of each."""
    case = make_case()

    def rows(n_rows: int) -> RowStream[tuple[Sample, Trajectory]]:
        def read() -> Iterator[tuple[Sample, Trajectory]]:
            for n in range(n_rows):
                image = replace(case.sample.images[0], sha256=f"{n:064}")
                words = " ".join(f"word{n * 31 + at}" for at in range(40))
                sample = replace(case.sample, sample_id=f"s{n}", question=words, choices=(), images=(image,))
                yield sample, replace(case.trajectory, trajectory_id=f"t{n}", images=(image,), rounds=())

        return RowStream(n_rows, read)

    def peak(n_rows: int) -> int:
        tracemalloc.start()
        assert Screening(workspace).screen("crop", rows(n_rows)) == {}
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    monkeypatch.setattr(texts, "BLOCK", 64)
    monkeypatch.setattr(key_index, "_PIECE", 1)
    peak(10)
    assert peak(2_000) - peak(500) < 1_500 * 400
