"""The RL dataset, exported for TRL, trains in TRL: its prompts, its images, its reward file, Darkroom's sandbox."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace

import pytest
from datasets import load_dataset

from darkroom.pipelines.publishing.layouts import PROMPT_LAYOUTS
from darkroom.pipelines.publishing.layouts.export_source import find_source
from darkroom.pipelines.publishing.layouts.exporter import export
from darkroom.pipelines.records import Grader, RLRow
from darkroom.train.models.loading import device_arguments, load_model, load_processor, suppressed_tokens, template
from darkroom.train.rl.rollouts.environment import PROMPT_GROUPS, RESPONSE_TEMPLATE, SandboxEnvironment
from tests.pipelines.publishing.shipping import write_prompts
from tests.train.conftest import CROP, sign, sum_without_image
from tests.train.scripted import FIRST_TURNS, scripted_step

pytestmark = pytest.mark.filterwarnings(
    # TRL 1.16 reads the name that transformers 5.23 deprecates
    "ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"
)


@pytest.fixture(scope="module")
def exported(store, tmp_path_factory):
    """Two prompts, one with an image and one without, as `trl_grpo` has them, and the reward file beside them."""
    folder = tmp_path_factory.mktemp("rl")
    asked = [sign(store, 0)[0], sum_without_image(7)[0]]
    kinds = [Grader("text"), Grader("number")]
    rows = [
        RLRow(sample, grader, "public", "unknown", None, None, None)
        for sample, grader in zip(asked, kinds, strict=True)
    ]
    write_prompts(folder / "prompts", rows, store=store, split="train")
    found = find_source("rl", folder, split="train", prompts=folder / "prompts").in_protocol("thyme", None)
    made = export(found, PROMPT_LAYOUTS["trl_grpo"], folder / "out").folder
    files = str(made / "train.parquet")
    return SimpleNamespace(
        rows=load_dataset("parquet", data_files=files, split="train", cache_dir=str(folder / "cache")), folder=made
    )


@pytest.fixture(scope="module")
def step(exported, tiny, tmp_path_factory):
    """One scripted step of two rollouts a prompt: each crops, then says that it is red."""
    from trl.trainer.grpo_config import GRPOConfig

    from darkroom.train.rl.rollouts.environment import MixedGRPOTrainer

    spec = importlib.util.spec_from_file_location("reward", exported.folder / "reward.py")
    reward = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reward)
    processor = load_processor(tiny)
    processor.chat_template = template("grpo")
    processor.tokenizer.response_template = RESPONSE_TEMPLATE
    trainer = MixedGRPOTrainer(
        load_model(tiny),
        reward_funcs=reward.trl_reward,
        args=GRPOConfig(
            output_dir=str(tmp_path_factory.mktemp("steps")),
            max_steps=1,
            per_device_train_batch_size=4,
            num_generations=2,
            max_completion_length=400,
            max_tool_calling_iterations=3,
            beta=0.0,
            generation_kwargs={"suppress_tokens": suppressed_tokens(processor)},
            report_to="none",
            disable_tqdm=True,
            **device_arguments(),
            logging_steps=1,
            save_strategy="no",
        ),
        train_dataset=exported.rows,
        processing_class=processor,
        environment_factory=SandboxEnvironment,
    )
    batch = scripted_step(trainer, processor, [FIRST_TURNS[0]] * 4)
    yield SimpleNamespace(batch=batch, log=trainer.state.log_history[0])
    PROMPT_GROUPS.close()


def test_an_exported_prompt_is_conversational_and_takes_its_images(exported):
    from trl.data_utils import is_conversational, prepare_multimodal_messages

    for row in exported.rows:
        assert is_conversational(row)
        messages = prepare_multimodal_messages(row["prompt"], images=row["images"])
        shown = [part["image"] for message in messages for part in message["content"] if part["type"] == "image"]
        assert shown == row["images"]


def test_the_exported_images_and_those_of_the_sandbox_reach_the_model(step):
    assert CROP in FIRST_TURNS[0]
    assert sorted(step.batch["num_images"]) == [0, 0, 2, 2]


def test_the_exported_reward_tells_right_answers_from_wrong_ones(step):
    """All rollouts say that it is red: right of the sign, wrong of the sum."""
    assert step.log["rewards/trl_reward/mean"] == 0.5
