"""TRL's GRPO trainer, with rollouts through Darkroom's own loop and sandbox.

What is TRL's stays TRL's: prompts, generation, log-probabilities, loss. Overridden are the places where a batch of
rollouts is made and scored:

- ``_generate_and_score_completions``: modes of prompts, advantages, broken rollouts, oversampled groups;
- ``_tool_call_loop``: the loop of ``play.py`` in the place of TRL's, which executes one program after the other;
- ``_generate_single_turn``: greedy code, and an end to turns that are over (``sampling.py``, ``segments.py``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from accelerate.utils import gather_object
from transformers import LogitsProcessorList, StoppingCriteriaList

from pipelines.digest import seed_from
from pipelines.rollout import Rollout
from pipelines.tasks import Task
from train.faults import JudgeDown, TrainFault
from train.judging.judges import check_judge
from train.methods import Judges, Method
from train.options import Scale
from train.resuming import ReadsRestartPoints
from train.rollouts.environment import SandboxEnvironment
from train.rollouts.mixed import MixedGRPOTrainer
from train.rollouts.outcomes import Outcome
from train.rollouts.pictures import processed_once
from train.rollouts.play import ModelInTraining, Player, Written
from train.rollouts.prompts import Asked, opening
from train.rollouts.sampling import Ending, GreedyInCode, StopWhenOver, TurnWatcher
from train.rollouts.scores import Metrics, Scores, scored
from train.rollouts.segments import in_segments
from train.rollouts.transcript import Transcript
from train.rollouts.update import chosen_groups, n_trained, with_advantages, without_rows

T = TypeVar("T")
Watch = Callable[[Scores, Any], None]
"""Is told the scores of every generated batch, with the trainer's state: sample pages are made from them."""


@dataclass(frozen=True, slots=True)
class Way:
    """How rollouts are made and what they are for: a method, as it was set."""

    method: Method
    judges: Judges
    generations: int
    max_rounds: int
    max_tokens: int
    scale: Scale
    adaptive_temperature: bool
    oversample: float


