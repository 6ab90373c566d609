"""The family `rotation`: what it does to samples, what it hides, and the whole chain on the embedded source."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from darkroom import sandbox
from darkroom.pipelines.demo.images import DemoSource
from darkroom.pipelines.demo.images.material import photograph_image, texture
from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes.rotation import ANGLES, MAX_SIDE, prepare, recipe
from darkroom.pipelines.records import Draft, Sample, Trajectory, Truth, TruthBox
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.vision.registration import pose_of
from tests.pipelines.scripted import run_all, taken_out, turn_by_turn

PARTITION = "demo-0000"


@pytest.fixture
def sample(store) -> Callable[..., Sample]:
    def make(image: Image.Image, *, sample_id: str = "a" * 64, **known) -> Sample:
        return Sample(
            sample_id=sample_id,
            source="photographs",
            source_row="1",
            license="CC0-1.0",
            images=(store.add_pixels(image),),
            question="What lies on the saucer?",
            choices=(),
            answer="spoon",
            truth=Truth(**known),
            category="object",
        )

    return make


@pytest.fixture
def many(sample) -> list[Sample]:
    image = photograph_image("coffee").resize((150, 100))
    return [replace(sample(image), sample_id=f"{n:064d}") for n in range(30)]


def test_angles_are_thymes_half_turns_among_them():
    assert list(ANGLES) == list(range(30, 336))


def test_samples_are_turned_by_their_own_angle_the_same_each_time(store, sample):
    made = sample(photograph_image("coffee"))
    samples = [replace(made, sample_id=f"{n:064d}") for n in range(8)]
    prepared = [prepare(one, store) for one in samples]
    assert prepared == [prepare(one, store) for one in samples]
    assert len({one.hint["angle"] for one in prepared}) > 4
    assert all(one.hint["angle"] + one.hint["correction"] == 360 for one in prepared)


def test_the_image_is_turned_by_what_the_hint_says(store, sample):
    original = photograph_image("coffee")
    prepared = prepare(sample(original), store)
    found = pose_of(original, store.open(prepared.images[0]))
    assert found.angle == pytest.approx(prepared.hint["angle"], abs=0.5)


def test_the_turned_image_names_its_parent_and_what_made_it(store, sample):
    made = sample(photograph_image("coffee"))
    shown = prepare(made, store).images[0]
    assert shown.parent == made.images[0].sha256
    assert shown.made_by.startswith("rotation: turned by")


def test_transparent_images_are_laid_on_white(store, sample):
    clear = photograph_image("coffee").convert("RGBA")
    clear.putalpha(Image.linear_gradient("L").resize(clear.size))
    assert prepare(sample(clear), store).images[0].mode == "RGB"


def test_the_canvas_is_cropped_only_where_the_target_stays(store, sample):
    image = photograph_image("coffee").resize((300, 200))

    def canvases(**known) -> set[str]:
        samples = [replace(sample(image, **known), sample_id=f"{n:064d}") for n in range(12)]
        return {prepare(one, store).images[0].made_by.split("canvas ")[1].split(",")[0] for one in samples}

    middle = TruthBox("cup", 125, 85, 165, 115)
    corner = TruthBox("corner", 0, 0, 30, 30)
    assert canvases(boxes=(middle,)) == {"expanded", "cropped"}
    assert canvases(boxes=(corner,)) == {"expanded"}
    assert canvases() == {"expanded"}


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (Image.new("RGB", (300, 200), "teal"), "one cannot see"),
        (texture("gravel"), "one cannot see"),
        (texture("grass"), "one cannot see"),
        (photograph_image("galaxies"), "one cannot see"),
        (Image.fromarray(np.random.default_rng(0).integers(0, 255, (300, 400), dtype=np.uint8)), "one cannot see"),
        (Image.radial_gradient("L"), "one cannot see"),
        (Image.linear_gradient("L"), "cannot be measured"),
        (Image.new("RGB", (MAX_SIDE + 1, 40)), "longer than"),
    ],
)
def test_an_image_whose_turn_cannot_be_seen_or_measured_is_unsuitable(store, sample, image, said):
    with pytest.raises(RowError, match=said) as caught:
        prepare(sample(image), store)
    assert caught.value.reason == Reason.UNSUITABLE


def test_an_image_that_looks_the_same_head_down_is_unsuitable(store, sample):
    half = photograph_image("coffee").crop((0, 0, 600, 200))
    both = Image.new("RGB", (600, 400))
    both.paste(half, (0, 0))
    both.paste(half.rotate(180), (0, 200))
    with pytest.raises(RowError, match="one cannot see"):
        prepare(sample(both), store)


def test_an_image_that_is_turned_already_is_unsuitable(store, sample):
    with pytest.raises(RowError, match="turned by 12 degrees already"):
        prepare(sample(photograph_image("coffee"), angle=12.0), store)


LOOK_AROUND = """\
import os
image = Image.open(image_path)
print(image_path, os.listdir(os.path.dirname(image_path)), image.info, sorted(image.getexif().items()), image.filename)
"""


def test_the_program_finds_a_file_that_tells_nothing(store, sample):
    prepared = prepare(sample(photograph_image("coffee")), store)
    data = [store.read(image) for image in prepared.images]

    async def look() -> str:
        with sandbox.SandboxPool() as pool, pool.group(images=data) as group, group.session(seed=0) as session:
            return (await session.arun(LOOK_AROUND)).text

    said = asyncio.run(look())
    assert "image_0.png" in said
    told = [str(prepared.hint["angle"]), str(prepared.hint["correction"]), "rot", "angle", "degree"]
    assert not [word for word in told if word in said]


@pytest.fixture(scope="module")
def finished(demo_chain) -> Family:
    """The chain on five kinds of the embedded source's rows."""
    return demo_chain(recipe, "photo", "chart", "snapshot", "diagram", "maths")


