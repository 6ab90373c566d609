"""Trains a tiny model with TRL's GRPOTrainer on a service's rows; the turns that it samples are a script's.

trl_program.py MODEL SCRIPTS: SCRIPTS are a JSON file with batches, each {row: [what marks its prompt, turns]}.
Prints a line of JSON for every step, which is a batch.
"""

import hashlib
import json
import math
import sys
from pathlib import Path

import darkroom_trl
from transformers import AutoProcessor
from trl import GRPOConfig

N_GENERATIONS = 2


class ScriptedTrainer(darkroom_trl.DarkroomGRPOTrainer):
    """Samples the turns of ``scripts``, one script a step; prints its rollouts."""

    scripts = ()

    def _generate_single_turn(self, prompt_ids, *_, **__):
        return list(map(self._turn, prompt_ids)), None

    def _turn(self, ids):
        tokenizer = self.processing_class.tokenizer
        text, script = tokenizer.decode(ids), self.scripts[self.state.global_step]
        ((_, turns),) = [value for value in script.values() if value[0] in text]
        number = text.count("<|im_start|>assistant\n") - 1
        return [*tokenizer(turns[number]).input_ids, tokenizer.eos_token_id]

    def _generate(self, prompts):
        self.generated = super()._generate(prompts)
        return self.generated

    def _calculate_rewards(self, inputs, *arguments):
        rewards = super()._calculate_rewards(inputs, *arguments)
        ids, responses, masks, _, _, _, images, _ = self.generated
        rollouts = {}
        for index, row in enumerate(inputs):
            reward = rewards[index].item()
            digests = [hashlib.sha256(image.convert("RGB").tobytes()).hexdigest() for image in images[index] or ()]
            rollout = {
                "prompt": list(ids[index]),
                "response": responses[index],
                "mask": masks[index],
                "images": digests,
                "reward": None if math.isnan(reward) else reward,
            }
            rollouts.setdefault(row["sample_id"], []).append(rollout)
        print(json.dumps(rollouts))
        return rewards


def main(model, scripts):
    processor = AutoProcessor.from_pretrained(model, padding_side="left", trust_remote_code=True)
    arguments = darkroom_trl.arguments(processor)
    ScriptedTrainer.scripts = json.loads(Path(scripts).read_text())
    config = GRPOConfig(
        output_dir="steps",
        max_steps=len(ScriptedTrainer.scripts),
        per_device_train_batch_size=N_GENERATIONS * len(arguments["train_dataset"]),
        num_generations=N_GENERATIONS,
        max_completion_length=2048,
        max_tool_calling_iterations=darkroom_trl.max_rounds(),
        model_init_kwargs={"trust_remote_code": True},
        shuffle_dataset=False,
        bf16=False,
        use_cpu=True,
        report_to="none",
        save_strategy="no",
        logging_steps=1,
    )
    ScriptedTrainer(model, args=config, **arguments).train()


main(*sys.argv[1:])