class SandboxGRPOTrainer(ReadsRestartPoints, MixedGRPOTrainer):
    """Takes rows of ``train.rollouts.prompts``. ``watch`` sees every batch."""

    def __init__(self, *args: Any, way: Way, watch: Watch | None = None, **kwargs: Any) -> None:
        """``args`` and ``kwargs`` are ``GRPOTrainer``'s, without rewards and environment: they are the method's."""
        self._way, self._watch = way, watch
        self._runner: asyncio.Runner | None = None
        self._players: list[Player] = []
        self._outcomes: list[Outcome] = []
        self._speaking: list[tuple[Player, TurnWatcher]] = []
        self._endings: list[Ending] = []
        self._started = 0.0
        self._scores = Scores()
        kwargs |= {"reward_funcs": self._rewards, "environment_factory": SandboxEnvironment}
        super().__init__(*args, **kwargs)
        self._processor: Any = self.processing_class

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """As TRL's; rollouts and judges share one event loop, which ends with the training."""
        with asyncio.Runner() as self._runner:
            policy = self._way.judges.policy
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
        # whatever came before: a training that was broken off writes the same rollouts when it goes on
        place = (self.args.seed, self.state.global_step, self.accelerator.process_index)
        torch.manual_seed(seed_from("rollouts", *place))
        size = self._way.generations
        modes = self._way.method.modes(size)
        with processed_once(self._processor.image_processor):
            batch = super()._generate_and_score_completions(
                [_in_mode(row, modes[index % size]) for index, row in enumerate(inputs)]
            )
        scores = self._scores.with_advantages(size, scale=self._way.scale)
        n_kept = round(len(inputs) // size / self._way.oversample)
        self._log_metrics(scores.of_groups_of(size, keep=n_kept))
        batch = with_advantages(batch, scores.advantages)
        out = [reason is not None for reason in scores.broken]
        if n_kept < len(inputs) // size:
            groups, out = scores.ranked(size, keep=n_kept)
            batch, scores = chosen_groups(batch, groups, size=size), scores.of_groups(groups, size)
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

    def _player(self, environment: SandboxEnvironment) -> Player:
        row = environment._row
        asked: Asked = row["asked"]
        sample = asked.sample
        name = f"{sample.sample_id}/{environment._slot}"
        seed = seed_from(name, self.state.global_step)
        task = Task(name, "training", sample, sample.images, {}, (), seed, mode=row["mode"])
        return Player(environment, task, Transcript([]), self._way.max_rounds)

    def _tokenize_prompts(self, prompts: list[Any]) -> tuple[Any, Any, Any]:
        ids, images, fields = super()._tokenize_prompts(prompts)
        for player, prompt in zip(self._players, ids, strict=True):
            player.transcript.prompt = list(prompt)
        return ids, images, fields

    def _generate_single_turn(self, *args: Any, **kwargs: Any) -> Any:
        """The next turn of ``self._speaking``, or of all players where nobody was named: TRL's first call."""
        if not self._speaking:
            self._speaking = [(player, self._watcher(player)) for player in self._players]
        watchers = [watcher for _, watcher in self._speaking]
        try:
            if self.use_vllm:
                ids, logprobs = self._by_vllm(watchers, *args)
            else:
                with self._watched(watchers):
                    ids, logprobs = super()._generate_single_turn(*args, **kwargs)  # type: ignore[no-untyped-call]
                ids = [said[: watcher.n_tokens] for said, watcher in zip(ids, watchers, strict=True)]
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
        shown = images or [[] for _ in prompts]
        model = ModelInTraining(
            lambda players: self._next_turns(players, shown),
            processor=self._processor,
            max_tokens=self._way.max_tokens,
        )
        model.clock.writing = time.monotonic() - self._started
        first = self._written(completion_ids, logprobs, self._endings)
        rollouts = self._run(model.play(self._players, first))
        self._outcomes = [_outcome(player, made) for player, made in zip(self._players, rollouts, strict=True)]
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

    def _next_turns(self, players: Sequence[Player], prompt_images: Sequence[Any]) -> list[Written]:
        """One batch: the turns of these players after what the sandbox showed them last."""
        place = {id(player): index for index, player in enumerate(self._players)}
        images = [[*prompt_images[place[id(player)]], *player.transcript.images] for player in players]
        flat = [image for shown in images for image in shown]
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

    def _written(self, ids: list[list[int]], logprobs: list[Any] | None, endings: Sequence[Ending]) -> list[Written]:
        texts = self._tokenizer.batch_decode(ids, skip_special_tokens=True)
        given = logprobs or [None] * len(ids)
        return [Written(*said) for said in zip(ids, texts, endings, given, strict=True)]

    def _watcher(self, player: Player) -> TurnWatcher:
        return TurnWatcher(
            self._tokenizer,
            player.protocol,
            n_left=self._way.max_tokens - len(player.transcript.ids),
            ends=frozenset(self.eos_token_ids),
            repetition=player.repetition,
            on_code=player.begin,
        )

    @contextmanager
    def _watched(self, watchers: Sequence[TurnWatcher]) -> Iterator[None]:
        """Within, the model generates with these watchers."""
        model = self.accelerator.unwrap_model(self.model_wrapped)
        generate = model.generate
        greedy = [GreedyInCode(watchers)] if self._way.adaptive_temperature else []

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
            adaptive=self._way.adaptive_temperature,
        )

    def _rewards(self, environments: Sequence[SandboxEnvironment], **_: Any) -> list[float | None]:
        """What TRL calls with a batch's rollouts; None is a broken one's."""
        self._together(_sandbox_missing(environments))
        scoring = scored(self._outcomes, self._way.method, self._way.judges, size=self._way.generations)
        try:
            self._scores, fault = self._run(scoring), None
        except JudgeDown as down:
            fault = down
        self._together(fault)
        self._way.judges.forget()
        self._log_metrics(self._scores.of_rollouts())
        return list(self._scores.rewards)

    def _together(self, fault: TrainFault | None) -> None:
        """Raises the fault of any process in all of them: one that waits for another would wait for ever."""
        for found in gather_object([fault]):
            if found is not None:
                raise found

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


def _outcome(player: Player, made: Rollout) -> Outcome:
    environment = player.environment
    return Outcome(
        asked=environment._row["asked"],
        protocol=player.protocol.name,
        mode=player.task.mode,
        rollout=made,
        turns=tuple(player.transcript.turns),
        question_images=tuple(environment._row["images"]),
        pixels=dict(environment.pixels),
        n_tokens=player.transcript.n_written,
        seconds=environment.seconds,
        sandbox_fault=environment.broken,
    )


def _messages(outcome: Outcome) -> list[dict[str, str]]:
    """For TRL's own log of completions."""
    return [{"role": "assistant", "content": turn} for turn in outcome.turns]


def _sandbox_missing(environments: Sequence[SandboxEnvironment]) -> TrainFault | None:
    faults = [environment.fault for environment in environments if environment.fault is not None]
    return TrainFault(f"no program can be executed here: {faults[0]}") if faults else None
