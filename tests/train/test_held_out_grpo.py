"""GRPO that is evaluated on held-out questions: greedy rollouts, when, what they stop, and which weights remain."""

import os
import signal

import pytest

from darkroom.pipelines.publishing.parquet_shards import write_trajectories
from darkroom.pipelines.records import Grader, RLRow
from darkroom.train.grpo import reinforce
from darkroom.train.models.loading import load_model, load_processor
from darkroom.train.rl.methods import named_method, settings_of
from darkroom.train.rl.rollouts.environment import PROMPT_GROUPS
from darkroom.train.rl.rollouts.prompts import open_prompts, prompts
from darkroom.train.rl.rollouts.training import build_trainer
from darkroom.train.runs import JudgeDown, TrainError
from tests.pipelines.publishing.shipping import write_prompts
from tests.train.conftest import sign, sum_without_image
from tests.train.scripted import FIRST_TURNS, OBSERVED, SECOND_TURN, Scripted

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.filterwarnings(
        # PEFT 0.21 reads the name that transformers 5.23 deprecates
        "ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"
    ),
]
TRAINED = [FIRST_TURNS[0], FIRST_TURNS[3]]
"""Right and wrong in every group."""


@pytest.fixture(scope="module", autouse=True)
def _pool():
    yield
    PROMPT_GROUPS.close()


@pytest.fixture(scope="module")
def split(store, tmp_path_factory):
    """Four red signs to train on; of five that are held out two are red."""
    folder = tmp_path_factory.mktemp("rl") / "split"
    for part, indices in (("train", range(0, 16, 4)), ("validation", range(16, 21))):
        rows = [
            RLRow(sign(store, index)[0], Grader("text"), "public", "unknown", None, None, None) for index in indices
        ]
        write_prompts(folder, rows, store=store, split=part)
    return folder


@pytest.fixture
def script(monkeypatch, tiny):
    """Training writes ``TRAINED``; an evaluation, which is greedy, crops and says red."""
    from transformers import LogitsProcessorList
    from transformers.generation import GenerationMixin

    generate, tokenizer, greedy = GenerationMixin.generate, load_processor(tiny).tokenizer, []

    def scripted(model, **inputs):
        ids, samples = inputs["input_ids"], inputs["generation_config"].do_sample
        greedy.append(not samples)
        again = any(f"{mark}<|im_end|>" in tokenizer.decode(ids[0]) for mark in OBSERVED)
        first = [TRAINED[row % 2] for row in range(len(ids))] if samples else [FIRST_TURNS[0]] * len(ids)
        rules = inputs.pop("logits_processor", ())
        turns = Scripted(tokenizer, ids.shape[1], [SECOND_TURN] * len(ids) if again else first)
        return generate(model, **inputs, logits_processor=LogitsProcessorList([*rules, turns]))

    monkeypatch.setattr(GenerationMixin, "generate", scripted)
    return greedy


def settings(**given):
    short = {"generations": 2, "max_steps": 4, "max_tokens": 300, "learning_rate": 1e-2, "repetition_penalty": 1.1}
    return settings_of("thyme", **{**short, **given})


def column(record, name):
    return {step["step"]: step[name] for step in record["steps"] if name in step}


def test_greedy_rollouts_on_held_out_rows_are_graded_and_change_nothing(script, split, tiny, tmp_path):
    record = reinforce(split, tiny, tmp_path / "out", settings(max_steps=3, eval_every=2))
    assert column(record, "eval_accuracy") == {2: 2 / 5, 3: 2 / 5}
    assert column(record, "eval_tool_use") == column(record, "eval_answered") == {2: 1.0, 3: 1.0}
    assert column(record, "eval_broken_rate") == {2: 0.0, 3: 0.0}
    assert record["evaluation"]["phases"][0]["saved_step"] == 3
    assert any(script)
    plain = reinforce(split, tiny, tmp_path / "plain", settings(max_steps=3))
    assert column(record, "loss") == column(plain, "loss")
    assert any(column(record, "grad_norm").values())
    weights = [load_model(tmp_path / name).state_dict() for name in ("out", "plain")]
    assert all(value.equal(weights[1][name]) for name, value in weights[0].items())


