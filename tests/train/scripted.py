"""One training step whose rollouts follow a script: real generation, known words."""

import re
from itertools import groupby
from typing import NamedTuple

from tests.train.conftest import CROP

FIRST_TURNS = [
    f"<think>I crop.\n<code>\n```python\n{CROP}\n```\n</code><|im_end|>",
    "<think>I add.\n<code>\n```python\nprint(6 * 7)\n```\n</code><|im_end|>",
    "<think>I fail.\n<code>\n```python\nprint(nothing)\n```\n</code><|im_end|>",
    "<think>I guess.</think>\n<answer>blue</answer><|im_end|>",
]
SECOND_TURN = "It is red.</think>\n<answer>red</answer><|im_end|>"
OBSERVED = ("</sandbox_output>", "</interpreter>", "</tool_response>")


class Scripted:
    """A logits processor that makes the model write a script."""

    def __init__(self, tokenizer, n_prompt, scripts):
        self.n_prompt = n_prompt
        self.scripts = [tokenizer(script)["input_ids"] for script in scripts]

    def __call__(self, ids, scores):
        at = ids.shape[1] - self.n_prompt
        for row, script in enumerate(self.scripts):
            token = script[min(at, len(script) - 1)]
            scores[row] = -float("inf")
            scores[row, token] = 0.0
        return scores


def follow_script(trainer, processor, first_turns, second_turn=SECOND_TURN):
    """Makes the trainer's model write turns. ``first_turns`` may be a function of the rows' prompts."""
    from transformers import LogitsProcessorList

    generate = trainer.model.generate

    def scripted(**inputs):
        ids = inputs["input_ids"]
        texts = [processor.tokenizer.decode(row) for row in ids]
        again = any(f"{mark}<|im_end|>" in texts[0] for mark in OBSERVED)
        first = first_turns(texts) if callable(first_turns) else first_turns
        scripts = [second_turn] * ids.shape[0] if again else first
        rules = inputs.pop("logits_processor", ())
        rules = LogitsProcessorList([*rules, Scripted(processor.tokenizer, ids.shape[1], scripts)])
        return generate(**inputs, logits_processor=rules)

    trainer.model.generate = scripted


def scripted_step(trainer, processor, first_turns, second_turn=SECOND_TURN):
    """Trains; returns what TRL computed for the last batch."""
    follow_script(trainer, processor, first_turns, second_turn)
    score, batch = trainer._generate_and_score_completions, {}

    def captured(inputs):
        batch.clear()
        batch.update(score(inputs))
        return dict(batch)

    trainer._generate_and_score_completions = captured
    trainer.train()
    return batch


def rollout_segments(processor, batch, row):
    """The tokens of a rollout by whether they are trained."""
    ids = batch["completion_ids"][row]
    mask = (batch["completion_mask"] * batch["tool_mask"])[row].bool()
    n_tokens = int(batch["completion_mask"][row].sum())
    labels = ids.masked_fill(~mask, -100)
    return segments(processor.tokenizer, ids[:n_tokens].tolist(), labels[:n_tokens].tolist())


class Segment(NamedTuple):
    """A run of tokens that are all trained or all not; ``<|image_pad|>×16`` stands for sixteen image tokens."""

    text: str
    trained: bool


def segments(tokenizer, ids, labels):
    """Tokens grouped by whether they have a label."""
    runs = groupby(zip(ids, labels, strict=True), key=lambda pair: pair[1] != -100)
    decoded = [(tokenizer.decode([token for token, _ in run]), trained) for trained, run in runs]
    pads, length = re.compile(r"(?:<\|image_pad\|>)+"), len("<|image_pad|>")
    return [Segment(pads.sub(lambda run: f"<|image_pad|>×{len(run[0]) // length}", text), on) for text, on in decoded]
