"""Rollouts that go on by themselves: against a client with TRL's interface that answers from scripts, at any pace."""

import asyncio
import sys
import threading
import time
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import pytest

from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.records import Observation, Sample, Truth
from darkroom.train.models.loading import load_processor
from darkroom.train.rl.rollouts.active_rollout import ActiveRollout, EngineClock, ModelInTraining
from darkroom.train.rl.rollouts.sampling import TurnWatcher
from darkroom.train.rl.rollouts.transcript import Transcript
from darkroom.train.rl.rollouts.vllm_engine import ServerTurns, VllmServer, readable_errors, require_nccl
from darkroom.train.runs import EngineDown, TrainError

CODE = "<think>I look.\n<code>\n```python\nprint(%d)\n```\n</code>"
ANSWER = "<think>It is %d.</think>\n<answer>red</answer><|im_end|>"


class Client:
    """``trl.generation.VLLMClient`` as far as rollouts use it; what it writes follows from the request alone."""

    base_url = "http://127.0.0.1:8000"

    def __init__(self, tokenizer, *, before=lambda request: None):
        self.tokenizer, self.before, self.requests, self.n_rendered = tokenizer, before, [], 0
        adapter = SimpleNamespace(init_poolmanager=lambda connections, maxsize: None)
        self.session = SimpleNamespace(get_adapter=lambda url: adapter)

    def image_features(self, images):
        self.n_rendered += 1
        return [{"n_images": len(images[0])}]

    def generate(self, prompts, features, *, generation_kwargs, max_tokens, temperature, **_):
        (ids,) = prompts
        text = self.tokenizer.decode(ids)
        n_rounds, turn = text.count("</sandbox_output>"), text.rpartition("<|im_start|>assistant\n")[2]
        request = SimpleNamespace(
            rollout=ids[0], n_rounds=n_rounds, turn=turn, temperature=temperature, **generation_kwargs
        )
        self.requests.append(request)
        self.before(request)
        script = (CODE if n_rounds < ids[0] % 3 else ANSWER) % (request.seed % 1000 if not turn else n_rounds)
        written = len(self.tokenizer(turn)["input_ids"])
        ids = self.tokenizer(script)["input_ids"][written:]
        ends = [at for at in range(1, len(ids) + 1) if request.stop[0] in self.tokenizer.decode(ids[:at])]
        ids = ids[: min([*ends, max_tokens])]
        return {"completion_ids": [ids], "logprobs": [[[-0.5]] * len(ids)]}


class Sandbox:
    """A rollout's environment whose code takes as long as it likes."""

    def __init__(self, protocol="thyme", seconds=0.0):
        self._row, self.pixels, self.seconds = {"protocol": protocol}, {}, seconds

    def _begin(self, code):
        self.begun = code

    async def _run(self, code):
        assert code == self.begun
        await asyncio.sleep(self.seconds)
        return Observation("ok", f"ran {code}")

    def _shown(self, observation):
        return []


@pytest.fixture(scope="module")
def processor(tiny):
    return load_processor(tiny)


def player(processor, number, *, images=(), seconds=0.0):
    sample = Sample(f"s{number % 2}", "signs", "1", "CC0-1.0", (), "?", (), "red", Truth(), "attribute")
    task = Task(f"{number}", "training", sample, (), {}, (), seed=number)
    opening = processor.tokenizer("<|im_start|>assistant\n")["input_ids"]
    return ActiveRollout(Sandbox(seconds=seconds), task, Transcript([number, *opening], list(images)), max_rounds=4)


def run(processor, client, players, *, adaptive=True):
    tokenizer, clock = processor.tokenizer, EngineClock()
    generation = SimpleNamespace(
        vllm_client=client,
        repetition_penalty=1.0,
        temperature=0.8,
        top_p=1.0,
        top_k=0,
        min_p=None,
        logprobs=0,
        structured_outputs_regex=None,
        generation_kwargs={"logit_bias": {5: -100.0}},
        _place_features=lambda features, ids: {**features, "n_tokens": len(ids)},
    )

    def watcher(one):
        n_left, ends = 400 - len(one.transcript.ids), frozenset([tokenizer.eos_token_id])
        return TurnWatcher(tokenizer, PROTOCOLS["thyme"], n_left=n_left, ends=ends, on_code=one.begin)

    turns = ServerTurns(VllmServer(generation), tokenizer=tokenizer, watcher=watcher, clock=clock, adaptive=adaptive)
    model = ModelInTraining(turns, processor=processor, max_tokens=400)
    return asyncio.run(model.run_batch(players)), clock


def test_rollouts_are_the_same_in_whatever_order_answers_and_code_come(processor):
    def played(pauses, seconds):
        players = [player(processor, number, seconds=seconds[number % 2]) for number in range(6)]
        client = Client(processor.tokenizer, before=lambda request: time.sleep(pauses[request.rollout % 3]))
        rollouts, _ = run(processor, client, players)
        return rollouts, [one.transcript for one in players]

    rollouts, transcripts = played((0.0, 0.02, 0.01), (0.0, 0.02))
    again, same = played((0.02, 0.0, 0.0), (0.02, 0.0))
    assert rollouts == again
    assert transcripts == same
    assert [len(one.rounds) for one in rollouts] == [0, 1, 2, 0, 1, 2]
    assert len({tuple(one.turns) for one in transcripts}) == 6  # each rollout has seeds of its own


