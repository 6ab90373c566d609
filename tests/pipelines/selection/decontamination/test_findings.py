"""What is looked for in texts, and what becomes of it: shares of runs, template text, counts, evidence, caches."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from darkroom.pipelines.records import ImageRef, Observation, Round
from darkroom.pipelines.selection.decontamination import (
    Contamination,
    DecontaminationError,
    TrainingRow,
    read_benchmarks,
)
from darkroom.pipelines.selection.decontamination.benchmarks import ShownImage, count
from darkroom.pipelines.selection.decontamination.images import FingerprintCache, ImageIndex, ImageMatch, fingerprint
from darkroom.pipelines.selection.decontamination.index import (
    BenchmarkIndex,
    BenchmarkPlace,
    BenchmarkQuestion,
    BenchmarkRow,
    MatchCache,
    PhraseIndex,
    PhraseMatch,
    Scanner,
)
from darkroom.pipelines.selection.duplicates.looks import perceptual_hash
from darkroom.pipelines.sources import BadRow
from tests.conftest import textured
from tests.image_files import encoded


def question(text: str, *, row: str = "1", about: str = "x") -> BenchmarkQuestion:
    return BenchmarkQuestion("b", row, text, about)


WORDS = "alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike november oscar papa"


def run(first: int, last: int) -> str:
    return " ".join(WORDS.split()[first:last])


@pytest.mark.parametrize(
    ("asked", "text", "found"),
    [
        (run(0, 13), run(0, 13), PhraseMatch(0, False, 1.0, run(0, 13))),
        (run(0, 13), f"so {run(0, 13)} then", PhraseMatch(0, False, 1.0, run(0, 13))),
        (run(0, 13), run(0, 12), None),
        (run(0, 16), run(0, 14), PhraseMatch(0, False, 0.5, run(0, 13))),
        (run(0, 16), f"{run(2, 16)} and {run(0, 13)}", PhraseMatch(0, False, 0.75, run(2, 15))),
        (run(0, 12), run(0, 12), PhraseMatch(0, True, 1.0, run(0, 12))),
        (run(0, 12), f"{run(0, 12)}\nA. one", PhraseMatch(0, True, 1.0, run(0, 12))),
        (run(0, 12), run(0, 13), None),
        ("alpha", "bravo\n\nAlpha?\n", PhraseMatch(0, True, 1.0, "alpha")),
        ("alpha", "", None),
    ],
)
def test_a_question_is_found_by_its_runs_of_13_words_or_as_a_whole_line(asked, text, found):
    assert PhraseIndex([question(asked)]).find(text) == ([] if found is None else [found])


def test_questions_come_by_number_and_template_text_belongs_to_none():
    template = run(0, 13)
    asked = [question(f"{name} {template}", about=name) for name in ("oscar", "papa", "mike")]
    found = PhraseIndex(asked).find(f"papa {template}, oscar {template}")
    assert [(one.asked, one.share) for one in found] == [(0, 1.0), (1, 1.0)]
    assert PhraseIndex(asked).find(template) == []
    assert [(one.asked, one.share) for one in PhraseIndex(asked[:2]).find(template)] == [(0, 0.5), (1, 0.5)]


def rows(*texts: str) -> list[BenchmarkRow]:
    return [BenchmarkRow(f"r{n}", text) for n, text in enumerate(texts)]


def in_texts(*texts: str, sample_id: str = "s") -> TrainingRow:
    return TrainingRow("", sample_id, texts, ())


def test_of_a_row_each_benchmark_row_is_found_once_per_kind_with_its_best_score(tmp_path: Path, store):
    index = BenchmarkIndex({"b": rows(run(0, 16), run(1, 3)), "a": rows(run(0, 14))}, FingerprintCache(tmp_path))
    row = in_texts(run(0, 13), f"{run(0, 15)}", run(1, 14), run(1, 3))
    found = Scanner(index, store).find(row)
    assert [(one.benchmark, one.benchmark_row, one.kind, one.score) for one in found] == [
        ("a", "r0", "phrase", 1.0),
        ("b", "r0", "phrase", 0.75),
        ("b", "r1", "question", 1.0),
    ]
    assert [one.detail for one in found[1:]] == [f"the same words: {run(0, 13)}", f"the same question: {run(1, 3)}"]
    assert Scanner(index, store).find(in_texts(run(0, 13), run(1, 14)))[0].detail.endswith(run(0, 13)), "the first"


def test_rows_without_a_text_or_unread_are_not_looked_for_and_are_counted(tmp_path: Path, store):
    of = [BenchmarkRow("0", ""), BenchmarkRow("1", error="unreadable"), *rows(run(0, 4)), BenchmarkRow("3", error="x")]
    index = BenchmarkIndex({"b": of, "empty": []}, FingerprintCache(tmp_path))
    assert [asked.text for asked in index.asked] == [run(0, 4)]
    report = Scanner(index, store).report([in_texts(run(0, 4)), in_texts(run(0, 4), sample_id="t"), in_texts("?")])
    counts = report.counts[0]
    assert (counts.n_rows, counts.n_unread, counts.n_contaminated_rows, counts.n_training_rows) == (4, 2, 1, 2)
    assert [one.sample_id for one in report.found] == ["s", "t"]
    assert report.counts[1].n_rows == report.counts[1].n_unread == 0


def test_questions_about_the_same_images_are_no_template(tmp_path: Path):
    cache = FingerprintCache(tmp_path)
    images = [cache.of(encoded(textured(n, (64, 48)), "PNG")).sha256 for n in range(3)]
    for shown, n_found in ((images, 0), (images[:2] + images[:1], 3), ([images[0]] * 3, 3)):
        of = [BenchmarkRow(str(n), run(0, 4), (image,)) for n, image in enumerate(shown)]
        assert len(BenchmarkIndex({"b": of}, cache).phrases.find(run(0, 4))) == n_found
    bare = [BenchmarkRow(str(n), text) for n, text in enumerate([run(0, 4), f"{run(0, 4)}?", f"{run(0, 4)}!"])]
    assert len(BenchmarkIndex({"b": bare}, cache).phrases.find(run(0, 4))) == 3


def test_an_image_has_the_rows_that_show_it_each_once(tmp_path: Path):
    cache = FingerprintCache(tmp_path)
    one, two = (cache.of(encoded(textured(n, (64, 48)), "PNG")).sha256 for n in range(2))
    of = {
        "b": [BenchmarkRow("0", "", (one, one)), BenchmarkRow("1", "", (two, one))],
        "c": [BenchmarkRow("0", "", (two,))],
    }
    index = BenchmarkIndex(of, cache)
    assert index.sha256s == sorted([one, two])
    assert index.places(index.sha256s.index(one)) == [BenchmarkPlace("b", "0"), BenchmarkPlace("b", "1")]
    assert index.places(index.sha256s.index(two)) == [BenchmarkPlace("b", "1"), BenchmarkPlace("c", "0")]


def finding(benchmark: str = "b", row: str = "0", *, sample: str = "s", trajectory: str = "", kind="phrase"):
    return Contamination(trajectory, sample, benchmark, row, kind, 1.0, "")


def test_findings_are_counted_by_benchmark_row_training_row_and_kind():
    found = [
        finding(),
        finding(kind="image"),
        finding(row="1", trajectory="t1"),
        finding(row="1", trajectory="t2"),
        finding("other", "7", sample="z"),
    ]
    counts = count(found, benchmark="b", n_rows=9, n_unread=2)
    assert (counts.n_rows, counts.n_unread, counts.n_contaminated_rows, counts.n_training_rows) == (9, 2, 2, 3)
    assert list(counts.n_by_kind.items()) == [("image", 1), ("phrase", 3)]
    none = count(found, benchmark="c", n_rows=0, n_unread=0)
    assert (none.n_contaminated_rows, none.n_training_rows, none.n_by_kind) == (0, 0, {})


def test_a_training_row_names_its_texts_and_where_each_image_is_shown(make_case):
    case = make_case(choices=("A. yes", "B. no"), answer="A")
    ref = ImageRef("f" * 64, 3, 3, "RGB", "PNG")
    seen = Round("second thought", "x", Observation("ok", "", images=(ref, ref)))
    row = replace(case.trajectory, rounds=(*case.trajectory.rounds, seen))
    of = TrainingRow.of_trajectory(row, case.sample)
    asked = "What does the sign say?\nA. yes\nB. no"
    assert of.texts == (asked, "The sign is small, so I look closer.", "second thought", "It says STOP.")
    where = ["image 0", "round 1, image 0", "round 2, image 0", "round 2, image 1"]
    assert [shown.where for shown in of.images] == where
    assert (of.row_id, of.first_image) == ("t" * 64, case.sample.images[0])
    bare = TrainingRow.of_sample(replace(case.sample, images=()))
    assert (bare.row_id, bare.texts, bare.images, bare.first_image) == ("s" * 64, (asked,), (), None)
    shown_later = TrainingRow("", "s", (), (ShownImage(ref, "round 1, image 0"),))
    assert shown_later.first_image is None


def test_matches_are_kept_by_image_and_forgotten_with_other_benchmarks(tmp_path: Path):
    file, asked = tmp_path / "deep" / "matches.sqlite", []

    def look() -> list[ImageMatch]:
        asked.append(1)
        return [ImageMatch(3, "image", 1.0, "the same bytes")]

    first = MatchCache(file, ["a"]).find("i", look)
    assert MatchCache(file, ["a"]).find("i", look) == first == look()
    assert len(asked) == 2
    MatchCache(file, ["a"]).find("j", look)
    assert len(asked) == 3
    MatchCache(file, ["b"])
    MatchCache(file, ["a"]).find("i", look)
    assert len(asked) == 4, "those of other benchmarks are deleted"


def test_a_damaged_cache_is_made_again_and_one_that_cannot_be_opened_is_an_error(tmp_path: Path):
    damaged, folder = tmp_path / "m.sqlite", tmp_path / "folder"
    damaged.write_bytes(b"damaged" * 1000)
    assert MatchCache(damaged, []).find("i", list) == []
    folder.mkdir()
    with pytest.raises(sqlite3.OperationalError):
        MatchCache(folder, [])
    assert folder.is_dir()


def test_a_fingerprint_is_kept_as_it_was_computed(tmp_path: Path):
    cache, image = FingerprintCache(tmp_path), textured(2, (1200, 96))
    data = encoded(image, "PNG")
    computed, kept = cache.of(data), cache.of(data)
    assert computed.sha256 == kept.sha256
    assert computed.hash == kept.hash == perceptual_hash(image)
    assert (computed.features.places == kept.features.places).all()
    assert (computed.features.signatures == kept.features.signatures).all()
    assert kept.gray.shape == (82, 1024), "the longer side has 1,024 pixels"
    assert kept.features.places[:, 0].max() < 1024
    assert kept.features.places[:, 0].max() > 900
    assert kept.features.places[:, 1].max() < 82
    assert 300 < kept.features.places[:, 3].max() <= 360
    assert fingerprint(encoded(textured(2, (120, 60)), "PNG")).gray.shape == (60, 120), "never enlarged"
    plain = cache.of(encoded(textured(2, (120, 60)).point(lambda _: 90), "PNG"))
    assert plain.hash is None
    assert cache.read(plain.sha256).hash is None


@pytest.fixture(scope="module")
def shown() -> ImageIndex:
    """Two images of noise, the second without a hash."""
    prints = [fingerprint(encoded(textured(n, (240, 180)), "PNG")) for n in (0, 1)]
    return ImageIndex([prints[0], replace(prints[1], hash=None)])


def test_the_same_bytes_need_no_look(shown: ImageIndex):
    sha256 = fingerprint(encoded(textured(1, (240, 180)), "PNG")).sha256
    found = shown.find(textured(5, (64, 64)), sha256)
    assert found == [ImageMatch(1, "image", 1.0, "the same bytes")]


@pytest.mark.parametrize(
    ("n", "change", "said"),
    [
        (0, lambda image: image, "0 of 64 bits differ; "),
        (0, lambda image: image.rotate(90, expand=True), " of 64 bits differ, rotated 270; "),
        (0, lambda image: image.transpose(0), " of 64 bits differ, mirrored; "),
        (1, lambda image: image.resize((220, 165)), "the area"),
        (1, lambda image: image.transpose(0).resize((220, 165)), "the area, mirrored"),
    ],
)
def test_a_changed_image_is_found_with_what_was_done_to_it(shown: ImageIndex, n, change, said):
    (found,) = shown.find(change(textured(n, (240, 180))), "")
    assert (found.image, found.kind) == (n, "near_image")
    assert found.score > 0.75
    assert said in found.detail
    assert ("bits differ" in found.detail) is (n == 0)
    assert "% of the details agree where both show something, " in found.detail


def test_a_part_says_how_much_of_each_is_the_same(shown: ImageIndex):
    part = textured(0, (240, 180)).crop((45, 30, 150, 120))
    for image, end in ((part, "agree"), (part.transpose(0), "agree, mirrored")):
        (found,) = shown.find(image.resize((210, 180)), "")
        assert (found.image, found.kind) == (0, "image_part")
        assert found.score >= 0.9
        assert found.detail.startswith(("100% of the training image and 22%", "99% of the training image and 22%"))
        assert found.detail.endswith(f"features {end}")
    assert shown.find(textured(8, (240, 180)), "") == []


def listed(folder: Path, of: Path) -> Path:
    path = folder / "list.yaml"
    path.write_text(f"mine: {{kind: folder, path: {of}}}")
    return path


def test_a_folder_has_its_images_in_order_those_of_folders_below_too(tmp_path: Path):
    folder = tmp_path / "images"
    (folder / "b").mkdir(parents=True)
    for name in ("c.PNG", "b/x.jpeg", "a.txt", "d.tif"):
        (folder / name).write_bytes(b"1")
    (folder / "e.png").mkdir()
    (benchmark,) = read_benchmarks(listed(tmp_path, folder))
    assert [row.row for row in benchmark.rows()] == ["b/x.jpeg", "c.PNG", "d.tif"]
    before = benchmark.fingerprint()
    assert benchmark.fingerprint() == before
    (folder / "d.tif").write_bytes(b"22")
    os.utime(folder / "d.tif", (1, 1))
    assert benchmark.fingerprint() != before
    before = benchmark.fingerprint()
    os.utime(folder / "d.tif", (2, 2))
    assert benchmark.fingerprint() != before
    assert replace(benchmark, name="other").fingerprint() != benchmark.fingerprint()


def test_a_folder_that_is_not_there_is_named_and_an_image_that_cannot_be_read_is_a_bad_row(tmp_path: Path, monkeypatch):
    (benchmark,) = read_benchmarks(listed(tmp_path, tmp_path / "none"))
    for ask in (benchmark.fingerprint, lambda: list(benchmark.rows())):
        with pytest.raises(DecontaminationError, match="'mine': there is no folder"):
            ask()
    folder = tmp_path / "some"
    folder.mkdir()
    (folder / "a.png").write_bytes(b"1")
    (benchmark,) = read_benchmarks(listed(tmp_path, folder))
    rows = benchmark.rows()
    monkeypatch.setattr(Path, "read_bytes", lambda path: (path / "no").open())
    (row,) = rows
    assert isinstance(row, BadRow)
    assert (row.row, row.reason.value) == ("a.png", "unreadable_image")
    assert "a.png" in row.evidence
