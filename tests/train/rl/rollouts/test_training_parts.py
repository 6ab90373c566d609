"""Parts of a GRPO training that need no model: what goes to TRL, what is counted, and what a run says at its start."""

import asyncio
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from accelerate import Accelerator

from darkroom.train.rl.rollouts import sample_log
from darkroom.train.rl.rollouts.environment import MixedGRPOTrainer
from darkroom.train.rl.rollouts.generation import RolloutGenerator
from darkroom.train.rl.rollouts.sampling import greedily, watched
from darkroom.train.rl.rollouts.trainer import SandboxGRPOTrainer
from darkroom.train.rl.rollouts.training import GrpoRun, held_out_accuracy
from darkroom.train.rl.rollouts.vllm_engine import Segment, VllmServer
from darkroom.train.runs import TrainError


def outcome(**changes):
    kept = SimpleNamespace(n_calls=0, n_ok=0, turns=(), sandbox_error=None, answer=None, used_tool=False)
    return SimpleNamespace(**{**vars(kept), **changes})


def transcript(name):
    return SimpleNamespace(mask=f"mask {name}", ids=f"ids {name}", logprobs=f"logprobs {name}", images=f"images {name}")


@pytest.mark.parametrize(("logprobs", "returned"), [(None, None), ([[-1.0], [-2.0]], ["logprobs a", "logprobs b"])])
def test_trl_gets_tokens_turns_images_and_the_numbers_of_calls_and_failures(logprobs, returned):
    outcomes = [outcome(n_calls=5, n_ok=3, turns=("x", "y")), outcome(n_calls=2, n_ok=2, turns=("z",))]
    logged = []
    trainer = SimpleNamespace(
        _finish=lambda ids, given: (outcomes, 0.25) if (ids, given) == ([[1], [2]], logprobs) else None,
        _log_metrics=logged.append,
        _active=[SimpleNamespace(transcript=transcript(name)) for name in "ab"],
    )
    masks, turns, ids, kept, n_calls, n_failed, images = SandboxGRPOTrainer._tool_call_loop(
        trainer, None, None, [[1], [2]], None, logprobs
    )
    assert (masks, ids, images) == (["mask a", "mask b"], ["ids a", "ids b"], ["images a", "images b"])
    assert [[turn["content"] for turn in each] for each in turns] == [["x", "y"], ["z"]]
    assert turns[0][0]["role"] == "assistant"
    assert (kept, n_calls, n_failed) == (returned, 7, 2)
    assert logged == [{"sandbox/waiting_share": [0.25]}]


def test_metrics_are_averaged_and_those_without_values_left_out():
    trainer = SimpleNamespace(accelerator=Accelerator(cpu=True), _metrics={"train": {"a": [9.0], "b": [], "c": []}})
    SandboxGRPOTrainer._log_metrics(trainer, {"b": [1.0, 2.0, 6.0], "a": [4.0], "c": []})
    assert trainer._metrics["train"] == {"a": [9.0, 4.0], "b": [3.0], "c": []}


@pytest.mark.parametrize(("errors", "is_refused"), [((None, None), False), ((None, "no kernel"), True), ((), False)])
def test_a_training_ends_where_nothing_can_be_executed(errors, is_refused):
    trainer = SimpleNamespace(_raised_in_all=lambda error: nullcontext())
    environments = [SimpleNamespace(error=error) for error in errors]
    with pytest.raises(TrainError, match="no kernel") if is_refused else nullcontext():
        SandboxGRPOTrainer._require_sandbox(trainer, environments)


@pytest.mark.parametrize(("threshold", "mask", "counts"), [(0.5, [0.0, 0.3, 2.0], [0.0, 1.0, 1.0])])
def test_entropies_are_compared_over_all_tokens_that_weigh_something(threshold, mask, counts, monkeypatch):
    given = []
    base = SandboxGRPOTrainer.__mro__[1]
    monkeypatch.setattr(base, "get_high_entropy_mask", lambda self, *all_: given.append(all_), raising=False)
    trainer = SandboxGRPOTrainer.__new__(SandboxGRPOTrainer)
    trainer.get_high_entropy_mask(torch.ones(3), torch.tensor(mask), threshold)
    assert given[0][1].tolist() == counts
    assert given[0][2] == threshold


