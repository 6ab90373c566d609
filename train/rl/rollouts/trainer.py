"""TRL's GRPO trainer, with rollouts through Darkroom's own loop and sandbox.

What is TRL's stays TRL's: prompts, generation, log-probabilities, loss. Overridden are the places where a batch of
rollouts is made and scored:

- ``_generate_and_score_completions``: modes of prompts, advantages, broken rollouts, oversampled groups;
- ``_tool_call_loop``: the loop of ``batched_rollout.py`` instead of TRL's, which runs one code block at a time;
- ``_generate_single_turn``: greedy code, and the end of turns (``sampling.py``).
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import torch
from accelerate.utils import gather_object
from trl.trainer import grpo_trainer

from pipelines.models.tasks import Task
from pipelines.records import Sample
from pipelines.records.digest import seed_from
from pipelines.verification.repetition import Repetition
from train.models.sharding import always_sees, is_sharded
from train.rl.judging.judges import check_judge
from train.rl.methods import Judges, Method
from train.rl.methods.base import RolloutOutcome
from train.rl.rollouts.batched_rollout import ActiveRollout, GeneratedTurn, ModelInTraining, Transcript
from train.rl.rollouts.environment import MixedGRPOTrainer, SandboxEnvironment
from train.rl.rollouts.images import processed_once
from train.rl.rollouts.lockstep import Lockstep
from train.rl.rollouts.prompts import EpochSampler, opening
from train.rl.rollouts.sampling import Ending, TurnWatcher, in_segments, repetition_rule, watched
from train.rl.rollouts.scoring import Metrics, Scores, scored
from train.rl.rollouts.update import rows_of_groups, weighted, with_advantages, without_rows
from train.rl.settings import GrpoSettings
from train.runs import JudgeDown, TrainError
from train.runs.checkpoints import RestoresCheckpoints

T = TypeVar("T")
# TRL prints the row of a broken rollout, 130 kB of image and the expected answer; broken_rate and rollouts.html tell
logging.getLogger(grpo_trainer.__name__).addFilter(
    lambda record: "All reward functions returned None" not in str(record.msg)[:100]
)
Watch = Callable[[Scores, Any], None]
"""Receives the scores of every generated batch and the trainer's state, for the sample log."""


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
        self._repetition = repetition_rule(settings)
        self._runner: asyncio.Runner | None = None
        self._players: list[ActiveRollout] = []
        self._outcomes: list[RolloutOutcome] = []
        self._speaking: list[ActiveRollout] = []
        self._endings: list[Ending] = []
        self._started = 0.0
        self._scores = Scores()
        kwargs |= {"reward_funcs": self._rewards, "environment_factory": SandboxEnvironment}
        super().__init__(*args, **kwargs)
        self._processor: Any = self.processing_class
        processor: Any = self.processing_class
        added = processor.tokenizer.added_tokens_decoder.values()
        self._special_tokens = tuple(token.content for token in added if token.special)
        in_step = is_sharded(self) and not self.use_vllm
        self._lockstep = Lockstep(self.accelerator, self._empty_turn) if in_step else None
        if self.accelerator.num_processes > 1:
            for model in filter(None, (self.model, self.ref_model)):
                always_sees(model)

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """As TRL's; rollouts and judges share one event loop, which ends with the training."""
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
        out = scores.untrained
        if n_kept < len(inputs) // size:
            groups, out = scores.select_groups(size, keep=n_kept, ranked=self._method.ranks_groups)
            batch, scores = rows_of_groups(batch, groups, size=size), scores.of_groups(groups, size)
        batch = weighted(without_rows(batch, out), size=size, loss_type=self._settings.loss_type)
        # the loss is a mean over what is left
        batch["num_items_in_batch"] = self.accelerator.gather(batch["num_items_in_batch"]).sum()
        if self._watch is not None:
            self._watch(scores, self.state)
        return batch

    def _generate(self, prompts: list[Any]) -> Any:
        environments: Sequence[SandboxEnvironment] = self.environments or ()
        self._players = [self._player(environment) for environment in environments]
        self._started = time.monotonic()
        return super()._generate(prompts)

    def _player(self, environment: SandboxEnvironment) -> ActiveRollout:
        environment.special_tokens = self._special_tokens
        row = environment._row
        sample: Sample = row["asked"].sample
        name = f"{sample.sample_id}/{environment._slot}"
        seed = seed_from(name, self.state.global_step)
        task = Task(name, "training", sample, sample.images, {}, (), seed, mode=row["mode"])
        watch = None if self._repetition is None else Repetition(self._repetition)
        return ActiveRollout(environment, task, Transcript([]), self._settings.max_rounds, watch)

    def _tokenize_prompts(self, prompts: list[Any]) -> tuple[Any, Any, Any]:
        tokenized = super()._tokenize_prompts(prompts)
        for player, prompt in zip(self._players, tokenized[0], strict=True):
            player.transcript.prompt = list(prompt)
        return tokenized

    def _generate_single_turn(self, *args: Any, **kwargs: Any) -> Any:
        """The next turn of ``self._speaking``, or of all rollouts in TRL's first call."""
        players, self._speaking = self._speaking or self._players, []
        watchers = [self._watcher(player) for player in players]
        if self.use_vllm:
            ids, logprobs = self._by_vllm(players, watchers, *args)
        else:
            model = self.accelerator.unwrap_model(self.model_wrapped)
            in_step = self._lockstep is not None
            with watched(model, watchers, adaptive=self._settings.adaptive_temperature, in_step=in_step):
                ids, logprobs = super()._generate_single_turn(*args, **kwargs)  # type: ignore[no-untyped-call]
            ids = [tokens[: watcher.n_tokens] for tokens, watcher in zip(ids, watchers, strict=True)]
        self._endings = [watcher.ending for watcher in watchers]
        return ids, logprobs

    def _empty_turn(self) -> None:
        watcher = TurnWatcher(self._tokenizer, self._players[0].protocol, n_left=1, ends=frozenset())
        with watched(self.accelerator.unwrap_model(self.model_wrapped), [watcher], adaptive=False, in_step=True):
            super()._generate_single_turn([[self._tokenizer.pad_token_id]], None, {}, 1)  # type: ignore[no-untyped-call]

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
            shows_images=self._method.shows_images,
        )
        model.seconds_writing = time.monotonic() - self._started
        first = self._written(completion_ids, logprobs)
        rollouts = self._run(model.run_batch(self._players, first))
        if self._lockstep is not None:
            self._lockstep.finish()
        self._outcomes = [player.outcome(rollout) for player, rollout in zip(self._players, rollouts, strict=True)]
        self._log_metrics({"sandbox/waiting_share": [model.waiting_share]})
        transcripts = [player.transcript for player in self._players]
        return (
            [transcript.mask for transcript in transcripts],
            [[{"role": "assistant", "content": turn} for turn in outcome.turns] for outcome in self._outcomes],
            [transcript.ids for transcript in transcripts],
            None if logprobs is None else [transcript.logprobs for transcript in transcripts],
            sum(outcome.n_calls for outcome in self._outcomes),
            sum(outcome.n_calls - outcome.n_ok for outcome in self._outcomes),
            [transcript.images for transcript in transcripts],
        )

    def _next_turns(self, players: Sequence[ActiveRollout], prompt_images: Sequence[Any]) -> list[GeneratedTurn]:
        """One batch: the turns of these players after what the sandbox showed them last."""
        if self._lockstep is not None:
            self._lockstep.begin_turn()
        place = {id(player): index for index, player in enumerate(self._players)}
        images = [[*prompt_images[place[id(player)]], *player.transcript.images] for player in players]
        flat = [image for player_images in images for image in player_images]
        fields = dict(self._processor.image_processor(images=flat, return_tensors="pt")) if flat else {}
        self._speaking = list(players)
        ids, logprobs = self._generate_single_turn(
            [player.transcript.prompt + player.transcript.ids for player in players],
            images,
            fields,
            1,
            has_tool_images=bool(flat),
        )
        return self._written(ids, logprobs)

    def _written(self, ids: list[list[int]], logprobs: list[Any] | None) -> list[GeneratedTurn]:
        texts = self._tokenizer.batch_decode(ids, skip_special_tokens=True)
        turn_logprobs = logprobs or [None] * len(ids)
        return [GeneratedTurn(*turn) for turn in zip(ids, texts, self._endings, turn_logprobs, strict=True)]

    def _watcher(self, player: ActiveRollout) -> TurnWatcher:
        return TurnWatcher(
            self._tokenizer,
            player.protocol,
            n_left=self._settings.max_tokens - len(player.transcript.ids),
            ends=frozenset(self.eos_token_ids),
            repetition=player.repetition,
            on_code=player.begin,
        )

    def _by_vllm(
        self,
        players: Sequence[ActiveRollout],
        watchers: Sequence[TurnWatcher],
        prompt_ids: list[list[int]],
        images: list[list[Any]] | None,
        *_: Any,
    ) -> Any:
        if self.state.global_step != self._last_loaded_step:
            self.vllm_generation.sync_weights()  # type: ignore[no-untyped-call]
            self._last_loaded_step = self.state.global_step
        return in_segments(
            self.vllm_generation,
            prompt_ids,
            images,
            watchers,
            stops=[player.protocol.stop[0] for player in players],
            adaptive=self._settings.adaptive_temperature,
        )

    def _rewards(self, environments: Sequence[SandboxEnvironment], **_: Any) -> list[float | None]:
        """What TRL calls with a batch's rollouts; None is a broken one's."""
        missing = next((environment.error for environment in environments if environment.error is not None), None)
        self._raise_in_all(TrainError(f"no program can be executed here: {missing}") if missing else None)
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
    asked = opening(row["asked"], protocol=row["protocol"], mode=mode, wording=row.get("wording"))
    return {**row, "mode": mode, "prompt": asked}
