"""Pivots, exported for TRL, train in TRL's own trainers: pairs in DPO, single decisions in GRPO."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from datasets import load_dataset

from darkroom.pipelines.publishing.layouts import layout_of
from darkroom.pipelines.publishing.layouts.export_source import find_source
from darkroom.pipelines.publishing.layouts.exporter import export
from darkroom.pipelines.publishing.pivots.rows import step_rewards
from darkroom.train.models.loading import device_arguments, load_model, load_processor, suppressed_tokens, template
from tests.pipelines.publishing.pivots.shipped_pivots import ship_pivots

pytestmark = pytest.mark.filterwarnings(
    # TRL 1.16 reads the name that transformers 5.23 deprecates
    "ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"
)
N_STEPS = 2


@pytest.fixture(scope="module")
def pivots(tmp_path_factory):
    return ship_pivots(tmp_path_factory.mktemp("pivots"))


def rows_of(pivots: Path, layout: str, out: Path):
    source = find_source("pivots", Path(), split="train", named={"pivots": pivots})
    made = export(source, layout_of(layout, "pivots"), out / layout).folder
    files = str(made / "train.parquet")
    return load_dataset("parquet", data_files=files, split="train", cache_dir=str(out / "cache"))


@pytest.fixture
def arguments(tmp_path):
    return {
        "output_dir": str(tmp_path / "steps"),
        "max_steps": N_STEPS,
        "per_device_train_batch_size": 2,
        "learning_rate": 1e-3,
        "report_to": "none",
        "disable_tqdm": True,
        "logging_steps": 1,
        "save_strategy": "no",
        **device_arguments(),
    }


def opened(tiny):
    processor = load_processor(tiny)
    processor.chat_template = template("grpo")
    return processor


def test_pairs_train_in_dpo_and_their_images_reach_the_model(pivots, tiny, tmp_path, arguments):
    from trl import DPOConfig, DPOTrainer

    model, rows = load_model(tiny), rows_of(pivots, "trl_dpo", tmp_path)
    before, images = model.lm_head.weight.detach().clone(), []
    model.model.visual.register_forward_pre_hook(lambda _, args, kwargs: images.append(1), with_kwargs=True)
    trainer = DPOTrainer(
        model, args=DPOConfig(max_length=None, **arguments), train_dataset=rows, processing_class=opened(tiny)
    )
    trainer.train()
    first, *_, last = (log for log in trainer.state.log_history if "rewards/margins" in log)
    assert images
    assert first["loss"] == pytest.approx(0.6931, abs=0.01)  # log 2: the model is its own reference
    assert last["rewards/margins"] > first["rewards/margins"]
    assert not torch.equal(before, model.lm_head.weight)


def test_single_decisions_train_in_grpo_with_the_reward_of_their_pivot(pivots, tiny, tmp_path, arguments):
    from trl import GRPOConfig, GRPOTrainer

    reward, rewarded = step_rewards(pivots), []

    def counted(completions, **columns):
        rewarded.append((len(completions), reward(completions=completions, **columns)))
        return rewarded[-1][1]

    processor, rows = opened(tiny), rows_of(pivots, "trl_steps", tmp_path)
    trainer = GRPOTrainer(
        load_model(tiny),
        reward_funcs=counted,
        args=GRPOConfig(
            num_generations=2,
            max_completion_length=24,
            generation_kwargs={"suppress_tokens": suppressed_tokens(processor)},
            **arguments,
        ),
        train_dataset=rows,
        processing_class=processor,
    )
    trainer.train()
    assert trainer.state.global_step == N_STEPS
    assert rewarded == [(2, [0.0, 0.0])] * N_STEPS  # an untrained model reaches no goal
