"""TRL's GRPO trainer, with rollouts through Darkroom's own loop and sandbox.

What is TRL's stays TRL's: prompts, generation, log-probabilities, loss. Overridden are the places where a batch of
rollouts is made and scored:

- ``_generate_and_score_completions``: modes of prompts, advantages, broken rollouts, oversampled groups;
- ``_tool_call_loop``: the loop of ``active_rollout.py`` instead of TRL's, which runs one code block at a time;
- generation of turns: ``generation.py``; each method's loss: ``loss.py``.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import torch
from accelerate.utils import gather_object
from trl.trainer import grpo_trainer
from trl.trainer.utils import RepeatSampler

from darkroom.pipelines.records.digest import seed_from
from darkroom.train.models.loading import score_only_trained_tokens
from darkroom.train.rl.judging.judges import check_judge
from darkroom.train.rl.methods import Judges, Method
from darkroom.train.rl.methods.base import RolloutOutcome, rate
from darkroom.train.rl.rollouts.environment import SandboxEnvironment
from darkroom.train.rl.rollouts.generation import RolloutGenerator
from darkroom.train.rl.rollouts.loss import rows_of_groups, weight_tokens
from darkroom.train.rl.rollouts.prompts import opening
from darkroom.train.rl.rollouts.scoring import Metrics, Scores, scored
from darkroom.train.rl.rollouts.transcript import processed_once
from darkroom.train.rl.settings import GrpoSettings
from darkroom.train.runs import JudgeDown, TrainError
from darkroom.train.runs.checkpoints import RestoresCheckpoints
from darkroom.train.runs.trainer_callbacks import EvaluatesPeriodically

# TRL prints the row of a broken rollout, 130 kB of image and the expected answer; broken_rate and rollouts.html tell
logging.getLogger(grpo_trainer.__name__).addFilter(
    lambda record: "All reward functions returned None" not in str(record.msg)[:100]
)
T = TypeVar("T")


class EpochSampler(RepeatSampler):
    """TRL's order of prompts, also where training resumes after an epoch: TRL 1.16 would begin with the first order."""

    def set_epoch(self, epoch: int) -> None:
        """Called by the trainer before each epoch, counted from 0."""
        if self.shuffle and self.seed is not None:
            self.generator.manual_seed(self.seed)
            for _ in range(epoch):
                torch.randperm(self.num_samples, generator=self.generator)


