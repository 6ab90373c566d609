"""Runs in ms-swift's environment: its multi-turn rollouts with Darkroom's scheduler, on an engine that is scripted.

ms_swift_program.py ADAPTER FOLDER MODEL SCRIPTS: FOLDER is an export; SCRIPTS are a JSON file with batches, each
{row: [what marks its prompt, turns]}. Prints two lines of JSON for every batch: rollouts in ms-swift's server, and in
its trainer's own process.
"""

import asyncio
import base64
import hashlib
import io
import json
import os
import sys
from pathlib import Path

from datasets import load_dataset
from PIL import Image
from swift.infer_engine.protocol import (
    ChatCompletionResponse,
    ChatCompletionResponseChoice,
    ChatMessage,
    RequestConfig,
    RolloutOutput,
    UsageInfo,
)
from swift.model import get_model_info_meta
from swift.rl_core.data import GRPOSample
from swift.rl_core.grpo_algorithm import score_completions
from swift.rlhf_trainers.utils import encode_sample
from swift.rollout import invoke_async_hook, multi_turns, run_multi_turn
from swift.template.templates.qwen import Qwen2VLTemplate, QwenTemplateMeta
from swift.utils import import_external_file
from transformers import AutoProcessor


class TinyTemplate(Qwen2VLTemplate):
    """As ms-swift's own, for a tiny model's tokens, and without qwen_vl_utils, whose torchvision wants CUDA."""

    def replace_tag(self, media_type, index, inputs):
        image, prepare = inputs.images[index].convert("RGB"), self.processor.image_processor
        _, rows, columns = prepare(images=[image], return_tensors="pt")["image_grid_thw"][0].tolist()
        inputs.images[index] = image.resize((columns * prepare.patch_size, rows * prepare.patch_size))
        return ["<|vision_start|><|image_pad|><|vision_end|>"]


class Engine:
    """Writes the turns of a script as ms-swift's vLLM engine does; ``images`` are the digests of those it was sent."""

    def __init__(self, template, script):
        self.template, self.tokenizer, self.script = template, template.tokenizer, script
        self.images, self.turns, self.prompts = {}, {}, {}

    async def infer_async(self, request, config, **_):
        prompt = self.template.encode(request)["input_ids"]
        name = request.uuid
        number = self.turns[name] = self.turns.get(name, -1) + 1
        self.prompts.setdefault(name, prompt)
        self.images[name] = list(map(digest, request.images))
        turn = self.script[name][1][number]
        ids = self.tokenizer(turn).input_ids
        ids += [] if turn.endswith(tuple(config.stop)) else [self.tokenizer.eos_token_id]
        message = ChatMessage(role="assistant", content=self.template.decode_generate_ids(ids))
        logprobs = {"content": [{"logprob": -0.5} for _ in ids]}
        choice = ChatCompletionResponseChoice(0, message, "stop", logprobs, token_ids=ids)
        return ChatCompletionResponse("model", [choice], UsageInfo(len(prompt), len(ids), len(prompt) + len(ids)))

    def rollout(self, requests, config):
        async def all_of():
            return await asyncio.gather(*(self.infer_async(request, config) for request in requests))

        return [RolloutOutput(response=response) for response in asyncio.run(all_of())]

    async def _batch_infer_stream(self, tasks, *_):
        return await asyncio.gather(*tasks)


def digest(image):
    file = image if os.path.exists(image[:4096]) else io.BytesIO(base64.b64decode(image))
    return hashlib.sha256(Image.open(file).convert("RGB").tobytes()).hexdigest()


def in_server(requests, config, engine, template):
    scheduler = multi_turns["darkroom"](infer_engine=engine, tokenizer=template.tokenizer)
    return asyncio.run(scheduler.async_infer(requests, config, use_tqdm=False))


def in_trainer(requests, config, engine, template):
    scheduler = multi_turns["darkroom"](tokenizer=template.tokenizer, template=template)
    invoke_async_hook(scheduler.on_trajectory_start(requests))
    return run_multi_turn(requests, engine.rollout(requests, config), scheduler, engine.rollout, config)


def template_of(processor, mode):
    template = TinyTemplate(processor, QwenTemplateMeta("tiny"))
    template.image_token_id = processor.tokenizer.convert_tokens_to_ids("<|image_pad|>")
    template.init_processor(processor)
    template.set_mode(mode)
    return template


def main(adapter, folder, model, scripts):
    import_external_file(adapter)
    processor = AutoProcessor.from_pretrained(model, trust_remote_code=True)
    processor.model_info, processor.model_meta = get_model_info_meta(model, model_type="qwen2_5_vl")
    engine_template, template = template_of(processor, "transformers"), template_of(processor, "train")
    rows = load_dataset("parquet", data_files=f"{folder}/train.parquet", split="train")
    os.chdir(folder)
    for script in json.loads(Path(scripts).read_text()):
        for play in (in_server, in_trainer):
            samples = [GRPOSample.from_row({**row, "request_id": row["sample_id"]}) for row in rows]
            requests = [sample.to_infer_request(include_extra=True) for sample in samples]
            engine = Engine(engine_template, script)
            outputs = play(requests, RequestConfig(stop=["</code>"], n=1, return_details=True), engine, engine_template)
            for sample, output in zip(samples, outputs, strict=True):
                sample.apply_rollout_output(rollout_output=output)
            rewards = score_completions(samples, [], [], True, "cpu")[:, 0].tolist()
            played = zip(samples, rewards, strict=True)
            print(
                json.dumps({sample.request_id: rollout(sample, reward, engine, template) for sample, reward in played})
            )


def rollout(sample, reward, engine, template):
    name, encoded = sample.request_id, encode_sample(sample, template)
    n_prompt = len(engine.prompts[name])
    return {
        "prompt": encoded["input_ids"][:n_prompt],
        "response": encoded["input_ids"][n_prompt:],
        "mask": [int(label >= 0) for label in encoded["labels"][n_prompt:]],
        "n_logprobs": sum(map(len, sample.rollout_logprobs)),
        "n_features": len(encoded.get("image_grid_thw", ())),
        "images": list(map(digest, sample.images)),
        "engine_images": engine.images[name],
        "reward": reward,
        **{key: sample.rollout_infos[key] for key in ("correct", "broken")},
    }


main(*sys.argv[1:])
