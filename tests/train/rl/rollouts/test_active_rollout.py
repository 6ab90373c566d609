"""One rollout of a batch: its limit of rounds, the room for observations, and what it came to. Without a sandbox."""

import asyncio
from types import SimpleNamespace

import pytest

from darkroom.pipelines.generation.rollout import Rollout
from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.records import Observation, Sample, Truth, Usage
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.train.rl.rollouts import active_rollout
from darkroom.train.rl.rollouts.active_rollout import ActiveRollout, ModelInTraining
from darkroom.train.rl.rollouts.transcript import Transcript

SAMPLE = Sample("s", "signs", "1", "CC0-1.0", (), "?", (), "red", Truth(), "attribute")
WITH_SETUP = next(name for name, protocol in PROTOCOLS.items() if protocol.setup)


class Sandbox:
    """Notes the code that it was given."""

    def __init__(self, protocol="thyme"):
        question = SimpleNamespace(sample=SAMPLE)
        self._row = {"protocol": protocol, "asked": question, "mode": "forced", "images": ["question image"]}
        self.begun, self.ran, self.pixels = [], [], {"a": "pixels"}
        self.seconds, self.broken, self.n_over_limit = 2.5, "gone", 3

    def _begin(self, code):
        self.begun.append(code)

    async def _run(self, code):
        self.ran.append(code)
        return Observation("ok", code)

    def _shown(self, observation):
        return list(observation.images)


def active(protocol="thyme", max_rounds=2):
    return ActiveRollout.of(Sandbox(protocol), "s/1", seed=7, max_rounds=max_rounds, repetition=None)


def test_a_rollout_is_about_the_row_of_its_sandbox():
    one = active()
    assert (one.task.trajectory_id, one.task.sample, one.task.seed, one.task.mode) == ("s/1", SAMPLE, 7, "forced")
    assert (one.protocol, one.max_rounds, one.n_rounds, one.repetition) == (PROTOCOLS["thyme"], 2, 0, None)


def test_no_code_is_begun_after_the_last_round():
    async def run():
        for code in "abc":
            one.begin(code)
            assert (await one.run(code)).text == code

    one = active(max_rounds=2)
    asyncio.run(run())
    assert (one.environment.begun, one.environment.ran, one.n_rounds) == (["a", "b"], ["a", "b", "c"], 3)


def test_the_setup_of_a_protocol_ran_before_and_is_no_round():
    one = active(WITH_SETUP)
    assert asyncio.run(one.run(one.protocol.setup)) == Observation("ok", "")
    assert (one.n_rounds, one.environment.ran) == (0, [])
    asyncio.run(one.run("x"))
    assert (one.n_rounds, one.environment.ran) == (1, ["x"])


def test_an_outcome_tells_of_the_sandbox_and_of_all_that_was_written():
    one, finished = active(), Rollout((), "", "red", Usage(), None)
    one.transcript.write([1, 2], "I look.", None)
    one.transcript.show([3], [])
    one.transcript.write([4], "red", None)
    told = one.outcome(finished)
    assert (told.rollout, told.answer, told.turns, told.n_tokens) == (finished, "red", ("I look.", "red"), 3)
    assert (told.protocol, told.mode, told.question_images) == ("thyme", "forced", ("question image",))
    assert (told.pixels, told.seconds, told.sandbox_error, told.n_over_limit) == ({"a": "pixels"}, 2.5, "gone", 3)


@pytest.mark.parametrize(("n_written", "has_room"), [(6, True), (7, False), (8, False)])
@pytest.mark.parametrize("shows_images", [True, False])
def test_an_observation_leaves_room_for_a_token_at_least(monkeypatch, n_written, has_room, shows_images):
    shown = []
    monkeypatch.setattr(
        active_rollout,
        "observation_tokens",
        lambda processor, parts, images, last: shown.append((images, last)) or [9, 9, 9],
    )
    one = active()
    one.transcript = Transcript([])
    one.transcript.write(list(range(n_written)), "x", None)
    model = ModelInTraining(None, processor=None, max_tokens=10, shows_images=shows_images)
    if has_room:
        model._show(one, Observation("ok", "", images=()))
        assert one.transcript.ids[-3:] == [9, 9, 9]
    else:
        with pytest.raises(RowError, match=f"no room for an observation of 3 tokens after {n_written} of 10") as error:
            model._show(one, Observation("ok", "", images=()))
        assert error.value.reason is Reason.TRUNCATED_TURN
    assert shown == [([], n_written - 1)]


@pytest.mark.parametrize("shows_images", [True, False])
def test_a_model_sees_images_or_the_text_alone(monkeypatch, shows_images):
    shown = []
    monkeypatch.setattr(active_rollout, "observation_tokens", lambda *given, last: shown.append(given[2]) or [9])
    monkeypatch.setattr(type(PROTOCOLS["thyme"]), "wrap", lambda self, observation: observation)
    one = active()
    one.transcript.write([1], "x", None)
    model = ModelInTraining(None, processor=None, max_tokens=10, shows_images=shows_images)
    model._show(one, Observation("ok", "", images=("i",)))
    assert shown == [["i"] if shows_images else []]