@pytest.mark.parametrize("logprobs", [None, [[-0.5], [-1.0, -1.0]]])
def test_written_turns_have_their_text_ending_and_logprobs(logprobs):
    tokenizer = SimpleNamespace(
        batch_decode=lambda ids, skip_special_tokens: [f"{each} {skip_special_tokens}" for each in ids]
    )
    trainer = SimpleNamespace(_tokenizer=tokenizer, _endings=["own", "full"])
    turns = RolloutGenerator._written(trainer, [[1], [2, 3]], logprobs)
    assert [(turn.ids, turn.text, turn.ending) for turn in turns] == [
        ([1], "[1] True", "own"),
        ([2, 3], "[2, 3] True", "full"),
    ]
    assert [turn.logprobs for turn in turns] == (logprobs or [None, None])


def test_an_engine_gets_the_weights_of_each_step_once():
    synced = []
    trainer = SimpleNamespace(state=SimpleNamespace(global_step=3), _last_loaded_step=2)
    engine = SimpleNamespace(sync_weights=lambda: synced.append(trainer.state.global_step))
    for step in (3, 3, 4, 2):
        trainer.state.global_step = step
        RolloutGenerator._sync_weights(trainer, engine)
    assert synced == [3, 4, 2]


@pytest.mark.parametrize("lockstep", [True, False])
@pytest.mark.parametrize("server", [None, "a server"])
def test_rollouts_of_a_server_are_finished_and_others_go_on_from_their_first_turns(server, lockstep, monkeypatch):
    done = []
    trainer = SimpleNamespace(
        _server=server,
        _next_turns=None,
        _active=[SimpleNamespace(outcome=lambda rollout, n=n: (n, rollout)) for n in range(2)],
        _written=lambda first, logprobs: (first, logprobs),
        _run_batch=lambda turns, first: done.append(first),
        _rollouts=["r0", "r1"],
        _lockstep=SimpleNamespace(finish=lambda: done.append("in step")) if lockstep else None,
        _clock=SimpleNamespace(waiting_share=0.5),
    )
    finished = RolloutGenerator._finish(trainer, [[1]], None)
    assert finished == ([(0, "r0"), (1, "r1")], 0.5)
    assert done == [([[1]], None)] * (server is None) + ["in step"] * lockstep


class Alone:
    """A trainer of one process; ``grade`` gives what was planted for each row."""

    accelerator = Accelerator(cpu=True)

    def __init__(self, *graded):
        self.graded = graded

    def grade(self, rows):
        return [self.graded[row] for row in rows]


def test_held_out_accuracy_is_of_the_rollouts_that_are_not_broken():
    right, wrong, mute = outcome(answer="x", used_tool=True), outcome(answer="y"), outcome()
    broken = outcome(answer="x", used_tool=True, sandbox_error="gone")
    trainer = Alone((right, 1.0), (wrong, 0.0), (mute, 0.0), (broken, 1.0), (right, 1.0))
    for size in (1, 2, 5, 9):
        assert held_out_accuracy(trainer, range(5), size=size) == {
            "eval_accuracy": 2 / 4, "eval_answered": 3 / 4, "eval_tool_use": 2 / 4, "eval_broken_rate": 1 / 5,
        }  # fmt: skip
    assert held_out_accuracy(Alone((mute, 0.0)), range(1), size=2) == {
        "eval_accuracy": 0, "eval_answered": 0, "eval_tool_use": 0, "eval_broken_rate": 0,
    }  # fmt: skip


def test_an_evaluation_in_which_all_is_broken_is_an_error():
    broken = outcome(sandbox_error="gone")
    with pytest.raises(TrainError, match="all 2 held-out rollouts are broken"):
        held_out_accuracy(Alone((broken, 0.0), (broken, 0.0)), range(2), size=1)


