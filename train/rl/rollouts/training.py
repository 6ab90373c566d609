"""One GRPO training: its trainer from the settings, its steps, its held-out accuracy, and the checkpoint."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from trl.trainer.grpo_config import GRPOConfig

from darkroom.train.examples.datasets import HeldOut
from darkroom.train.models import loading
from darkroom.train.models.sharding import note_on_launch
from darkroom.train.rl.methods import Judges, Method
from darkroom.train.rl.rollouts.environment import PLAIN_RESPONSE
from darkroom.train.rl.rollouts.prompts import check_lengths, check_pixels, open_prompts, prompts
from darkroom.train.rl.rollouts.sample_log import SampleLog, log_traces
from darkroom.train.rl.rollouts.trainer import SandboxGRPOTrainer
from darkroom.train.rl.rollouts.vllm_engine import prepare_vllm, readable_errors, require_nccl
from darkroom.train.rl.settings import GrpoSettings
from darkroom.train.runs import EngineDown, JudgeDown, TrainError
from darkroom.train.runs.checkpoints import Staging
from darkroom.train.runs.command_line import is_first_process
from darkroom.train.runs.held_out import METRICS, shares, spread
from darkroom.train.runs.history import read_steps
from darkroom.train.runs.job import TrainingJob
from darkroom.train.runs.options import split_options
from darkroom.train.runs.reporting import RunReporter, trackers
from darkroom.train.runs.trainer_callbacks import report_steps


def held_out_accuracy(trainer: Any, rows: Sequence[Any], *, size: int) -> dict[str, float]:
    """``eval_accuracy``, ``eval_answered``, ``eval_tool_use`` (proportions of the rollouts that are not broken) and
    ``eval_broken_rate`` (the sandbox failed; code that exceeds its time is not broken): one greedy rollout a question,
    graded by the row's grader. Each process takes its share of the rows, ``size`` at a time. Raises ``JudgeDown``, and
    ``TrainError`` where every rollout is broken."""
    accelerator = trainer.accelerator
    counts = torch.zeros(5, dtype=torch.float64, device=accelerator.device)
    for share in shares(len(rows), size, accelerator):
        graded = trainer.grade([rows[row] for row in share.rows])
        for outcome, right in graded if share.counts else ():
            broken = outcome.sandbox_error is not None
            whole = (right, outcome.answer is not None, outcome.used_tool, True)
            counts += torch.tensor([*(float(value and not broken) for value in whole), float(broken)]).to(counts)
    right, answered, used_tool, n_whole, n_broken = accelerator.reduce(counts, reduction="sum").tolist()
    if not n_whole:
        raise TrainError(f"all {n_broken:.0f} held-out rollouts are broken: the sandbox failed in each")
    return {
        "eval_accuracy": right / n_whole,
        "eval_answered": answered / n_whole,
        "eval_tool_use": used_tool / n_whole,
        "eval_broken_rate": n_broken / (n_whole + n_broken),
    }


@dataclass(frozen=True, slots=True)
class GrpoRun:
    """A training on ``job.dataset``, with evaluations on the rows ``evaluated``; None: without."""

    job: TrainingJob
    settings: GrpoSettings
    method: Method
    judges: Judges | None
    evaluated: HeldOut | None
    staging: Staging
    report: RunReporter
    save_steps: int

    def train(self) -> list[dict[str, Any]]:
        """Train, save to ``staging.final``, return the steps. Raises ``JudgeDown``, ``EngineDown``, saved to resume."""
        job, settings, staging = self.job, self.settings, self.staging
        loading.check_weights(job.model)
        samples = staging.folder / "rollouts"  # survives a restart, as the trainer's checkpoints do
        processor = loading.load_processor(job.model, min_pixels=settings.min_pixels, max_pixels=settings.max_pixels)
        check_pixels(job.model, processor, settings.engine)
        stock = processor.chat_template
        processor.chat_template = loading.template("grpo", loading.model_type(job.model))
        self._check_lengths(processor)
        track = (log_traces,) if "trackio" in trackers() else ()
        trainer = build_trainer(
            open_prompts(job.dataset),
            job.model,
            processor,
            settings,
            method=self.method,
            judges=self.judges,
            steps=staging.steps,
            save_steps=self.save_steps,
            sample_log=SampleLog(samples, track) if is_first_process() else None,
        )
        report_steps(trainer, self.report, "grpo")
        self._report_start(trainer)
        if self.evaluated is not None:
            self._evaluate(trainer, self.evaluated)
        trainer.accelerator.wait_for_everyone()  # the first process may still be clearing the folder
        try:
            trainer.train(resume_from_checkpoint=staging.last_step())
        except (JudgeDown, EngineDown):
            trainer._save_checkpoint(trainer.model, trial=None)
            self.report.line(f"step {trainer.state.global_step} is saved")
            raise
        processor.tokenizer.response_template = None
        best = trainer.periodic and trainer.periodic.best_weights
        loading.save_checkpoint(trainer, processor, staging.final, base=job.model, chat_template=stock, best=best)
        if is_first_process() and samples.is_dir():
            samples.rename(staging.final / samples.name)
        trainer.accelerator.wait_for_everyone()
        return read_steps(trainer.state.log_history, "grpo")

    def _check_lengths(self, processor: Any) -> None:
        limits: dict[str, Any] = {
            "protocol": self.settings.protocol,
            "max_tokens": self.settings.max_tokens,
            "context": loading.context_length(self.job.model),
            "wording": self.settings.prompt,
        }
        check_lengths(self.job.dataset, processor, modes=set(self.method.modes(self.settings.generations)), **limits)
        if self.evaluated is not None:
            (folder,), part = self.evaluated
            check_lengths(folder, processor, modes=("free",), part=part, **limits)

    def _report_start(self, trainer: Any) -> None:
        if note := note_on_launch(trainer):
            self.report.line(note)
        n_prompts, n_step = len(trainer.train_dataset), trainer.args.generation_batch_size // self.settings.generations
        if n_prompts < n_step:  # TRL leaves an incomplete batch out, and would train no step
            raise TrainError(f"{n_prompts} prompts, and a step takes {n_step}: lower --batch-size or --accumulation")
        self.report.line(f"{n_prompts} prompts, {self.settings.generations} rollouts each: {self.method.says}")
        if self.judges is None or self.judges.policy is None:
            self.report.line(f"no judge (--judge-url); one would be asked {self.method.wants_judge}")

    def _evaluate(self, trainer: Any, evaluated: HeldOut) -> None:
        settings = self.settings
        (folder,), part = evaluated
        rows = open_prompts(folder, part)
        chosen = rows.select(spread(len(rows), settings.eval_limit))
        self.report.line(f"evaluated on {len(chosen):,} held-out questions every {settings.eval_every} steps")
        rows = prompts(chosen, protocol=settings.protocol, wording=settings.prompt)
        size = trainer.args.generation_batch_size // trainer.accelerator.num_processes
        measure = partial(held_out_accuracy, trainer, rows, size=size)
        trainer.evaluate_periodically(settings, METRICS["grpo"], measure=measure, report=self.report)


def build_trainer(
    rows: Dataset,
    model: Path,
    processor: Any,
    settings: GrpoSettings,
    *,
    method: Method,
    steps: Path,
    judges: Judges | None = None,
    save_steps: int = 0,
    sample_log: Any = None,
) -> Any:
    """Build a trainer whose rollouts execute code; sets the GRPO template on ``processor``."""
    processor.chat_template = loading.template("grpo", loading.model_type(model))
    processor.tokenizer.response_template = PLAIN_RESPONSE
    arguments = _config(settings, method, processor, steps, save_steps)  # before the model: it starts the process group
    if settings.engine == "vllm_colocate" and not loading.has_gpu():
        prepare_vllm()
    if settings.engine == "vllm_server" and loading.has_gpu():
        require_nccl()
    with readable_errors(settings.engine):
        own = split_options(settings.trainer, "grpo")[1]
        return SandboxGRPOTrainer(
            loading.load_model(model, keeps_float32=not settings.lora and not settings.bf16_weights, **own),
            settings=settings,
            method=method,
            judges=judges or Judges(),
            watch=sample_log,
            args=arguments,
            train_dataset=prompts(rows, protocol=settings.protocol, wording=settings.prompt),
            processing_class=processor,
            peft_config=loading.lora_config(settings.lora),
        )


def _config(settings: GrpoSettings, method: Method, processor: Any, steps: Path, save_steps: int) -> Any:
    suppressed = loading.suppressed_tokens(processor)
    with_vllm = settings.engine != "transformers"
    # TRL suppresses <|image_pad|> only; any other vision token that is sampled crashes the step
    forbidden = {"logit_bias": dict.fromkeys(suppressed, -100.0)} if with_vllm else {"suppress_tokens": suppressed}
    same_names = {"learning_rate", "beta", "epsilon", "temperature", "top_p", "repetition_penalty"}
    arguments = {
        **method.loss,
        **settings.model_dump(include=same_names),
        **loading.trainer_arguments(steps, seed=settings.seed, save_steps=save_steps),
        "loss_type": "dapo",  # over a mask that weighs the tokens: darkroom.train.rl.rollouts.loss.weight_tokens
        "max_steps": settings.max_steps,
        "num_train_epochs": settings.epochs,
        "per_device_train_batch_size": round(settings.batch_size * settings.oversample),
        "num_generations": settings.generations,
        "gradient_accumulation_steps": settings.accumulation,
        "lr_scheduler_type": settings.schedule,
        "scale_rewards": settings.scale,
        "max_completion_length": settings.max_tokens,
        "max_tool_calling_iterations": settings.max_rounds,
        "generation_kwargs": forbidden,
        "use_vllm": with_vllm,
        "vllm_mode": "server" if settings.engine == "vllm_server" else "colocate",
        "log_multimodal": False,  # TRL gathers images from all processes, and hangs where one has none
    }
    config = GRPOConfig(**{**arguments, **split_options(settings.trainer, "grpo")[0]})
    if save_steps % config.num_iterations:  # its answers are in no checkpoint: resumed, it would train on others
        times = f"each answer is trained in {config.num_iterations} steps (trainer.num_iterations)"
        raise TrainError(f"--save-steps {save_steps}: {times}; save after a multiple of that")
    return config
