"""GRPO on pivots in TRL's own trainer: one decision a rollout, rewarded by what its code shows."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from darkroom.pipelines.publishing.layouts import layout_of
from darkroom.pipelines.publishing.layouts.export_source import find_source
from darkroom.pipelines.publishing.layouts.exporter import export
from darkroom.train.runs.checkpoints import Staging
from darkroom.train.runs.job import TrainingJob, run_job
from darkroom.train.runs.reporting import RunReporter
from darkroom.train.runs.step_reports import report_steps

_LAYOUT = "trl_steps"


def train_steps(pivots: Path, model: Path, output: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Trains where ``output`` is not complete; returns its history.

    ``settings`` are fields of TRL's ``GRPOConfig`` besides ``seed`` and ``max_pixels``; ``pivots`` is a published
    dataset.
    """
    job = TrainingJob("grpo", pivots, model, output, dict(settings), column="reward")
    return run_job(job, partial(_train, job))


def _train(job: TrainingJob, staging: Staging, report: RunReporter) -> list[dict[str, Any]]:
    from darkroom.train.models.loading import load_processor, model_type, save_checkpoint, template
    from darkroom.train.runs.history import read_steps

    processor = load_processor(job.model, max_pixels=job.arguments["max_pixels"])
    own_template, processor.chat_template = processor.chat_template, template("grpo", model_type(job.model))
    trainer = _trainer(job, processor, staging)
    report_steps(trainer, report, "grpo")
    trainer.train()
    save_checkpoint(trainer, processor, staging.final, base=job.model, chat_template=own_template)
    return read_steps(trainer.state.log_history, "grpo")


def _trainer(job: TrainingJob, processor: Any, staging: Staging) -> Any:
    from datasets import load_dataset
    from trl import GRPOConfig, GRPOTrainer

    from darkroom.pipelines.publishing.pivots.rows import step_rewards
    from darkroom.train.models.loading import load_model, suppressed_tokens, trainer_arguments

    source = find_source("pivots", Path(), split="train", named={"pivots": job.dataset})
    folder = export(source, layout_of(_LAYOUT, "pivots"), staging.folder / _LAYOUT).folder
    rows = load_dataset("parquet", data_files=str(folder / "train.parquet"), cache_dir=str(staging.folder / "cache"))
    own = {name: value for name, value in job.arguments.items() if name not in ("max_pixels", "seed")}
    arguments = GRPOConfig(
        **trainer_arguments(staging.steps, seed=job.arguments["seed"], save_steps=0),
        **own,
        generation_kwargs={"suppress_tokens": suppressed_tokens(processor)},
        log_multimodal=False,
    )
    return GRPOTrainer(
        load_model(job.model),
        reward_funcs=step_rewards(job.dataset),
        args=arguments,
        train_dataset=rows["train"],
        processing_class=processor,
    )