@pytest.mark.parametrize(("n_prompts", "is_refused"), [(2, True), (3, False), (4, False)])
@pytest.mark.parametrize(
    ("judges", "is_noted"), [(None, True), (SimpleNamespace(policy=None), True), (SimpleNamespace(policy="p"), False)]
)
def test_a_run_says_its_prompts_and_wants_one_step_of_them(n_prompts, is_refused, judges, is_noted, monkeypatch):
    monkeypatch.setattr("darkroom.train.rl.rollouts.training.note_on_launch", lambda trainer: "")
    lines = []
    run = SimpleNamespace(
        settings=SimpleNamespace(generations=4), method=SimpleNamespace(says="thyme", wants_judge="rarely"),
        judges=judges, report=SimpleNamespace(line=lines.append),
    )  # fmt: skip
    trainer = SimpleNamespace(train_dataset=range(n_prompts), args=SimpleNamespace(generation_batch_size=12))
    if is_refused:
        with pytest.raises(TrainError, match="2 prompts, and a step takes 3"):
            GrpoRun._report_start(run, trainer)
        return
    GrpoRun._report_start(run, trainer)
    assert lines[0] == f"{n_prompts} prompts, 4 rollouts each: thyme"
    assert lines[1:] == ["no judge (--judge-url); one would be asked rarely"] * is_noted


def test_attributes_of_a_trainer_are_greedy_for_a_while():
    greedy = {"do_sample": False, "temperature": 1.0, "top_p": 1.0, "top_k": 50, "repetition_penalty": 1.0}
    greedy |= {"min_p": None}
    trainer = SimpleNamespace(use_vllm=False, generation_kwargs={"top_p": 0.5, "pad": 7}, generation_config="before")
    with greedily(trainer):
        assert trainer.generation_kwargs == {"pad": 7, **greedy}
        assert (trainer.generation_config.do_sample, trainer.generation_config.top_p) == (False, 1.0)
        assert trainer.generation_config.disable_compile is True
    assert (trainer.generation_kwargs, trainer.generation_config) == ({"top_p": 0.5, "pad": 7}, "before")
    engine = SimpleNamespace(temperature=0.9, repetition_penalty=1.1)
    with greedily(SimpleNamespace(use_vllm=True, vllm_generation=engine)):
        assert (engine.temperature, engine.repetition_penalty) == (0.0, 1.0)
    assert (engine.temperature, engine.repetition_penalty) == (0.9, 1.1)


@pytest.mark.parametrize(("adaptive", "n_rules"), [(True, 2), (False, 1)])
@pytest.mark.parametrize(("in_step", "together"), [(True, {"synced_gpus": True}), (False, {})])
def test_a_watched_model_generates_with_its_watchers_and_given_rules(adaptive, n_rules, in_step, together):
    def generate(**inputs):
        return inputs

    model = SimpleNamespace(generate=generate)
    with watched(model, [], adaptive=adaptive, in_step=in_step):
        inputs, bare = model.generate(ids=1, logits_processor=["given"]), model.generate()
    assert model.generate is generate
    assert (len(inputs.pop("logits_processor")), len(bare.pop("logits_processor"))) == (n_rules, n_rules - 1)
    assert len(inputs.pop("stopping_criteria")) == len(bare.pop("stopping_criteria")) == 1
    assert (inputs, bare) == ({"ids": 1, **together}, together)


class Trackio(SimpleNamespace):
    """What a sample log needs of trackio, which is not installed with Darkroom."""

    def __init__(self):
        self.logged = []
        super().__init__(Trace=lambda *all_: all_, Image=lambda path: path.name)

    def log(self, values, step):
        self.logged.append((values, step))


