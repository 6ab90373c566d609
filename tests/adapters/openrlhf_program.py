"""Runs in OpenRLHF's environment: its multi-turn executor with Darkroom's agent, on an engine that is scripted.

openrlhf_program.py ADAPTER MODEL SCRIPTS: SCRIPTS are a JSON file with batches, each
{row: [what marks its prompt, turns]}. Prints a line of JSON for every batch.
"""

import asyncio
import hashlib
import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace

from openrlhf.utils.agent import AgentExecutorBase
from transformers import AutoProcessor

MOST_TOKENS = 8192


class Engine:
    """Writes the turns of a script as vLLM does; ``images`` are the digests of those that it was sent last, by row."""

    def __init__(self, tokenizer, script):
        self.tokenizer, self.script, self.images, self.turns = tokenizer, script, {}, {}

    async def generate(self, prompt_token_ids, sampling_params, multi_modal_data=None):
        prompt = self.tokenizer.decode(prompt_token_ids)
        ((name, turns),) = [(name, turns) for name, (mark, turns) in self.script.items() if mark in prompt]
        number = self.turns[name] = self.turns.get(name, -1) + 1
        images = (multi_modal_data or {}).get("image", ())
        self.images[name] = [hashlib.sha256(image.tobytes()).hexdigest() for image in images]
        assert sampling_params.include_stop_str_in_output
        text = turns[number]
        text += "" if text.endswith(tuple(sampling_params.stop)) else self.tokenizer.eos_token
        ids = self.tokenizer(text).input_ids
        logprobs = [{token: SimpleNamespace(logprob=-0.5)} for token in ids]
        return SimpleNamespace(
            outputs=[SimpleNamespace(token_ids=ids, text=text, finish_reason="stop", logprobs=logprobs)]
        )


async def main(adapter, model, scripts):
    spec = importlib.util.spec_from_file_location("agent_module", adapter)  # as OpenRLHF's RolloutRayActor does
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert issubclass(module.AgentExecutor, AgentExecutorBase)
    executor, processor = module.AgentExecutor(), AutoProcessor.from_pretrained(model, trust_remote_code=True)
    for script in json.loads(Path(scripts).read_text()):
        engine, sampling = Engine(processor.tokenizer, script), SimpleNamespace(max_tokens=2048, logprobs=1)
        played = await asyncio.gather(
            *(executor.execute("", row, sampling, MOST_TOKENS, processor, engine) for row in script)
        )
        print(
            json.dumps({row: rollout(played, engine.images[row]) for row, played in zip(script, played, strict=True)})
        )


def rollout(played, images):
    ids, ranges = played["observation_tokens"], played["action_ranges"]
    mask, n_prompt = [0] * len(ids), ranges[0][0]
    for start, end in ranges:
        mask[start:end] = [1] * (end - start)
    return {
        "prompt": ids[:n_prompt],
        "response": ids[n_prompt:],
        "mask": mask[n_prompt:],
        "logprobs": played["rollout_log_probs"][n_prompt:],
        "reward": played["reward"],
        "n_features": len((played["mm_train_inputs"] or {}).get("image_grid_thw", ())),
        "images": images,
        **played["extra_logs"],
    }


asyncio.run(main(*sys.argv[1:]))
