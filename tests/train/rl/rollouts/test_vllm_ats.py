"""The vLLM path of GRPO-ATS, against an engine with TRL's interface that samples from a real tiny model."""

from types import SimpleNamespace

import pytest
import torch

from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.train.models.loading import load_model, load_processor
from darkroom.train.rl.rollouts.sampling import TurnWatcher
from darkroom.train.rl.rollouts.vllm_engine import in_segments

THYME = "</code>"


IMAGE = 7
"""The token that marks an image."""


class TinyEngine:
    """``trl.generation.VLLMGeneration`` as far as segments use it: temperature, stop strings, token limit, logprobs."""

    def __init__(self, model, tokenizer, scripts=None):
        self.model, self.tokenizer, self.scripts = model, tokenizer, scripts
        self.temperature, self.generation_kwargs, self.max_completion_length = 1.0, {"logit_bias": {5: -100.0}}, 999
        self.requests, self.prompts = [], []
        self.processing_class = SimpleNamespace(image_token_id=IMAGE)

    def generate(self, prompts, images, num_generations, profiler=None):
        kwargs = self.generation_kwargs
        self.prompts += prompts
        self.requests.append((self.temperature, tuple(kwargs["stop"]), self.max_completion_length, len(prompts)))
        assert num_generations == 1
        assert kwargs["include_stop_str_in_output"]
        assert "logit_bias" in kwargs
        said = [self._one(prompt, kwargs["stop"]) for prompt in prompts]
        return prompts, [ids for ids, _ in said], [chances for _, chances in said], None

    def _one(self, prompt, stop):
        ids, chances = [], []
        while len(ids) < self.max_completion_length:
            token, chance = self._next([*prompt, *ids])
            ids.append(token)
            chances.append([chance])
            text = self.tokenizer.decode(ids)
            if token == self.tokenizer.eos_token_id or any(mark in text for mark in stop):
                break
        return ids, chances

    def _next(self, ids):
        if self.scripts is not None:
            script = self.scripts[ids[0]]
            return script[len(ids) - 1], -1.0
        with torch.no_grad():
            logits = self.model(input_ids=torch.tensor([ids])).logits[0, -1]
        if self.temperature == 0.0:
            return int(logits.argmax()), 0.0
        chances = torch.softmax(logits / self.temperature, -1)
        token = int(torch.multinomial(chances, 1))
        return token, float(chances[token].log())


@pytest.fixture(scope="module")
def model(tiny):
    return load_model(tiny)


@pytest.fixture(scope="module")
def tokenizer(tiny):
    return load_processor(tiny).tokenizer


def watchers(tokenizer, n_rows, n_left=400):
    ends = frozenset([tokenizer.eos_token_id])
    return [TurnWatcher(tokenizer, PROTOCOLS["thyme"], n_left=n_left, ends=ends) for _ in range(n_rows)]


def scripted(tokenizer, texts, *, adaptive=True, n_left=400):
    scripts = dict(enumerate(tokenizer(text)["input_ids"] for text in texts))
    engine = TinyEngine(None, tokenizer, scripts)
    watch = watchers(tokenizer, len(texts), n_left)
    ids, chances = in_segments(
        engine, [[row] for row in scripts], None, watch, stops=[THYME] * len(texts), adaptive=adaptive
    )
    return engine, watch, ids, chances


CODE = "<think>I look.\n<code>\n```python\nprint(1)\n```\n</code>"
ANSWER = "<think>I see.</think>\n<answer>red</answer><|im_end|>"


def test_code_is_asked_for_at_temperature_zero_and_words_are_not(tokenizer):
    engine, _, ids, _ = scripted(tokenizer, [CODE, ANSWER])
    assert [(request[0], request[1], request[3]) for request in engine.requests] == [
        (1.0, ("<code>",), 2),
        (0.0, ("</code>",), 1),
    ]
    assert tokenizer.decode(ids[0]) == CODE
    assert tokenizer.decode(ids[1]) == ANSWER


def test_without_it_a_turn_is_one_request(tokenizer):
    engine, watch, ids, _ = scripted(tokenizer, [CODE, ANSWER], adaptive=False)
    assert [(request[0], request[1]) for request in engine.requests] == [(1.0, ("</code>",))]
    assert [one.ending for one in watch] == ["code", "said"]
    assert tokenizer.decode(ids[0]) == CODE


def test_greedy_tokens_have_no_logprob(tokenizer):
    _, _, ids, chances = scripted(tokenizer, [CODE])
    said = [tokenizer.decode(token) for token in ids[0]]
    opens = next(at for at in range(len(said)) if "<code>" in "".join(said[: at + 1]))
    assert chances[0][: opens + 1] == [-1.0] * (opens + 1)
    assert set(chances[0][opens + 1 :]) == {None}


def test_the_engine_is_left_as_it_was(tokenizer):
    engine, *_ = scripted(tokenizer, [CODE])
    assert (engine.temperature, engine.max_completion_length) == (1.0, 999)
    assert engine.generation_kwargs == {"logit_bias": {5: -100.0}}


def test_a_turn_has_no_more_tokens_than_are_left(tokenizer):
    engine, watch, ids, _ = scripted(tokenizer, [CODE], n_left=3)
    assert len(ids[0]) == 3
    assert watch[0].ending == "full"
    assert engine.requests[0][2] == 3


def test_a_request_that_gives_nothing_ends_the_turn(tokenizer):
    class Mute(TinyEngine):
        def _one(self, prompt, stop):
            return [], []

    watch = watchers(tokenizer, 1)
    ids, _ = in_segments(Mute(None, tokenizer), [[1]], None, watch, stops=[THYME], adaptive=True)
    assert (ids, watch[0].ending) == ([[]], "said")


def test_in_code_the_tiny_model_writes_its_most_likely_tokens(model, tokenizer):
    """The same prompt twice: what follows <code> is the same, because nothing is sampled there."""
    torch.manual_seed(0)
    prompt = tokenizer("<|im_start|>assistant\n")["input_ids"]
    watch = watchers(tokenizer, 3, n_left=12)
    for one in watch:
        one._stream.feed("<think>I look.\n<code>\n")
    ids, chances = in_segments(
        TinyEngine(model, tokenizer), [prompt] * 3, None, watch, stops=[THYME] * 3, adaptive=True
    )
    assert ids[0] == ids[1] == ids[2]
    assert set(chances[0]) == {None}


def test_outside_code_the_tiny_model_samples(model, tokenizer):
    torch.manual_seed(0)
    prompt = tokenizer("<|im_start|>assistant\n")["input_ids"]
    watch = watchers(tokenizer, 3, n_left=12)
    ids, chances = in_segments(
        TinyEngine(model, tokenizer), [prompt] * 3, None, watch, stops=[THYME] * 3, adaptive=True
    )
    assert len({tuple(row) for row in ids}) == 3
    assert all(chance is not None and chance < 0 for chance in chances[0])


def test_an_image_is_one_mark_in_a_prompt_for_vllm_which_writes_its_tokens_itself(tokenizer):
    engine = TinyEngine(None, tokenizer, {0: [tokenizer.eos_token_id] * 9})
    prompt = [0, IMAGE, IMAGE, IMAGE, 1, IMAGE, IMAGE, 2]
    in_segments(engine, [prompt], [["a", "b"]], watchers(tokenizer, 1), stops=[THYME], adaptive=True)
    assert engine.prompts == [[0, IMAGE, 1, IMAGE, 2]]
