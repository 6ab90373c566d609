"""GRPO-ATS with a real tiny model: greedy inside code, sampled outside; turns end where they are over."""

import pytest
import torch

from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.verification.repetition import Repetition
from darkroom.train.models.loading import load_model, load_processor
from darkroom.train.rl.rollouts.sampling import GreedyInCode, StopWhenOver, TurnWatcher

TURNS = {
    "thyme": "<think>I look.\n<code>\n```python\nprint(1)\n```\n</code>",
    "pyvision": "I look.\n<code>\nprint(1)\n</code>",
    "tool_call": 'I look.\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>',
}


@pytest.fixture(scope="module")
def tokenizer(processor):
    return processor.tokenizer


def watcher(tokenizer, protocol="thyme", **given):
    return TurnWatcher(
        tokenizer, PROTOCOLS[protocol], **{"n_left": 500, "ends": frozenset([tokenizer.eos_token_id]), **given}
    )


def seen(tokenizer, text, **given):
    watch = watcher(tokenizer, **given)
    for token in tokenizer(text)["input_ids"]:
        watch.see(token)
    return watch


def test_code_is_inside_from_the_tag_that_opens_it_to_the_one_that_closes_it(tokenizer):
    inside = []
    watch = watcher(tokenizer)
    for token in tokenizer(TURNS["thyme"])["input_ids"]:
        inside.append((tokenizer.decode(token), watch.in_code))
        watch.see(token)
    words = "".join(text for text, is_code in inside if is_code)
    assert words == "\n```python\nprint(1)\n```\n</code>"


@pytest.mark.parametrize("protocol", ["thyme", "pyvision"])
def test_a_turn_is_over_with_its_code(tokenizer, protocol):
    watch = seen(tokenizer, TURNS[protocol] + "\nand more words that nobody asked for", protocol=protocol)
    assert watch.ending == "code"
    assert watch.n_tokens <= len(tokenizer(TURNS[protocol] + "\n")["input_ids"])


def test_a_turn_is_over_when_the_model_ends_it(tokenizer):
    assert seen(tokenizer, "It is red.</think>\n<answer>red</answer><|im_end|>").ending == "said"


def test_a_turn_is_over_when_no_token_is_left(tokenizer):
    watch = seen(tokenizer, "one two three four five six seven", n_left=3)
    assert (watch.ending, watch.n_tokens) == ("full", 3)


def test_a_turn_is_over_when_it_goes_in_circles(tokenizer):
    watch = seen(tokenizer, "I look at the sign once more, and then again. " * 40, repetition=Repetition())
    assert watch.ending == "repetition"


def test_circles_are_counted_over_all_turns_of_a_rollout(tokenizer):
    repetition, turn = Repetition(), "I look at the sign once more, and then again. " * 6
    endings = [seen(tokenizer, turn, repetition=repetition).ending for _ in range(6)]
    assert endings[0] == ""
    assert endings[-1] == "repetition"


def test_a_program_is_told_as_soon_as_it_is_complete(tokenizer):
    told = []
    seen(tokenizer, TURNS["thyme"], on_code=told.append)
    assert told == ["print(1)"]


def test_letters_that_take_several_tokens_are_read_whole(tokenizer):
    watch = seen(tokenizer, "<think>日本 ✓\n<code>\n```python\nprint('é')\n```\n</code>", on_code=(told := []).append)
    assert watch.ending == "code"
    assert told == ["print('é')"]


def written(model, processor, *, adaptive, seed, n_rows=4):
    """Rollouts' first turns, forced into code after a few words: (tokens, their scores, whether in code)."""
    torch.manual_seed(seed)
    tokenizer = processor.tokenizer
    prompt = tokenizer("<|im_start|>assistant\n<think>I look.\n<code>\n```python\n", return_tensors="pt")["input_ids"]
    ids = prompt.repeat(n_rows, 1)
    watchers = [watcher(tokenizer, n_left=24) for _ in range(n_rows)]
    for watch in watchers:  # what the prompt has of the turn was written, too
        watch._stream.feed("<think>I look.\n<code>\n```python\n")
    inside = []

    class Note:
        def __call__(self, ids, scores):
            inside.append([watch.in_code for watch in watchers])
            return scores

    rules = [Note(), *([GreedyInCode(watchers)] if adaptive else [])]
    made = model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        do_sample=True,
        temperature=1.0,
        max_new_tokens=24,
        logits_processor=rules,
        stopping_criteria=[StopWhenOver(watchers)],
        output_logits=True,
        return_dict_in_generate=True,
    )
    tokens = made.sequences[:, ids.shape[1] :]
    return tokens, torch.stack(made.logits, dim=1), inside, watchers


@pytest.fixture(scope="module")
def model(tiny):
    return load_model(tiny)


@pytest.fixture(scope="module")
def own_processor(tiny):
    return load_processor(tiny)


def test_tokens_in_code_are_the_most_likely_ones(model, own_processor):
    tokens, logits, inside, watchers = written(model, own_processor, adaptive=True, seed=0)
    greedy = logits.argmax(dim=-1)
    n_code = 0
    for row, watch in enumerate(watchers):
        for at in range(watch.n_tokens):
            if inside[at][row]:
                n_code += 1
                assert tokens[row, at] == greedy[row, at]
    assert n_code >= 20


def test_without_it_tokens_in_code_are_sampled(model, own_processor):
    tokens, logits, inside, watchers = written(model, own_processor, adaptive=False, seed=0)
    code = [
        tokens[row, at] == logits[row, at].argmax()
        for row, watch in enumerate(watchers)
        for at in range(watch.n_tokens)
        if inside[at][row]
    ]
    assert sum(code) < len(code) / 2


def test_tokens_outside_code_are_sampled(tiny, model, own_processor):
    torch.manual_seed(0)
    tokenizer = own_processor.tokenizer
    prompt = tokenizer("<|im_start|>assistant\n", return_tensors="pt")["input_ids"].repeat(4, 1)
    watchers = [watcher(tokenizer, n_left=24) for _ in range(4)]
    made = model.generate(
        input_ids=prompt,
        attention_mask=torch.ones_like(prompt),
        do_sample=True,
        temperature=1.0,
        max_new_tokens=24,
        logits_processor=[GreedyInCode(watchers)],
        stopping_criteria=[StopWhenOver(watchers)],
        output_logits=True,
        return_dict_in_generate=True,
    )
    tokens, logits = made.sequences[:, prompt.shape[1] :], torch.stack(made.logits, dim=1)
    same = [
        tokens[row, at] == logits[row, at].argmax()
        for row, watch in enumerate(watchers)
        for at in range(watch.n_tokens)
    ]
    assert len(same) >= 20
    assert sum(same) < len(same) / 2
    assert len({tuple(row.tolist()) for row in tokens}) == 4


def test_rows_stop_each_at_its_own_end(model, own_processor):
    tokens, _, _, watchers = written(model, own_processor, adaptive=False, seed=1)
    for watch in watchers:
        assert watch.ending in ("said", "full", "code")
        assert 0 < watch.n_tokens <= tokens.shape[1]
