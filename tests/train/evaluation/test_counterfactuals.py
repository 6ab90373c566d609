"""Controls with policies that look at their crop, that do not, and that draw lots: in the real sandbox."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from PIL import ImageDraw

from darkroom.pipelines.generation.sandbox_sessions import Sandboxes
from darkroom.pipelines.models.messages import ImagePart
from darkroom.pipelines.models.policies import Completion, PolicyIdentity, RecordedPolicy
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.records import Sample, Truth, TruthBox
from darkroom.pipelines.records.geometry import Box
from darkroom.train.evaluation.counterfactuals import CounterfactualRunner, effect, eligible, farthest, same_answer
from darkroom.train.evaluation.observed_images import ImageTracer
from darkroom.train.evaluation.questions import Question
from darkroom.train.evaluation.rollouts import EvaluatedPolicy, ScoredRollout, run_rollout, score, task_of
from tests.train.evaluation.conftest import COLOURS, TARGET, desert, played, seen

CROP = f"im = Image.open(image_path)\nim.crop({TARGET}).save('c.png')\nprint('c.png')"


class Eyes:
    """Crops, then says which colour the crop has; nothing but pixels tells it."""

    concurrency = 4

    def __init__(self, store):
        self.store, self.n_written = store, 0
        self.identity = PolicyIdentity(type(self).__name__, "scripted")

    async def check(self):
        pass

    async def close(self):
        pass

    async def write(self, turn):
        self.n_written += 1
        if not turn.rounds:
            return Completion(Thyme().write_round("I look.", f"from PIL import Image\n{CROP}", first=True))
        return Completion(Thyme().write_answer("I see.", self.answer(turn), first=False))

    def answer(self, turn):
        shown = [part.image for said in turn.messages for part in said.parts if isinstance(part, ImagePart)][-1]
        mean = np.asarray(self.store.open(shown), float).mean(axis=(0, 1))
        return min(COLOURS, key=lambda name: np.abs(mean - COLOURS[name]).sum()) if np.ptp(mean) > 90 else "grey"


class Blind(Eyes):
    """Crops and does not look."""

    def answer(self, turn):
        return "red"


class Slit(Blind):
    """Crops a slit."""

    async def write(self, turn):
        if turn.rounds:
            return await super().write(turn)
        code = "from PIL import Image\nImage.open(image_path).crop((0, 9, 500, 11)).save('c.png')\nprint('c.png')"
        return Completion(Thyme().write_round("I look.", code, first=True))


class Lots(Eyes):
    """Looks at nothing but its seed."""

    def answer(self, turn):
        return str(turn.seed)


@pytest.fixture
def questions(store):
    return [question(store, name) for name in COLOURS]


def question(store, name):
    image = desert()
    ImageDraw.Draw(image).rectangle(TARGET, fill=COLOURS[name])
    ref = store.add_pixels(image)
    truth = Truth((TruthBox("sign", *TARGET),))
    return Question("signs", Sample(name, "signs", name, "", (ref,), "Which colour?", (), name, truth, "colour"))


@pytest.fixture
def stage(store, ledger, questions):
    def play_all(policy):
        evaluated = EvaluatedPolicy(RecordedPolicy(policy, ledger))
        sandboxes, tracer = Sandboxes(store, ledger), ImageTracer(store, ledger)

        async def run():
            return [await one(asked) for asked in questions]

        async def one(asked):
            task = task_of(asked, 0, evaluated)
            made = await run_rollout(asked, task, evaluated, sandboxes)
            return ScoredRollout(asked, 0, task, made, await score(made, asked), await tracer.trace(task.images, made))

        rollouts = asyncio.run(run())
        return rollouts, CounterfactualRunner(evaluated, store, ledger, rollouts)

    return play_all


def controlled(stage, rollouts, control):
    async def run():
        return [await stage.run(one, control) for one in rollouts]

    return asyncio.run(run())


@pytest.mark.parametrize("control", ["blank", "other_region", "other_sample"])
def test_who_looks_changes_the_answer(stage, store, control):
    rollouts, played_again = stage(Eyes(store))
    assert all(one.score.right for one in rollouts)
    found = effect(controlled(played_again, rollouts, control))
    assert (found.changed.mean, found.changed_right.n, found.n, found.n_unanswered) == (1.0, 3, 3, 0)


@pytest.mark.parametrize("control", ["blank", "other_region", "other_sample"])
def test_who_does_not_look_keeps_it(stage, store, control):
    rollouts, played_again = stage(Blind(store))
    found = effect(controlled(played_again, rollouts, control))
    assert found.changed.mean == 0.0
    assert (found.changed_right.n, found.changed_wrong.n) == (1, 2)


def test_another_draw_shows_what_chance_alone_does(stage, store):
    rollouts, played_again = stage(Lots(store))
    assert effect(controlled(played_again, rollouts, "other_draw")).changed.mean == 1.0
    rollouts, played_again = stage(Eyes(store))
    assert effect(controlled(played_again, rollouts, "other_draw")).changed.mean == 0.0


def test_an_image_that_no_model_takes_is_told_to_it_as_an_error(stage, store):
    rollouts, _ = stage(Slit(store))
    seen = [one.rollout.rounds[0].observation for one in rollouts]
    assert {(one.status, one.error, one.images) for one in seen} == {
        ("error", "ValueError: an image of 500x2 pixels is too thin to be shown", ())
    }
    assert [one.rollout.answer for one in rollouts] == ["red"] * len(COLOURS)


def test_only_what_follows_the_image_is_written_again(stage, store):
    policy = Eyes(store)
    rollouts, played_again = stage(policy)
    n_before = policy.n_written
    controlled(played_again, rollouts, "blank")
    assert policy.n_written == n_before + len(rollouts)
    controlled(played_again, rollouts, "blank")
    assert policy.n_written == n_before + len(rollouts)


def test_what_is_shown_instead_has_the_same_size(stage, store):
    rollouts, played_again = stage(Eyes(store))
    one = rollouts[0]
    shown = one.seen[0].image
    for control in ("blank", "other_region", "other_sample"):
        other = asyncio.run(played_again.replaced(one, control, shown, CROP))
        assert (other.width, other.height) == (shown.width, shown.height)
        assert other.sha256 != shown.sha256


def test_another_samples_image_is_never_the_questions_own(stage, store):
    rollouts, played_again = stage(Eyes(store))
    own = rollouts[0].seen[0].image
    pixels = store.open(asyncio.run(played_again.replaced(rollouts[0], "other_sample", own, CROP)))
    assert pixels.tobytes() != store.open(own).tobytes()


def test_without_other_samples_another_region_is_shown(store, ledger, stage):
    rollouts, played_again = stage(Eyes(store))
    alone = CounterfactualRunner(played_again._evaluated, store, ledger, rollouts[:1])
    own = rollouts[0].seen[0].image
    found = [
        asyncio.run(alone.replaced(rollouts[0], control, own, CROP)) for control in ("other_sample", "other_region")
    ]
    assert found[0].sha256 == found[1].sha256


def test_the_farthest_region_has_nothing_of_the_crop():
    box = Box(10, 10, 110, 60)
    found = farthest(box, 640, 480)
    assert (found.width, found.height) == (100, 50)
    assert found.fits(640, 480)
    assert found.intersection(box).area == 0
    assert found == Box(540, 430, 640, 480)


def test_a_crop_of_nearly_everything_still_has_a_region_beside_it():
    assert farthest(Box(0, 0, 639, 480), 640, 480) == Box(1, 0, 640, 480)


def test_answers_are_compared_as_answers():
    choices = ("A. red", "B. blue")
    one = played("a", choices=choices, answer="A")
    assert same_answer(one, "red")
    assert not same_answer(one, "B")
    assert not same_answer(one, "none of these")
    assert same_answer(played("b", answer="3.0"), "3")


def test_rollouts_without_images_or_without_answers_have_no_control():
    rollouts = [played("a", seen=[seen()]), played("b"), played("c", seen=[seen()], error="malformed_turn")]
    assert eligible(rollouts) == rollouts[:1]


def test_a_control_without_an_answer_is_told_apart(stage, store):
    class Stunned(Eyes):
        async def write(self, turn):
            written = await super().write(turn)
            return Completion("I see nothing.") if "grey" in written.text else written

    rollouts, played_again = stage(Stunned(store))
    found = effect(controlled(played_again, rollouts, "blank"))
    assert (found.n, found.n_unanswered, found.changed.n) == (3, 3, 0)


def test_replayed_rollouts_are_not_changed(stage, store):
    rollouts, played_again = stage(Eyes(store))
    before = [replace(one) for one in rollouts]
    controlled(played_again, rollouts, "blank")
    assert rollouts == before