@pytest.mark.parametrize(("unanswered", "last"), [(None, "I see.\n\nred"), ("no answer", "cut o")])
def test_a_trace_holds_question_calls_observations_and_the_last_words(monkeypatch, unanswered, last):
    monkeypatch.setitem(sys.modules, "trackio", trackio := Trackio())
    shown = {"code": "a()", "thought": "Look.", "text": "1", "error": "E", "status": "error", "images": ["b.png"]}
    silent = {"code": "b()", "thought": "", "text": "", "error": None, "status": "timeout", "images": []}
    rollout = dict.fromkeys(sample_log._METADATA, 0) | {
        "question": "Which?", "question_images": ["a.png", "c.png"], "rounds": [shown, silent],
        "final_thought": "I see.", "answer": "red", "unanswered": unanswered, "written": "cut o",
    }  # fmt: skip
    sample_log.log_traces([rollout], Path("images"), 7)
    ((values, step),) = trackio.logged
    ((messages, metadata),) = values.pop("rollouts")
    assert not values
    assert (step, sorted(metadata)) == (7, sorted(sample_log._METADATA))
    user, first, result, second, nothing, end = messages
    assert user == {"role": "user", "content": ["a.png", "c.png", {"type": "text", "text": "Which?"}]}
    assert [call["tool_calls"][0]["function"]["arguments"] for call in (first, second)] == ["a()", "b()"]
    assert [call["tool_calls"][0]["id"] for call in (first, second)] == ["1", "2"]
    assert (result["tool_call_id"], nothing["tool_call_id"]) == ("1", "2")
    assert result["content"] == ["b.png", {"type": "text", "text": "1\nE"}]
    assert nothing["content"] == [{"type": "text", "text": "timeout"}]
    assert end == {"role": "assistant", "content": last}


@pytest.mark.parametrize("images", [None, [["i"], []]])
def test_a_transcript_knows_its_prompt_and_the_prompts_images(monkeypatch, images):
    tokenized = [(1, 2), (3,)], images, {"fields": 1}
    monkeypatch.setattr(MixedGRPOTrainer, "_tokenize_prompts", lambda self, prompts: tokenized, raising=False)
    trainer = RolloutGenerator.__new__(RolloutGenerator)
    trainer._active = [SimpleNamespace(transcript=SimpleNamespace()) for _ in range(2)]
    assert trainer._tokenize_prompts(["a", "b"]) is tokenized
    transcripts = [active.transcript for active in trainer._active]
    assert [transcript.prompt for transcript in transcripts] == [[1, 2], [3]]
    assert [transcript.prompt_images for transcript in transcripts] == (images or [[], []])


@pytest.mark.parametrize(("min_p", "sent"), [(None, 0.0), (0.2, 0.2)])
@pytest.mark.parametrize(("greedy", "temperature"), [(True, 0.0), (False, 0.8)])
def test_a_server_is_asked_for_one_answer_with_the_trainings_settings(min_p, sent, greedy, temperature):
    requests = []
    client = SimpleNamespace(
        base_url="http://x",
        session=SimpleNamespace(get_adapter=lambda url: SimpleNamespace(init_poolmanager=lambda *_: None)),
        generate=lambda **request: requests.append(request) or {"completion_ids": [[5]], "logprobs": [[[-0.5]]]},
    )
    generation = SimpleNamespace(
        vllm_client=client, repetition_penalty=1.1, temperature=0.8, top_p=0.9, top_k=7, min_p=min_p, logprobs=0,
        structured_outputs_regex=None, generation_kwargs={"logit_bias": {5: -100.0}},
        _place_features=lambda features, ids: (features, ids),
    )  # fmt: skip
    server, segment = VllmServer(generation), Segment("</code>", greedy)
    for features, placed in ((None, None), ("f", [("f", [1, 2])])):
        assert asyncio.run(server.generate((1, 2), features, segment, n_tokens=9, seed=3)) == ([5], [[-0.5]])
        request = requests.pop()
        assert (request["prompts"], request["features"], request["max_tokens"], request["n"]) == (
            [[1, 2]],
            placed,
            9,
            1,
        )
        assert (request["min_p"], request["temperature"], request["top_p"], request["top_k"]) == (
            sent,
            temperature,
            0.9,
            7,
        )
        assert request["generation_kwargs"]["seed"] == 3
        assert request["generation_kwargs"]["logit_bias"] == {5: -100.0}
