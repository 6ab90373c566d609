"""The embedded source: what its rows promise, on the images themselves.

``demo_rows.json`` pins decoded pixels and truth of some rows of seed 0, for the package versions that it names; to
renew it after a change of ``DEMO_VERSION`` or of a package: ``python tests/pipelines/demo/images/test_demo_images.py``.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import socket
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

import pytest
from PIL import Image, ImageStat

from darkroom.pipelines.demo import images as demo_source
from darkroom.pipelines.demo.images import DEMO_VERSION, DemoSource, assigned
from darkroom.pipelines.demo.images.material import MaterialError, packaged_bytes
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.records import to_row
from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.storage.media_validation import probe_video

pytestmark = pytest.mark.e2e  # on every row of the embedded source
PINS = Path(__file__).with_name("demo_rows.json")
PINNED = (
    "scene/00",
    "scene/00/1",
    "scene/03",
    "scene/08",
    "photo/coins",
    "page/01",
    "chart/06",
    "notice/00/2",
    "maths/00",
)
DIGESTS = """
import hashlib, sys
from darkroom.pipelines.demo.images import DemoSource
for row in DemoSource(n_shards=4).rows(1):
    print(row.row, hashlib.sha256(repr(row).encode()).hexdigest())
"""


def built(seed: int = 0) -> list[SourceRow]:
    source = DemoSource(seed=seed)
    rows = [row for shard in range(source.n_shards) for row in source.rows(shard)]
    assert all(isinstance(row, SourceRow) for row in rows)
    return rows


@pytest.fixture(scope="module")
def rows() -> dict[str, SourceRow]:
    """Every row, made while no socket can be connected."""

    def refuse(*_: object) -> None:
        raise AssertionError("the demo opened a socket")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(socket.socket, "connect", refuse)
        patched.setattr(socket, "getaddrinfo", refuse)
        return {row.row: row for row in built()}


def of_kind(rows: dict[str, SourceRow], kind: str) -> list[SourceRow]:
    return [row for name, row in rows.items() if name.startswith(f"{kind}/")]


def opened(row: SourceRow) -> Image.Image:
    return Image.open(io.BytesIO(row.images[0]))


def digest(row: SourceRow) -> dict[str, str]:
    pixels = hashlib.sha256(b"".join(Image.open(io.BytesIO(image)).tobytes() for image in row.images)).hexdigest()
    facts = [row.question, row.answer, list(row.choices), to_row(row.truth), row.category, row.license]
    return {"pixels": pixels, "facts": hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()}


def versions() -> dict[str, str]:
    return {"demo": DEMO_VERSION, **{package: version(package) for package in demo_source.PACKAGES}}


def test_there_are_rows_of_every_kind(rows):
    kinds = Counter(name.split("/")[0] for name in rows)
    images = {"scene": 96, "photo": 10, "overview": 15, "snapshot": 15, "page": 37, "chart": 48, "notice": 96}
    assert kinds == {**images, "maths": 24, "diagram": 4, "figure": 40, "film": 24, "damaged": 2}


def test_every_box_lies_inside_its_image(rows):
    for row in rows.values():
        for box in row.truth.boxes:
            assert box.box.fits(*opened(row).size), row.row


def test_scenes_are_wider_than_2048_pixels(rows):
    assert all(max(opened(row).size) > 2048 for row in of_kind(rows, "scene"))


def test_the_targets_of_scenes_are_small(rows):
    shares = []
    for row in of_kind(rows, "scene"):
        width, height = opened(row).size
        shares += [box.box.area / (width * height) for box in row.truth.boxes]
    assert max(shares) <= 0.05
    assert sum(share < 0.01 for share in shares) > len(shares) / 2


def test_the_targets_of_scenes_never_touch(rows):
    for row in of_kind(rows, "scene"):
        boxes = [box.box for box in row.truth.boxes]
        assert len(boxes) >= 2, "a target without another of its kind needs no looking"
        assert not any(a.intersection(b).area for i, a in enumerate(boxes) for b in boxes[:i]), row.row


def test_something_is_drawn_inside_every_target_box(rows):
    for row in [*of_kind(rows, "scene"), *of_kind(rows, "page")]:
        image = opened(row).convert("L")
        for box in row.truth.boxes:
            assert ImageStat.Stat(image.crop(box.box)).stddev[0] > 8, (row.row, box)


def test_choices_are_lettered_and_hold_the_answer(rows):
    for row in rows.values():
        if row.choices:
            assert len(row.choices) >= 4, row.row
            assert len({choice.split(". ", 1)[1] for choice in row.choices}) == len(row.choices), row.row
            assert [choice[0] for choice in row.choices] == list("ABCDEFGH"[: len(row.choices)]), row.row
            assert row.answer in "ABCDEFGH"[: len(row.choices)], row.row


def test_no_letter_is_right_most_of_the_time(rows):
    letters = Counter(row.answer for row in rows.values() if row.choices)
    assert set("ABCD") <= set(letters)
    assert max(letters.values()) <= 0.45 * letters.total()


def test_scenes_have_open_questions_and_choices_in_six_categories(rows):
    scenes = of_kind(rows, "scene")
    assert {row.category for row in scenes} == {"OCR", "attribute", "location", "quantity", "object", "chart"}
    assert {bool(row.choices) for row in scenes} == {True, False}


def test_an_open_answer_is_not_in_its_question(rows):
    for row in of_kind(rows, "scene"):
        assert row.choices or row.answer not in row.question, row.row


def test_questions_are_unique(rows):
    questions = Counter(row.question for row in rows.values())
    assert max(questions.values()) == 1


def test_counted_dots_are_the_count(rows):
    for row in of_kind(rows, "scene"):
        if row.category == "quantity":
            assert f"{row.answer}. {row.truth.count}" in row.choices


def test_the_shards_partition_the_rows(rows, monkeypatch):
    monkeypatch.setattr(demo_source, "built", lambda row: row.name)
    three = DemoSource(n_shards=3)
    shards = [list(three.rows(shard)) for shard in range(3)]
    everything = [name for shard in shards for name in shard]
    assert sorted(everything) == sorted(rows)
    of_image = [{"/".join(name.split("/")[:2]) for name in shard} for shard in shards]
    assert not any(one & other for n, one in enumerate(of_image) for other in of_image[:n])


def test_all_questions_about_an_image_follow_each_other(rows):
    names = [row.name.split("/")[:2] for row in DemoSource()._all()]
    assert len(list(groupby(names))) == len({tuple(name) for name in names})
    images = {name: row.images for name, row in rows.items()}
    assert all(row.images == images["/".join(name.split("/")[:2])] for name, row in rows.items())


def test_no_question_is_for_more_than_three_families(rows):
    families = {
        name: json.loads(row.truth.details or "{}").get("families")
        for name, row in rows.items()
        if row.images and not name.startswith("damaged/")
    }
    assert all(1 <= len(set(of_row)) <= 3 for of_row in families.values())
    assert {family for of_row in families.values() for family in of_row} <= load_recipes().keys()


def test_all_families_together_ask_four_questions_about_an_image_at_most(rows):
    """Of walls three: people ask one more about each (annotation/recordings)."""
    asked = Counter(row.images for row in rows.values() if row.images)
    assert max(asked.values()) == 4
    assert max(asked[row.images] for row in of_kind(rows, "scene")) == 3


def test_the_deal_depends_on_names_alone(rows):
    names = list(rows)
    assert assigned(names) == assigned(reversed(names))


def test_a_thing_on_a_wall_is_asked_about_once(rows):
    asked = Counter((name[:8], row.truth.boxes[0]) for name, row in rows.items() if name.startswith("scene/"))
    assert max(asked.values()) == 1


def test_a_shard_builds_no_image_of_another(monkeypatch):
    made: list[str] = []
    monkeypatch.setattr(demo_source, "built", lambda row: made.append(row.name))
    list(DemoSource(n_scenes=4).rows(1))
    assert "scene/01" in made
    assert "scene/00" not in made


def test_rows_are_built_when_they_are_reached():
    first = next(iter(DemoSource(n_scenes=1000).rows(0)))
    assert first.row == "scene/00"


def test_a_snapshot_says_how_far_it_was_turned_and_faded(rows):
    for row in of_kind(rows, "snapshot"):
        levels = ImageStat.Stat(opened(row).convert("L")).extrema[0]
        assert row.truth.angle in (None, 90, 180, 270), row.row
        assert row.truth.angle or row.truth.contrast, row.row
        assert (levels[1] - levels[0] < 60) == (row.truth.contrast is not None), row.row


def test_a_snapshot_does_not_say_in_its_file_how_it_was_turned(rows):
    assert not any(opened(row).getexif() for row in of_kind(rows, "snapshot"))


def test_there_is_no_shard_beyond_the_last():
    with pytest.raises(ValueError, match="shards 0 to 1"):
        DemoSource().rows(2)


def test_another_seed_gives_other_scenes(rows):
    other = {row.row: row for row in DemoSource(n_shards=8, seed=1, n_scenes=8).rows(0)}
    assert other["scene/00"].images != rows["scene/00"].images
    assert other["scene/00"].question != rows["scene/00"].question


def test_the_fingerprint_follows_every_parameter():
    sources = [DemoSource(), DemoSource(n_shards=3), DemoSource(seed=1), DemoSource(n_scenes=9)]
    assert len({source.fingerprint for source in sources}) == 4
    assert DemoSource().fingerprint == DemoSource().fingerprint


def test_another_process_makes_the_same_shard(rows):
    """With other hashes: those of this process are random, or given by a seed that is not this one."""
    environment = {**os.environ, "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"}
    command = [sys.executable, "-c", DIGESTS]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    shard = dict(line.split() for line in said.splitlines())
    assert shard
    assert shard == {name: hashlib.sha256(repr(rows[name]).encode()).hexdigest() for name in shard}


def test_pixels_and_truth_of_seed_0_are_pinned(rows):
    pins = json.loads(PINS.read_text())
    if pins["versions"] != versions():
        pytest.skip(f"pinned for {pins['versions']}")
    assert {name: digest(rows[name]) for name in PINNED} == pins["rows"]


def verify(details: str, answer: str) -> float:
    """Score an answer by the verifier that the details name; 0 also for one that it cannot read."""
    import reasoning_gym  # takes a second

    truth = json.loads(details)
    assert truth["verifier"] == "reasoning_gym"
    try:
        return float(reasoning_gym.get_score_answer_fn(truth["task"])(answer, truth["entry"]))
    except (ArithmeticError, AttributeError, LookupError, SyntaxError, TypeError, ValueError):
        # prime_factorization and others parse the answer without a guard
        return 0.0


def test_maths_answers_satisfy_their_own_verifier(rows):
    for row in of_kind(rows, "maths"):
        assert row.images == ()
        assert verify(row.truth.details, row.answer) == 1, row.row


@pytest.mark.parametrize("wrong", ["", "no idea", "123456789.5"])
def test_wrong_maths_answers_do_not_pass(rows, wrong):
    for row in of_kind(rows, "maths"):
        assert verify(row.truth.details, wrong) < 1, row.row


def test_films_are_short_and_name_the_moments_that_answer(rows):
    for row in of_kind(rows, "film"):
        (video,) = row.videos
        found = probe_video(video)
        assert (found.n_frames, found.fps, row.images) == (48, 8.0, ())
        assert len(video) <= 200_000, row.row
        moments = json.loads(row.truth.details)["moments"]
        assert moments, row.row
        assert all(0 <= moment["first"] < moment["end"] <= 48 for moment in moments), row.row


def test_a_badge_shows_up_as_often_as_its_count(rows):
    counted = [row for row in of_kind(rows, "film") if row.category == "quantity"]
    assert len(counted) == 6
    for row in counted:
        assert len(json.loads(row.truth.details)["moments"]) == row.truth.count
        assert f"{row.answer}. {row.truth.count}" in row.choices


def test_damaged_rows_cannot_be_decoded(rows):
    with pytest.raises(OSError, match="truncated"):
        opened(rows["damaged/truncated"]).load()
    assert rows["damaged/empty"].images == (b"",)


def test_every_row_with_an_image_says_its_licence(rows):
    licences = {row.license for row in rows.values() if row.row != "damaged/empty"}
    assert all(licence and "unknown" not in licence for licence in licences)


def test_all_images_together_stay_below_40_mb(rows):
    assert sum(map(len, {image for row in rows.values() for image in row.images})) < 40e6


def test_no_row_needs_the_network(rows):
    assert all(isinstance(row, SourceRow) for row in rows.values())


def test_a_package_without_its_file_makes_a_bad_row(monkeypatch):
    def missing(package: str, path: str) -> bytes:
        return packaged_bytes(package, f"{path}.gone")

    monkeypatch.setattr("darkroom.pipelines.demo.images.material.packaged_bytes", missing)
    with pytest.raises(MaterialError, match="does not carry it"):
        missing("skimage", "data/coins.png")
    of_both = [row for row in DemoSource()._all() if row.name in ("photo/coins", "maths/00")]
    monkeypatch.setattr(DemoSource, "_all", lambda _: of_both)
    bad, good = DemoSource(n_shards=1).rows(0)
    assert isinstance(bad, BadRow)
    assert (bad.row, bad.reason) == ("photo/coins", "material_missing")
    assert isinstance(good, SourceRow), "it needs nothing of the package"


if __name__ == "__main__":
    by_name = {row.row: row for row in built()}
    pins = {"versions": versions(), "rows": {name: digest(by_name[name]) for name in PINNED}}
    PINS.write_text(json.dumps(pins, indent=2, sort_keys=True) + "\n")