def test_they_are_those_of_the_checkpoints_own_evaluation(store, tiny_signs, tmp_path):
    """Token by token as ``darkroom.train.evaluate`` writes them, whatever the penalty and the noise of training."""
    import asyncio

    from darkroom.pipelines.models.policies.policy import CompletionRequest
    from darkroom.pipelines.models.protocols import PROTOCOLS
    from darkroom.pipelines.models.tasks import Task, question_text
    from darkroom.train.models.local_policy import LocalPolicy, Sampling

    pairs = [sign(store, 0), sum_without_image(7)]
    write_trajectories(tmp_path / "rows", pairs, store=store)
    processor = load_processor(tiny_signs)
    chosen = settings(max_tokens=24, temperature=5.0)
    rows = open_prompts(tmp_path / "rows")
    trainer = build_trainer(rows, tiny_signs, processor, chosen, method=named_method("thyme"), steps=tmp_path / "steps")
    asked = prompts(rows, protocol="thyme")
    with asyncio.Runner() as trainer._runner:
        outcomes = trainer.roll_out_greedily([asked[0], asked[1]])
    policy = LocalPolicy(tiny_signs, store, sampling=Sampling(max_tokens=24))

    async def written(sample):
        opening = tuple(PROTOCOLS["thyme"].opening(question_text(sample), sample.images, (), mode="free"))
        task = Task("t", "evaluation", sample, sample.images, {}, opening, 0)
        return (await policy.write(CompletionRequest(opening, (), 0, task))).text

    async def both():
        return [await written(sample) for sample, _ in pairs]

    assert [outcome.turns[0] for outcome in outcomes] == asyncio.run(both())


def values_of(monkeypatch, values, seen):
    """Evaluations give these values by step, and keep the weights that they were made of."""

    def measure(trainer, *_, **__):
        value = values[trainer.state.global_step]
        if isinstance(value, Exception):
            raise value
        seen[trainer.state.global_step] = {k: v.clone() for k, v in trainer.model.state_dict().items()}
        return {"eval_accuracy": value}

    monkeypatch.setattr("darkroom.train.rl.rollouts.training.held_out_accuracy", measure)


def test_training_stops_and_the_best_weights_are_saved(script, split, tiny, tmp_path, monkeypatch):
    seen = {}
    values_of(monkeypatch, {1: 0.2, 2: 0.6, 3: 0.6, 4: 0.5, 5: 0.9}, seen)
    record = reinforce(split, tiny, tmp_path / "out", settings(max_steps=8, eval_every=1, early_stop=2, keep_best=True))
    (phase,) = record["evaluation"]["phases"]
    assert (phase["best_step"], phase["best_value"], phase["saved_step"], phase["evaluations"]) == (2, 0.6, 2, 4)
    assert phase["stopped_early"]
    saved = load_model(tmp_path / "out").state_dict()
    assert all(value.equal(saved[name]) for name, value in seen[2].items())
    assert not all(value.equal(saved[name]) for name, value in seen[3].items())


@pytest.fixture
def whole(script, split, tiny, tmp_path, monkeypatch):
    """A training whose second evaluation is the best, until the third after it stops it."""
    chosen = settings(max_steps=8, eval_every=1, keep_best=True, early_stop=3)
    values = {1: 0.1, 2: 0.7, 3: 0.3, 4: 0.3, 5: 0.3}
    values_of(monkeypatch, values, {})
    record = reinforce(split, tiny, tmp_path / "whole", chosen, save_steps=3)
    assert record["evaluation"]["phases"][0]["saved_step"] == 2
    return chosen, values, record


def test_an_interrupted_training_stops_where_the_whole_one_does_with_its_best_weights(
    whole, split, tiny, tmp_path, monkeypatch
):
    """Its judge ends in the first evaluation, then it is killed after a restart point that is not the best."""
    chosen, values, record = whole
    values[1] = JudgeDown("judge-32b", "it is gone")
    with pytest.raises(JudgeDown):
        reinforce(split, tiny, tmp_path / "out", chosen, save_steps=3)
    values[1] = 0.1
    PROMPT_GROUPS.close()
    if not (child := os.fork()):
        try:
            monkeypatch.setattr("darkroom.train.rl.rollouts.training.held_out_accuracy", killed_at_step_4(values))
            reinforce(split, tiny, tmp_path / "out", chosen, save_steps=3)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    resumed = reinforce(split, tiny, tmp_path / "out", chosen, save_steps=3)
    assert resumed["evaluation"] == record["evaluation"]
    assert column(resumed, "loss") == column(record, "loss")
    weights = [load_model(tmp_path / name).state_dict() for name in ("whole", "out")]
    assert all(value.equal(weights[1][name]) for name, value in weights[0].items())


def killed_at_step_4(values):
    def measure(trainer, *_, **__):
        if trainer.state.global_step == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"eval_accuracy": values[trainer.state.global_step]}

    return measure


def test_a_dataset_without_held_out_rows_is_refused(dataset, tiny, tmp_path):
    with pytest.raises(TrainError, match=r"no held-out rows .*: name others with --eval-dataset"):
        reinforce(dataset, tiny, tmp_path / "out", settings(eval_every=2))