class SandboxGRPOTrainer(RestoresCheckpoints, EvaluatesPeriodically, RolloutGenerator):
    """Trains on rows of ``prompts``. ``watch`` gets every batch's scores and the trainer's state, for the log."""

    def __init__(
        self,
        *args: Any,
        settings: GrpoSettings,
        method: Method,
        judges: Judges,
        watch: Callable[[Scores, Any], None] | None = None,
        **kwargs: Any,
    ) -> None:
        """``args`` and ``kwargs`` are ``GRPOTrainer``'s, without rewards and environment, which are the method's."""
        score_only_trained_tokens()
        self._judges, self._watch = judges, watch
        self._outcomes: list[RolloutOutcome] = []
        self._scores = Scores()
        super().__init__(*args, settings=settings, method=method, reward_funcs=self._rewards, **kwargs)

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """Train as TRL does; rollouts and judges share one event loop, which ends with the training."""
        with asyncio.Runner() as self._runner:
            policy = self._judges.policy
            try:
                if policy is not None:
                    self._run(check_judge(policy))
                return super().train(*args, **kwargs)
            finally:
                if policy is not None:
                    self._run(policy.close())

    def _get_train_sampler(self, dataset: Any = None) -> EpochSampler:
        sampler = super()._get_train_sampler(dataset)
        names = ("data_source", "mini_repeat_count", "batch_size", "repeat_count", "shuffle", "seed")
        return EpochSampler(**{name: getattr(sampler, name) for name in names})

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        # whatever came before: an interrupted training generates the same rollouts when it resumes
        torch.manual_seed(seed_from("rollouts", *self._seed_parts))
        size = self._settings.generations
        modes = self._method.modes(size)
        with processed_once(self._processor.image_processor):
            rows = [_in_mode(row, modes[index % size]) for index, row in enumerate(inputs)]
            batch = super()._generate_and_score_completions(rows)
        scores = self._scores.with_advantages(size, scale=self._settings.scale)
        n_kept = round(len(inputs) // size / self._settings.oversample)
        self._log_metrics(scores.group_metrics(size))
        batch = {**batch, "advantages": batch["advantages"].new_tensor(scores.advantages)}
        dropped = scores.untrained
        if n_kept < len(inputs) // size:
            groups, dropped = scores.select_groups(size, keep=n_kept, ranked=self._method.ranks_groups)
            batch, scores = rows_of_groups(batch, groups, size=size), scores.of_groups(groups, size)
        self._log_metrics(scores.trained_metrics(dropped))
        loss_type, longest = self._settings.loss_type, self._settings.max_tokens
        batch = weight_tokens(batch, dropped, size=size, longest=longest, loss_type=loss_type)
        # the loss is a mean over what is left
        batch["num_items_in_batch"] = self.accelerator.gather(batch["num_items_in_batch"]).sum()
        if self._watch is not None:
            self._watch(scores, self.state)
        return batch

    def get_high_entropy_mask(self, entropies: torch.Tensor, mask: torch.Tensor, threshold: float) -> torch.Tensor:
        """Called by TRL, which would compare the entropies of weighted tokens with a quantile of unweighted ones."""
        return super().get_high_entropy_mask(entropies, (mask > 0).to(mask.dtype), threshold)

    def _generate(self, prompts: list[Any]) -> Any:
        self._begin(self.environments or ())
        return super()._generate(prompts)

    def _tool_call_loop(
        self, prompts: Any, prompt_ids: Any, completion_ids: list[list[int]], completions: Any, logprobs: Any, *_: Any
    ) -> Any:
        self._outcomes, waiting_share = self._finish(completion_ids, logprobs)
        self._log_metrics({"sandbox/waiting_share": [waiting_share]})
        transcripts = [active.transcript for active in self._active]
        return (
            [transcript.mask for transcript in transcripts],
            [[{"role": "assistant", "content": turn} for turn in outcome.turns] for outcome in self._outcomes],
            [transcript.ids for transcript in transcripts],
            None if logprobs is None else [transcript.logprobs for transcript in transcripts],
            sum(outcome.n_calls for outcome in self._outcomes),
            sum(outcome.n_calls - outcome.n_ok for outcome in self._outcomes),
            [transcript.images for transcript in transcripts],
        )

    def grade(self, rows: Sequence[dict[str, Any]]) -> list[tuple[RolloutOutcome, float]]:
        """Roll out greedily on each row and grade: 1.0 for a right answer, else 0.0. Called by all processes. Raises
        ``JudgeDown``, and ``TrainError`` where nothing can be executed."""
        outcomes = self.roll_out_greedily(rows)
        self._require_sandbox([active.environment for active in self._active])
        return self._judged(rate(outcomes, self._judges))

    def _rewards(self, environments: Sequence[SandboxEnvironment], **_: Any) -> list[float | None]:
        """The rewards of a batch's rollouts, as TRL requests them; None for a broken one."""
        self._require_sandbox(environments)
        self._scores = self._judged(scored(self._outcomes, self._method, self._judges, size=self._settings.generations))
        self._log_metrics(self._scores.rollout_metrics())
        return list(self._scores.rewards)

    def _require_sandbox(self, environments: Sequence[SandboxEnvironment]) -> None:
        with self._raised_in_all(TrainError):
            for error in filter(None, (environment.error for environment in environments)):
                raise TrainError(f"no program can be executed here: {error}")

    def _judged(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work``. Raises ``JudgeDown`` in all processes where it does in one."""
        with self._raised_in_all(JudgeDown):
            result = self._run(work)
        self._judges.forget()
        return result

    def _log_metrics(self, metrics: Metrics) -> None:
        """Average metrics over processes; their names may differ."""
        for name in sorted(set(gather_object(list(metrics)))):
            values = metrics.get(name, [])
            sums = torch.tensor([sum(values), len(values)], device=self.accelerator.device, dtype=torch.float64)
            total, n_values = self.accelerator.reduce(sums, reduction="sum").tolist()
            if n_values:
                self._metrics["train"][name].append(total / n_values)


def _in_mode(row: dict[str, Any], mode: str) -> dict[str, Any]:
    if row["mode"] == mode:
        return row
    prompt = opening(row["asked"], protocol=row["protocol"], mode=mode, wording=row.get("wording"))
    return {**row, "mode": mode, "prompt": prompt}
