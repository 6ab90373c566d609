"""TRL's GRPO trainer, with rollouts through Darkroom's own loop and sandbox.

What is TRL's stays TRL's: prompts, generation, log-probabilities, loss. Overridden are the places where a batch of
rollouts is made and scored:

- ``_generate_and_score_completions``: modes of prompts, advantages, broken rollouts, oversampled groups;
- ``_tool_call_loop``: the loop of ``batched_rollout.py`` instead of TRL's, which runs one code block at a time;
- ``_generate_single_turn``: greedy code, and the end of turns (``sampling.py``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from accelerate.utils import gather_object
from transformers import LogitsProcessorList, StoppingCriteriaList
from trl.trainer.grpo_config import GRPOConfig

from pipelines.generation.rollout import Rollout
from pipelines.models.tasks import Task
from pipelines.records.digest import seed_from
from train.models.loading import device_arguments, suppressed_tokens
from train.rl.judging.judges import check_judge
from train.rl.methods import Judges, Method
from train.rl.methods.base import GradedQuestion, RolloutOutcome
from train.rl.rollouts.batched_rollout import ActiveRollout, GeneratedTurn, ModelInTraining, Transcript
from train.rl.rollouts.environment import MixedGRPOTrainer, SandboxEnvironment
from train.rl.rollouts.images import processed_once
from train.rl.rollouts.prompts import opening
from train.rl.rollouts.sampling import Ending, GreedyInCode, StopWhenOver, TurnWatcher, in_segments
from train.rl.rollouts.scoring import Metrics, Scores, n_trained, rows_of_groups, scored, with_advantages, without_rows
from train.rl.settings import GrpoSettings
from train.runs import JudgeDown, TrainError
from train.runs.checkpoints import RestoresCheckpoints

T = TypeVar("T")
Watch = Callable[[Scores, Any], None]
"""Receives the scores of every generated batch and the trainer's state, for the sample log."""


def grpo_config(settings: GrpoSettings, processor: Any, *, steps: Path, save_steps: int) -> GRPOConfig:
    """TRL's configuration; its checkpoints go to ``steps``."""
    suppressed = suppressed_tokens(processor)
    with_vllm = settings.engine != "transformers"
    # TRL suppresses <|image_pad|> only; any other vision token that is sampled crashes the step
    forbidden = {"logit_bias": dict.fromkeys(suppressed, -100.0)} if with_vllm else {"suppress_tokens": suppressed}
    oversampled = round(settings.batch_size * settings.oversample)
    return GRPOConfig(
        output_dir=str(steps),
        max_steps=settings.max_steps,
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=oversampled,
        num_generations=settings.generations,
        gradient_accumulation_steps=settings.accumulation,
        learning_rate=settings.learning_rate,
        lr_scheduler_type=settings.schedule,
        beta=settings.beta,
        epsilon=settings.epsilon,
        temperature=settings.temperature,
        top_p=settings.top_p,
        repetition_penalty=settings.repetition_penalty,
        scale_rewards=settings.scale,
        loss_type=settings.loss_type,
        max_completion_length=settings.max_tokens,
        max_tool_calling_iterations=settings.max_rounds,
        generation_kwargs=forbidden,
        use_vllm=with_vllm,
        vllm_mode="server" if settings.engine == "vllm_server" else "colocate",
        seed=settings.seed,
        data_seed=settings.seed,
        logging_steps=1,
        save_strategy="steps" if save_steps else "no",
        save_steps=save_steps or 500,
        save_total_limit=2,
        report_to="none",
        disable_tqdm=True,
        **device_arguments(),
    )