def test_no_rollout_waits_for_another_one(processor):
    """The first request of one is answered when the other has ended: in a batch neither would go on."""
    ended = threading.Event()

    def before(request):
        if request.rollout == 0:
            assert ended.wait(20)
        elif request.n_rounds == 2:
            ended.set()

    rollouts, _ = run(
        processor, Client(processor.tokenizer, before=before), [player(processor, 0), player(processor, 2)]
    )
    assert [len(one.rounds) for one in rollouts] == [0, 2]


def test_code_is_written_at_temperature_zero_and_has_no_logprobs(processor):
    client, one = Client(processor.tokenizer), player(processor, 1)
    run(processor, client, [one])
    asked = [(request.temperature, request.stop, request.include_stop_str_in_output) for request in client.requests]
    assert asked == [(0.8, ["<code>"], True), (0.0, ["</code>"], True), (0.8, ["<code>"], True)]
    assert all(request.logit_bias == {5: -100.0} for request in client.requests)
    assert len({request.seed for request in client.requests}) == 3
    assert {None, -0.5, 0.0} == set(one.transcript.logprobs)
    assert len(one.transcript.logprobs) == len(one.transcript.ids) == len(one.transcript.mask)


def test_without_it_a_turn_is_one_request(processor):
    client = Client(processor.tokenizer)
    run(processor, client, [player(processor, 1)], adaptive=False)
    assert [(request.temperature, request.stop) for request in client.requests] == [(0.8, ["</code>"])] * 2


def test_the_images_of_a_prompt_are_sent_once(processor):
    client = Client(processor.tokenizer)
    run(processor, client, [player(processor, number, images=["pixels"]) for number in (0, 2, 4, 1)])
    assert client.n_rendered == 2  # of two prompts


def test_a_request_that_fails_for_good_ends_all_rollouts_with_one_line(processor):
    def before(request):
        if request.rollout == 1:
            raise RuntimeError("Request failed: 500,\n" + "<html>" * 200)

    with pytest.raises(EngineDown) as down:
        run(processor, Client(processor.tokenizer, before=before), [player(processor, number) for number in range(4)])
    assert str(down.value).startswith(
        "the vLLM server at http://127.0.0.1:8000 gives no rollouts: RuntimeError: Request"
    )
    assert "\n" not in str(down.value)
    assert len(str(down.value)) < 600


def test_only_time_in_which_nothing_is_written_is_waited(monkeypatch):
    now = iter([10.0, 13.0, 14.0, 15.0, 16.0, 18.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    clock = EngineClock()
    with clock:  # 10 to 13
        pass
    with clock, clock:  # 14 to 15: requests of two rollouts
        pass
    with clock:  # 16 to 18
        pass
    assert (clock.seconds_writing, clock.seconds_waiting) == (6.0, 2.0)
    assert clock.waiting_share == 0.25


def test_code_that_runs_while_another_rollout_is_written_is_no_wait(processor):
    second_turn = threading.Event()

    def before(request):
        if request.rollout == 0:
            assert second_turn.wait(20)
        elif request.n_rounds == 1:
            second_turn.set()

    players = [player(processor, 0), player(processor, 1, seconds=0.01)]
    _, clock = run(processor, Client(processor.tokenizer, before=before), players)
    assert clock.waiting_share == 0.0


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (
            ConnectionError("The vLLM server can't be reached\nafter 240 s"),
            r"--engine vllm_server: Conn.* reached after",
        ),
        (
            NotImplementedError("Weight synchronization runs on vLLM's NCCL\nengine"),
            r"--engine vllm_server: NotImpl.* on vLLM's NCCL engine",
        ),
    ],
)
def test_what_trl_says_about_vllm_is_one_line(raised, said):
    with pytest.raises(TrainError, match=said), readable_errors("vllm_server"):
        raise raised


def test_other_errors_stay_what_they_are():
    with pytest.raises(KeyError), readable_errors("vllm_server"):
        raise KeyError("learning_rate")


class OldLibrary:
    """NCCL 2.28, in which vLLM 0.31 misses a function."""

    def __init__(self):
        raise AttributeError("libnccl.so.2: undefined symbol: ncclCommSuspend")


@pytest.mark.parametrize(
    ("library", "is_disabled", "said"),
    [
        (OldLibrary, False, r"no weights.*ncclCommSuspend.*vllm\.lock"),
        (object, True, "VLLM_DISABLE_PYNCCL"),
        (object, False, ""),
    ],
)
def test_a_server_that_would_get_no_weights_is_refused(library, is_disabled, said, monkeypatch):
    wrapper = "vllm.distributed.device_communicators.pynccl_wrapper"
    for name in ("vllm", "vllm.distributed", "vllm.distributed.device_communicators", wrapper):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["vllm"].envs = SimpleNamespace(VLLM_DISABLE_PYNCCL=is_disabled)
    sys.modules[wrapper].NCCLLibrary = library
    with pytest.raises(TrainError, match=said) if said else nullcontext():
        require_nccl()