def kept(family: Family) -> list[Trajectory]:
    return family.workspace.tables.read(family.key("trajectories"), Trajectory)


def test_at_least_20_trajectories_come_out_of_the_embedded_source(finished):
    assert len(kept(finished)) >= 20


def test_every_run_of_the_oracle_passes_every_check(finished):
    runs = finished.workspace.tables.read(finished.key("verdicts"), Trajectory)
    assert [check for run in runs for check in run.checks if not check.passed] == []


def test_every_reject_has_a_typed_reason(finished):
    rejects = taken_out(finished)
    assert {reject.reason for reject in rejects} == {"unsuitable", "not_applicable"}


def test_what_a_trained_model_reads_tells_no_angle(finished):
    drafts = {draft.trajectory_id: draft for draft in finished.workspace.tables.read(finished.key("drafts"), Draft)}
    for made in kept(finished):
        hidden = drafts[made.trajectory_id].hint
        prose = " ".join([made.rounds[0].thought, made.final_thought, made.rounds[0].observation.text])
        assert not [number for number in hidden.split('"') if number.strip(": ,}").isdigit() and number in prose]


def test_the_oracle_has_many_ways_of_saying_it(finished):
    assert len({made.rounds[0].thought for made in kept(finished)}) > 15
    assert len({made.rounds[0].code.split("processed_path")[0][:200] for made in kept(finished)}) > 5


ROUND = "<think>It leans.\n<code>\n```python\n{code}\n```\n</code>"
SHOW = "path = '/mnt/data/temp_processed_images/a_1.png'\n{made}.save(path)\nprint(path)"


@pytest.mark.parametrize(
    ("first", "then", "told"),
    [
        ("It is upright.", "", "malformed_turn"),
        ("<think>", "", "malformed_turn"),
        (ROUND.format(code="broken("), "So.</think>\n<answer>cat</answer>", "check_failed"),
        (ROUND.format(code="print(1)"), "So.</think>\n<answer>cat</answer>", "check_failed"),
        (
            ROUND.format(code=SHOW.format(made="Image.open(image_path)")),
            "x</think><answer>cat</answer>",
            "check_failed",
        ),
        (
            ROUND.format(code=SHOW.format(made="Image.new('RGB', (9, 9))")),
            "x</think><answer>a</answer>",
            "check_failed",
        ),
        (ROUND.format(code="print(1)"), "no answer at all", "malformed_turn"),
        ("<think>So.</think>\n<answer>cat</answer>", "", "check_failed"),
    ],
)
def test_whatever_a_weak_model_writes_ends_as_a_typed_reject(workspace, first, then, told):
    engine.intake(workspace, OnlyPhotographs(n_shards=1), 0, PARTITION)
    family = Family(workspace, recipe, PARTITION)
    run_all(family, turn_by_turn(first, then))
    rejects = taken_out(family)
    assert kept(family) == []
    assert [reject.reason for reject in rejects] == [told]


class OnlyPhotographs(DemoSource):
    """One photograph of the embedded source."""

    def _all(self):
        return [row for row in super()._all() if row.name == "photo/cat"]  # before any other is built