class SandboxGRPOTrainer(RestoresCheckpoints, MixedGRPOTrainer):
    """Takes rows of ``train.rl.rollouts.prompts``. ``watch`` sees every batch."""

    def __init__(
        self,
        *args: Any,
        settings: GrpoSettings,
        method: Method,
        judges: Judges,
        watch: Watch | None = None,
        **kwargs: Any,
    ) -> None:
        """``args`` and ``kwargs`` are ``GRPOTrainer``'s, without rewards and environment, which are the method's."""
        self._settings, self._method, self._judges, self._watch = settings, method, judges, watch
        self._runner: asyncio.Runner | None = None
        self._players: list[ActiveRollout] = []
        self._outcomes: list[RolloutOutcome] = []
        self._speaking: list[tuple[ActiveRollout, TurnWatcher]] = []
        self._endings: list[Ending] = []
        self._started = 0.0
        self._scores = Scores()
        kwargs |= {"reward_funcs": self._rewards, "environment_factory": SandboxEnvironment}
        super().__init__(*args, **kwargs)
        self._processor: Any = self.processing_class

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """As TRL's; rollouts and judges share one event loop, which ends with the training."""
        with asyncio.Runner() as self._runner:
            policy = self._judges.policy
            if policy is None:
                return super().train(*args, **kwargs)
            try:
                self._run(check_judge(policy))
                return super().train(*args, **kwargs)
            finally:
                self._run(policy.close())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._runner is not None
        return self._runner.run(work)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        # whatever came before: an interrupted training generates the same rollouts when it resumes
        place = (self.args.seed, self.state.global_step, self.accelerator.process_index)
        torch.manual_seed(seed_from("rollouts", *place))
        size = self._settings.generations
        modes = self._method.modes(size)
        with processed_once(self._processor.image_processor):
            batch = super()._generate_and_score_completions(
                [_in_mode(row, modes[index % size]) for index, row in enumerate(inputs)]
            )
        scores = self._scores.with_advantages(size, scale=self._settings.scale)
        n_kept = round(len(inputs) // size / self._settings.oversample)
        self._log_metrics(scores.group_metrics(size, keep=n_kept))
        batch = with_advantages(batch, scores.advantages)
        out = [reason is not None for reason in scores.broken]
        if n_kept < len(inputs) // size:
            groups, out = scores.select_groups(size, keep=n_kept)
            batch, scores = rows_of_groups(batch, groups, size=size), scores.of_groups(groups, size)
        batch = without_rows(batch, out)
        # the loss is a mean over what is left
        batch["num_items_in_batch"] = self.accelerator.gather(n_trained(batch)).sum()
        if self._watch is not None:
            self._watch(scores, self.state)
        return batch

    def _generate(self, prompts: list[Any]) -> Any:
        environments: Sequence[SandboxEnvironment] = self.environments or ()
        self._players = [self._player(environment) for environment in environments]
        self._started = time.monotonic()
        return super()._generate(prompts)

    def _player(self, environment: SandboxEnvironment) -> ActiveRollout:
        row = environment._row
        question: GradedQuestion = row["asked"]
        sample = question.sample
        name = f"{sample.sample_id}/{environment._slot}"
        seed = seed_from(name, self.state.global_step)
        task = Task(name, "training", sample, sample.images, {}, (), seed, mode=row["mode"])
        return ActiveRollout(environment, task, Transcript([]), self._settings.max_rounds)

    def _tokenize_prompts(self, prompts: list[Any]) -> tuple[Any, Any, Any]:
        ids, images, fields = super()._tokenize_prompts(prompts)
        for player, prompt in zip(self._players, ids, strict=True):
            player.transcript.prompt = list(prompt)
        return ids, images, fields

    def _generate_single_turn(self, *args: Any, **kwargs: Any) -> Any:
        """The next turn of ``self._speaking``, or of all rollouts in TRL's first call."""
        if not self._speaking:
            self._speaking = [(player, self._watcher(player)) for player in self._players]
        watchers = [watcher for _, watcher in self._speaking]
        try:
            if self.use_vllm:
                ids, logprobs = self._by_vllm(watchers, *args)
            else:
                with self._watched(watchers):
                    ids, logprobs = super()._generate_single_turn(*args, **kwargs)  # type: ignore[no-untyped-call]
                ids = [tokens[: watcher.n_tokens] for tokens, watcher in zip(ids, watchers, strict=True)]
            self._endings = [watcher.ending for watcher in watchers]
        finally:
            self._speaking = []
        return ids, logprobs

    def _tool_call_loop(
        self,
        prompts: list[Any],
        prompt_ids: list[list[int]],
        completion_ids: list[list[int]],
        completions: list[Any],
        logprobs: list[Any] | None,
        images: list[Any] | None,
        multimodal_fields: dict[str, Any],
    ) -> Any:
        prompt_images = images or [[] for _ in prompts]
        model = ModelInTraining(
            lambda players: self._next_turns(players, prompt_images),
            processor=self._processor,
            max_tokens=self._settings.max_tokens,
        )
        model.clock.writing = time.monotonic() - self._started
        first = self._written(completion_ids, logprobs, self._endings)
        rollouts = self._run(model.run_batch(self._players, first))
        self._outcomes = [_outcome(player, rollout) for player, rollout in zip(self._players, rollouts, strict=True)]
        self._log_metrics({"sandbox/waiting_share": [model.clock.waiting_share]})
        transcripts = [player.transcript for player in self._players]
        return (
            [transcript.mask for transcript in transcripts],
            [_messages(outcome) for outcome in self._outcomes],
            [transcript.ids for transcript in transcripts],
            None if logprobs is None else [transcript.logprobs for transcript in transcripts],
            sum(outcome.n_calls for outcome in self._outcomes),
            sum(outcome.n_calls - outcome.n_ok for outcome in self._outcomes),
            [transcript.images for transcript in transcripts],
        )

    def _next_turns(self, players: Sequence[ActiveRollout], prompt_images: Sequence[Any]) -> list[GeneratedTurn]:
        """One batch: the turns of these players after what the sandbox showed them last."""
        place = {id(player): index for index, player in enumerate(self._players)}
        images = [[*prompt_images[place[id(player)]], *player.transcript.images] for player in players]
        flat = [image for player_images in images for image in player_images]
        fields = dict(self._processor.image_processor(images=flat, return_tensors="pt")) if flat else {}
        self._speaking = [(player, self._watcher(player)) for player in players]
        ids, logprobs = self._generate_single_turn(
            [player.transcript.prompt + player.transcript.ids for player in players],
            images,
            fields,
            1,
            has_tool_images=bool(flat),
        )
        return self._written(ids, logprobs, self._endings)

    def _written(
        self, ids: list[list[int]], logprobs: list[Any] | None, endings: Sequence[Ending]
    ) -> list[GeneratedTurn]:
        texts = self._tokenizer.batch_decode(ids, skip_special_tokens=True)
        turn_logprobs = logprobs or [None] * len(ids)
        return [GeneratedTurn(*turn) for turn in zip(ids, texts, endings, turn_logprobs, strict=True)]

    def _watcher(self, player: ActiveRollout) -> TurnWatcher:
        return TurnWatcher(
            self._tokenizer,
            player.protocol,
            n_left=self._settings.max_tokens - len(player.transcript.ids),
            ends=frozenset(self.eos_token_ids),
            repetition=player.repetition,
            on_code=player.begin,
        )

    @contextmanager
    def _watched(self, watchers: Sequence[TurnWatcher]) -> Iterator[None]:
        """Within, the model generates with these watchers."""
        model = self.accelerator.unwrap_model(self.model_wrapped)
        generate = model.generate
        greedy = [GreedyInCode(watchers)] if self._settings.adaptive_temperature else []

        def generate_watched(**inputs: Any) -> Any:
            rules = LogitsProcessorList([*greedy, *(inputs.pop("logits_processor", None) or ())])
            stops = StoppingCriteriaList([StopWhenOver(watchers)])
            return generate(**inputs, logits_processor=rules, stopping_criteria=stops)

        model.generate = generate_watched
        try:
            yield
        finally:
            model.generate = generate

    def _by_vllm(self, watchers: Sequence[TurnWatcher], prompt_ids: Any, images: Any, *_: Any) -> Any:
        if self.state.global_step != self._last_loaded_step:
            self.vllm_generation.sync_weights()  # type: ignore[no-untyped-call]
            self._last_loaded_step = self.state.global_step
        return in_segments(
            self.vllm_generation,
            prompt_ids,
            images,
            watchers,
            stops=[player.protocol.stop[0] for player, _ in self._speaking],
            adaptive=self._settings.adaptive_temperature,
        )

    def _rewards(self, environments: Sequence[SandboxEnvironment], **_: Any) -> list[float | None]:
        """What TRL calls with a batch's rollouts; None is a broken one's."""
        self._raise_in_all(_sandbox_missing(environments))
        scoring = scored(self._outcomes, self._method, self._judges, size=self._settings.generations)
        try:
            self._scores, error = self._run(scoring), None
        except JudgeDown as down:
            error = down
        self._raise_in_all(error)
        self._judges.forget()
        self._log_metrics(self._scores.rollout_metrics())
        return list(self._scores.rewards)

    def _raise_in_all(self, error: TrainError | None) -> None:
        """Raises the error of any process in all of them: else the others would wait for it for ever."""
        for raised in gather_object([error]):
            if raised is not None:
                raise raised

    def _log_metrics(self, metrics: Metrics) -> None:
        """Means over all processes, each of which may have other names."""
        for name in sorted(set(gather_object(list(metrics)))):
            values = metrics.get(name, [])
            sums = torch.tensor([sum(values), len(values)], device=self.accelerator.device, dtype=torch.float64)
            total, n_values = self.accelerator.reduce(sums, reduction="sum").tolist()
            if n_values:
                self._metrics["train"][name].append(total / n_values)


def _in_mode(row: dict[str, Any], mode: str) -> dict[str, Any]:
    if row["mode"] == mode:
        return row
    return {**row, "mode": mode, "prompt": opening(row["asked"], protocol=row["protocol"], mode=mode)}


def _outcome(player: ActiveRollout, rollout: Rollout) -> RolloutOutcome:
    environment = player.environment
    return RolloutOutcome(
        question=environment._row["asked"],
        protocol=player.protocol.name,
        mode=player.task.mode,
        rollout=rollout,
        turns=tuple(player.transcript.turns),
        question_images=tuple(environment._row["images"]),
        pixels=dict(environment.pixels),
        n_tokens=player.transcript.n_written,
        seconds=environment.seconds,
        sandbox_error=environment.broken,
    )


def _messages(outcome: RolloutOutcome) -> list[dict[str, str]]:
    """For TRL's own log of completions."""
    return [{"role": "assistant", "content": turn} for turn in outcome.turns]


def _sandbox_missing(environments: Sequence[SandboxEnvironment]) -> TrainError | None:
    errors = [environment.error for environment in environments if environment.error is not None]
    return TrainError(f"no program can be executed here: {errors[0]}") if errors else None
