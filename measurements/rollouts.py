"""What programs cost a batch of GRPO rollouts: Darkroom's loop against TRL's own, which executes one after the other.

    python -m measurements.rollouts                 # about a minute

Both train the same tiny model on the same questions for the same steps, with the same sandbox. What the model writes
is scripted, so that both write the same tokens; programs sleep, as slow programs do. The ratio of their times over the
rollouts is what is reported, and the share of the time that was spent waiting for programs.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from darkroom.train.runs.command_line import ENVIRONMENT

N_ROLLOUTS, N_STEPS = 8, 5
SEED = 0
"""Of both: the same questions, with the same images, in the same order."""
SECOND = "<think>It is red.</think>\n<answer>red</answer><|im_end|>"


def turn(row: int, seconds: float) -> str:
    """Rollouts think for longer and longer, so that programs become complete one after the other."""
    words = "I look at the picture. " * (1 + 4 * row)
    return (
        f"<think>{words}\n<code>\n```python\nimport time\ntime.sleep({seconds})\nprint({row})\n```\n</code><|im_end|>"
    )


def measured(trainer: Any, processor: Any, seconds: float) -> tuple[float, Any]:
    """Median seconds of a batch of rollouts, without the update."""
    from transformers import LogitsProcessorList

    generate, score = trainer.model.generate, trainer._generate_and_score_completions
    spent: list[float] = []

    def scripted(**inputs: Any) -> Any:
        ids = inputs["input_ids"]
        again = "</sandbox_output><|im_end|>" in processor.tokenizer.decode(ids[0])
        texts = [SECOND if again else turn(row, seconds) for row in range(ids.shape[0])]
        rules = LogitsProcessorList([*inputs.pop("logits_processor", ()), _Script(processor, ids.shape[1], texts)])
        return generate(**inputs, logits_processor=rules)

    def timed(inputs: Any) -> Any:
        start = time.perf_counter()
        made = score(inputs)
        spent.append(time.perf_counter() - start)
        return made

    trainer.model.generate, trainer._generate_and_score_completions = scripted, timed
    trainer.train()
    return median(spent[1:]), trainer.state.log_history  # the first batch starts the pool


class _Script:
    def __init__(self, processor: Any, n_prompt: int, texts: list[str]) -> None:
        self._n_prompt, self._texts = n_prompt, [processor.tokenizer(text)["input_ids"] for text in texts]

    def __call__(self, ids: Any, scores: Any) -> Any:
        at = ids.shape[1] - self._n_prompt
        for row, script in enumerate(self._texts):
            scores[row] = -float("inf")
            scores[row, script[min(at, len(script) - 1)]] = 0.0
        return scores


def of_darkroom(rows: Any, model: Path, steps: Path) -> tuple[Any, Any]:
    """``darkroom.train.grpo``'s trainer."""
    from darkroom.train.models.loading import load_processor
    from darkroom.train.rl.methods import named_method, settings_of
    from darkroom.train.rl.rollouts.training import build_trainer

    processor = load_processor(model)
    arguments = settings_of(
        "thyme",
        max_steps=N_STEPS,
        generations=N_ROLLOUTS,
        max_tokens=1500,
        repetition_penalty=1.0,
        beta=0.0,
        seed=SEED,
    )
    method = named_method("thyme")
    return build_trainer(rows, model, processor, arguments, method=method, steps=steps), processor


def of_trl(rows: Any, model: Path, steps: Path) -> tuple[Any, Any]:
    """TRL's trainer with Darkroom's sandbox as its environment."""
    from trl.trainer.grpo_config import GRPOConfig

    from darkroom.train.models.loading import device_arguments, load_model, load_processor, suppressed_tokens, template
    from darkroom.train.rl.rollouts.environment import RESPONSE_TEMPLATE, MixedGRPOTrainer, SandboxEnvironment
    from darkroom.train.rl.rollouts.prompts import prompts

    processor = load_processor(model)
    processor.chat_template = template("grpo")
    processor.tokenizer.response_template = RESPONSE_TEMPLATE
    config = GRPOConfig(
        output_dir=str(steps),
        max_steps=N_STEPS,
        per_device_train_batch_size=N_ROLLOUTS,
        num_generations=N_ROLLOUTS,
        max_completion_length=1500,
        max_tool_calling_iterations=4,
        beta=0.0,
        generation_kwargs={"suppress_tokens": suppressed_tokens(processor)},
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        seed=SEED,
        data_seed=SEED,
        **device_arguments(),
    )
    trainer = MixedGRPOTrainer(
        load_model(model),
        reward_funcs=lambda completions, **_: [float(row % 2) for row in range(len(completions))],
        args=config,
        train_dataset=prompts(rows, protocol="thyme"),
        processing_class=processor,
        environment_factory=SandboxEnvironment,
    )
    return trainer, processor


def main(
    dataset: Annotated[Path, typer.Option(help="Shipped dataset whose questions are asked.")] = Path(
        "data/datasets/sft/crop"
    ),
) -> None:
    """Measure what programs cost a batch of rollouts, against TRL's own loop."""
    os.environ.update(ENVIRONMENT)
    warnings.filterwarnings("ignore")
    from darkroom.train.rl.rollouts.prompts import open_prompts
    from darkroom.train.tiny import build, dataset_texts

    rows = open_prompts(dataset)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "tiny"
        build(model, texts=[*dataset_texts(dataset), *(turn(row, 0.0) for row in range(N_ROLLOUTS))])
        print(f"{N_ROLLOUTS} rollouts, one program each; seconds of a batch, median of {N_STEPS - 1}")
        print(f"{'program sleeps':>15} {'TRL':>8} {'Darkroom':>9} {'ratio':>6} {'waiting':>8}")
        for seconds in (0.0, 0.1, 0.5):
            made = [_run(build_one, rows, model, Path(folder), seconds) for build_one in (of_trl, of_darkroom)]
            waiting = [step["sandbox/waiting_share"] for step in made[1][1] if "sandbox/waiting_share" in step]
            trl, own = made[0][0], made[1][0]
            print(
                f"{seconds:>13.1f} s {trl:>8.2f} {own:>9.2f} {own / trl:>6.2f} {median(waiting[1:]):>8.1%}", flush=True
            )


def _run(build_one: Callable[..., Any], rows: Any, model: Path, folder: Path, seconds: float) -> tuple[float, Any]:
    from darkroom.train.rl.rollouts.sandbox_pool import PROMPT_GROUPS

    trainer, processor = build_one(rows, model, folder / "steps")
    try:
        return measured(trainer, processor, seconds)
    finally:
        PROMPT_GROUPS.close()


if __name__ == "__main__":
    typer.run(main)
