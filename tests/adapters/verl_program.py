"""Runs in verl's environment: its dataset and its agent loop worker on exported rows, with an engine that is scripted.

verl_program.py FOLDER MODEL SCRIPTS: SCRIPTS are a JSON file with batches, each {row: [what marks its prompt, turns]}.
Prints a line of JSON for every batch.
"""

import asyncio
import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import verl.trainer
from hydra import compose, initialize_config_dir
from verl import DataProto
from verl.experimental.agent_loop.agent_loop import AgentLoopWorker
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn
from verl.workers.rollout.replica import TokenOutput


class Engine:
    """Writes the turns of a script; ``images`` are the digests of those that it was sent last, by row."""

    def __init__(self, tokenizer, script):
        self.tokenizer, self.script, self.images, self.turns = tokenizer, script, {}, {}

    async def generate(self, request_id, *, prompt_ids, sampling_params, image_data=None):
        text = self.tokenizer.decode(prompt_ids)
        ((name, turns),) = [(name, turns) for name, (mark, turns) in self.script.items() if mark in text]
        number = self.turns[name] = self.turns.get(name, -1) + 1
        self.images[name] = [hashlib.sha256(image.tobytes()).hexdigest() for image in image_data or ()]
        assert sampling_params["include_stop_str_in_output"]
        turn = turns[number]
        ids = self.tokenizer(turn).input_ids
        ids += [] if turn.endswith(tuple(sampling_params["stop"])) else [self.tokenizer.eos_token_id]
        ids = ids[: sampling_params["max_tokens"]]
        return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids), extra_fields={"max_global_steps": number})


def config_of(folder, model):
    with initialize_config_dir(str(Path(verl.trainer.__file__).parent / "config"), version_base=None):
        rollout = "actor_rollout_ref.rollout"
        return compose(
            "ppo_trainer",
            [
                f"actor_rollout_ref.model.path={model}",
                "actor_rollout_ref.model.trust_remote_code=True",
                f"{rollout}.name=vllm",
                f"{rollout}.prompt_length=4096",
                f"{rollout}.response_length=2048",
                f"{rollout}.agent.agent_loop_config_path={folder}/darkroom_verl.yaml",
                f"data.train_files={folder}/train.parquet",
                "data.image_key=images",
                "data.return_raw_chat=True",
                "data.filter_overlong_prompts=False",
            ],
        )


async def main(folder, model, scripts):
    config = config_of(folder, model)
    worker = AgentLoopWorker(config, llm_client=None)
    rows = RLHFDataset(config.data.train_files, worker.tokenizer, config.data, worker.processor)
    for script in json.loads(Path(scripts).read_text()):
        batch = DataProto.from_single_dict(collate_fn([rows[index] for index in range(len(rows))]))
        batch.non_tensor_batch["priority"] = np.arange(len(rows))
        worker.llm_client = engine = Engine(worker.tokenizer, script)
        made = await worker.generate_sequences(batch)
        n_prompt = made.batch["prompts"].shape[1]
        rollouts = {}
        for index in range(len(rows)):
            attended = made.batch["attention_mask"][index].bool()
            prompt, response = attended[:n_prompt], attended[n_prompt:]
            features = made.non_tensor_batch["multi_modal_inputs"][index]
            name = rows[index]["extra_info"]["sample_id"]
            rollouts[name] = {
                "prompt": made.batch["prompts"][index][prompt].tolist(),
                "response": made.batch["responses"][index][response].tolist(),
                "mask": made.batch["response_mask"][index][response].tolist(),
                "logprobs": made.batch["rollout_log_probs"][index][response].tolist(),
                "reward": made.batch["rm_scores"][index].sum().item(),
                "correct": float(made.non_tensor_batch["acc"][index]),
                "broken": bool(made.non_tensor_batch["broken"][index]),
                "n_features": len(features.get("image_grid_thw", ())),
                "images": engine.images[name],
            }
        print(json.dumps(rollouts))


asyncio.run(main(*sys.argv[1:]))
