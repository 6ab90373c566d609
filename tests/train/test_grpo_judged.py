"""Judges in the loop: a real endpoint scores what programs showed, and its end is no loss of training."""

import asyncio
import threading
from contextlib import contextmanager

import pytest

from darkroom.pipelines.models.policies import calls
from darkroom.pipelines.publishing.parquet_shards import write_trajectories
from darkroom.train.models.loading import load_processor
from darkroom.train.rl.judging.judge_config import judges_of
from darkroom.train.rl.methods import named_method, settings_of
from darkroom.train.rl.rollouts.environment import PROMPT_GROUPS
from darkroom.train.rl.rollouts.prompts import open_prompts
from darkroom.train.rl.rollouts.training import build_trainer
from darkroom.train.runs import JudgeDown, TrainError
from tests.pipelines.models.policies.conftest import completion, refusal, serving
from tests.train.conftest import CROP, sign
from tests.train.scripted import FIRST_TURNS, scripted_step

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.filterwarnings(
        "ignore:`is_gradient_checkpointing` is deprecated:FutureWarning",
    ),
]
CLEAR = '{"reason": "it shows the sign", "match": "clear"}'


@pytest.fixture(scope="module", autouse=True)
def _pool():
    yield
    PROMPT_GROUPS.close()


@contextmanager
def listening(answer):
    """The endpoint in a thread of its own: training holds the main one."""
    ready, over = threading.Event(), None
    found = {}

    async def run():
        nonlocal over
        over = asyncio.Event()
        async with serving(answer) as endpoint:
            found["endpoint"], found["loop"] = endpoint, asyncio.get_running_loop()
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    ready.wait()
    try:
        yield found["endpoint"]
    finally:
        found["loop"].call_soon_threadsafe(over.set)
        thread.join()


@pytest.fixture
def judged(store, tiny, tmp_path, monkeypatch):
    """A trainer of CodeV whose judge is at this endpoint."""
    monkeypatch.setenv("DARKROOM_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(calls, "FIRST_WAIT_SECONDS", 0.01)
    write_trajectories(tmp_path / "one", [sign(store, 0)], store=store)

    def build(url, **given):
        processor = load_processor(tiny)
        judges, known_as = judges_of(url, "judge-32b", n_votes=1, rubric="strict")
        given = {"max_steps": 1, "generations": 4, "max_tokens": 600, "judge": known_as, **given}
        trainer = build_trainer(
            open_prompts(tmp_path / "one"),
            tiny,
            processor,
            settings_of("codev", **given),
            method=named_method("codev"),
            judges=judges,
            steps=tmp_path / "steps",
        )
        return trainer, processor

    return build


def asked_for_images(endpoint):
    return [request for request in endpoint.asked if "image_url" in str(request)]


def test_what_a_program_shows_is_judged_and_paid_for(judged):
    async def clear(*_):
        return completion(CLEAR)

    with listening(clear) as endpoint:
        trainer, processor = judged(endpoint.url)
        scripted_step(trainer, processor, [FIRST_TURNS[0]] * 4)
    log = trainer.state.log_history[0]
    assert log["parts/tool"] == 1.0
    assert log["reward"] == 1.0 + 0.5
    # four rollouts made the same crop: it is asked about once
    assert len(asked_for_images(endpoint)) == 1


def test_the_judge_sees_question_and_image_and_no_code(judged):
    async def clear(*_):
        return completion(CLEAR)

    with listening(clear) as endpoint:
        trainer, processor = judged(endpoint.url)
        scripted_step(trainer, processor, [FIRST_TURNS[0]] * 4)
    (request,) = asked_for_images(endpoint)
    words = str(request["messages"])
    assert "What is the colour of the sign?" in words
    assert CROP not in words
    assert "I crop" not in words


def test_a_judge_that_ends_in_the_middle_ends_the_training(judged):
    async def refuse(*_):
        return refusal(500)

    with listening(refuse) as endpoint:
        trainer, processor = judged(endpoint.url)
        with pytest.raises(JudgeDown, match="the judge judge-32b cannot be asked"):
            scripted_step(trainer, processor, [FIRST_TURNS[0]] * 4)


def test_a_judge_that_is_not_there_is_said_before_anything_is_trained(judged):
    trainer, _ = judged("http://127.0.0.1:9/v1")
    with pytest.raises(TrainError, match="judge-32b"):
        trainer.train()


def test_half_a_judge_is_no_judge():
    with pytest.raises(TrainError, match="needs --judge-url and --judge-model"):
        judges_of("http://localhost/v1", "", n_votes=1, rubric="strict")


def test_votes_of_the_command_line_win_over_the_environment_and_nothing_is_one_vote(tmp_path, monkeypatch):
    monkeypatch.setenv("DARKROOM_HOME", str(tmp_path))
    monkeypatch.setenv("DARKROOM_JUDGE", "openai")
    monkeypatch.setenv("DARKROOM_JUDGE_URL", "http://localhost/v1")
    monkeypatch.setenv("DARKROOM_JUDGE_MODEL", "judge-32b")
    assert votes_of(None) == 1
    monkeypatch.setenv("DARKROOM_JUDGE_VOTES", "5")
    assert votes_of(None) == 5
    assert votes_of(3) == 3


def votes_of(n_votes):
    judges, _ = judges_of("", "", n_votes=n_votes, rubric="strict")
    asyncio.run(judges.policy.close())
    return judges.n_votes
