"""Rollouts of the model in training: TRL's generation of turns, in Darkroom's own loop with the sandbox.

What is TRL's stays TRL's: the rendering of prompts, and ``generate``. Overridden: ``_generate_single_turn``, for greedy
code and the end of turns (``sampling.py``); with a vLLM server it writes all turns. Training rolls out through TRL's
``_generate`` (``trainer.py``), an evaluation on held-out rows through ``roll_out_greedily``.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, NamedTuple, TypeVar

from accelerate.utils import gather_object
from trl.data_utils import prepare_multimodal_messages

from darkroom.pipelines.generation.rollout import Rollout
from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.verification.repetition import Repetition
from darkroom.train.models.sharding import Lockstep, always_sees, is_sharded
from darkroom.train.rl.methods import Method
from darkroom.train.rl.methods.base import RolloutOutcome
from darkroom.train.rl.rollouts.active_rollout import (
    ActiveRollout,
    BatchedTurns,
    EngineClock,
    ModelInTraining,
    TurnWriter,
)
from darkroom.train.rl.rollouts.environment import MixedGRPOTrainer, SandboxEnvironment
from darkroom.train.rl.rollouts.sampling import Ending, TurnWatcher, greedily, repetition_rule, watched
from darkroom.train.rl.rollouts.transcript import GeneratedTurn, processed_once
from darkroom.train.rl.rollouts.vllm_engine import ServerTurns, VllmServer, in_segments
from darkroom.train.rl.settings import GrpoSettings
from darkroom.train.runs import EngineDown, TrainError

T = TypeVar("T")


class Generated(NamedTuple):
    """The rollouts of a batch of prompts, and the proportion of the time that went into waiting for code."""

    outcomes: list[RolloutOutcome]
    waiting_share: float


class RolloutGenerator(MixedGRPOTrainer):
    """Generates rollouts on rows of ``darkroom.train.rl.rollouts.prompts``."""

    def __init__(self, *args: Any, settings: GrpoSettings, method: Method, **kwargs: Any) -> None:
        self._settings, self._method = settings, method
        self._repetition = repetition_rule(settings)
        self._runner: asyncio.Runner | None = None
        self._active: list[ActiveRollout] = []
        self._next: list[ActiveRollout] = []
        self._endings: list[Ending] = []
        self._rollouts: list[Rollout] = []
        self._clock = EngineClock()
        kwargs["environment_factory"] = SandboxEnvironment
        super().__init__(*args, **kwargs)
        processor: Any = self.processing_class
        self._processor = processor
        added = processor.tokenizer.added_tokens_decoder.values()
        self._special_tokens = tuple(token.content for token in added if token.special)
        self._server = VllmServer(self.vllm_generation) if self.use_vllm and self.vllm_mode == "server" else None
        in_step = is_sharded(self) and not self.use_vllm
        self._lockstep = Lockstep(self.accelerator, self._empty_turn) if in_step else None
        if self.accelerator.num_processes > 1:
            for model in filter(None, (self.model, self.ref_model)):
                always_sees(model)

    def roll_out_greedily(self, rows: Sequence[dict[str, Any]]) -> list[RolloutOutcome]:
        """Roll out once on each row, with the most likely tokens. Training goes on as if there had been none."""
        environments = [SandboxEnvironment(slot=0) for _ in rows]
        try:
            for environment, row in zip(environments, rows, strict=True):
                environment.reset(**row)
            self._begin(environments)
            self._batch_environments = [None] * len(rows)
            prompts = [row["prompt"] for row in rows]
            if any(row["images"] for row in rows):
                prompts = [prepare_multimodal_messages(row["prompt"], images=row["images"]) for row in rows]
            with greedily(self), processed_once(self._processor.image_processor):
                prompt_ids, images, fields = self._tokenize_prompts(prompts)
                ids, logprobs = self._generate_single_turn(prompt_ids, images, fields, 1)
                return self._finish(ids, logprobs).outcomes
        finally:
            for environment in environments:
                environment._end()

    def _begin(self, environments: Sequence[SandboxEnvironment]) -> None:
        self._active = [self._active_rollout(environment, number) for number, environment in enumerate(environments)]
        self._clock = EngineClock()

    def _finish(self, first: list[list[int]], logprobs: list[Any] | None) -> Generated:
        """Finish the rollouts of the batch, from their ``first`` turns on; those of a server are finished."""
        if self._server is None:
            self._run_batch(BatchedTurns(self._next_turns, self._active), self._written(first, logprobs))
        if self._lockstep is not None:
            self._lockstep.finish()
        outcomes = [active.outcome(rollout) for active, rollout in zip(self._active, self._rollouts, strict=True)]
        return Generated(outcomes, self._clock.waiting_share)

    def _run_batch(self, turns: TurnWriter, first: Sequence[GeneratedTurn] | None = None) -> None:
        max_tokens, shows_images = self._settings.max_tokens, self._method.shows_images
        model = ModelInTraining(turns, processor=self._processor, max_tokens=max_tokens, shows_images=shows_images)
        self._rollouts = self._run(model.run_batch(self._active, first))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._runner is not None
        # not the context in which training began: trackers keep there which run they log to
        return self._runner.run(work, context=copy_context())

    @property
    def _seed_parts(self) -> tuple[int, int, int]:
        return self.args.seed, self.state.global_step, self.accelerator.process_index

    def _active_rollout(self, environment: SandboxEnvironment, number: int) -> ActiveRollout:
        environment.special_tokens = self._special_tokens
        sample: Sample = environment._row["asked"].sample
        name = f"{sample.sample_id}/{environment._slot}"
        seed = seed_from(*self._seed_parts, sample.sample_id, number)
        watch = None if self._repetition is None else Repetition(self._repetition)
        return ActiveRollout.of(environment, name, seed=seed, max_rounds=self._settings.max_rounds, repetition=watch)

    def _tokenize_prompts(self, prompts: list[Any]) -> tuple[Any, Any, Any]:
        tokenized = super()._tokenize_prompts(prompts)
        images = tokenized[1] or [[] for _ in prompts]
        for active, prompt, prompt_images in zip(self._active, tokenized[0], images, strict=True):
            active.transcript.prompt, active.transcript.prompt_images = list(prompt), prompt_images
        return tokenized

    def _generate_single_turn(self, *args: Any, **kwargs: Any) -> Any:
        """Write the next turn of ``self._next``, or of all rollouts in TRL's first call; all turns with a server."""
        if self._server is not None:
            return self._by_server(self._server)
        rollouts, self._next = self._next or self._active, []
        watchers = [self._watcher(active) for active in rollouts]
        with self._clock:
            if self.use_vllm:
                self._sync_weights(self.vllm_generation)
                stops, adaptive = [active.protocol.stop[0] for active in rollouts], self._settings.adaptive_temperature
                prompt_ids, images, *_ = args
                ids, logprobs = in_segments(
                    self.vllm_generation, prompt_ids, images, watchers, stops=stops, adaptive=adaptive
                )
            else:
                model = self.accelerator.unwrap_model(self.model_wrapped)
                in_step = self._lockstep is not None
                with watched(model, watchers, adaptive=self._settings.adaptive_temperature, in_step=in_step):
                    ids, logprobs = super()._generate_single_turn(*args, **kwargs)  # type: ignore[no-untyped-call]
                ids = [tokens[: watcher.n_tokens] for tokens, watcher in zip(ids, watchers, strict=True)]
        self._endings = [watcher.ending for watcher in watchers]
        return ids, logprobs

    def _empty_turn(self) -> None:
        watcher = TurnWatcher(self._tokenizer, self._active[0].protocol, n_left=1, ends=frozenset())
        with watched(self.accelerator.unwrap_model(self.model_wrapped), [watcher], adaptive=False, in_step=True):
            super()._generate_single_turn([[self._tokenizer.pad_token_id]], None, {}, 1)  # type: ignore[no-untyped-call]

    def _next_turns(self, rollouts: Sequence[ActiveRollout]) -> list[GeneratedTurn]:
        """Write the turns of these rollouts in one batch, after what the sandbox showed them last."""
        if self._lockstep is not None:
            self._lockstep.begin_turn()
        images = [active.transcript.all_images for active in rollouts]
        flat = [image for rollout_images in images for image in rollout_images]
        fields = dict(self._processor.image_processor(images=flat, return_tensors="pt")) if flat else {}
        self._next = list(rollouts)
        prompts = [active.transcript.prompt + active.transcript.ids for active in rollouts]
        ids, logprobs = self._generate_single_turn(prompts, images, fields, 1, has_tool_images=bool(flat))
        return self._written(ids, logprobs)

    def _written(self, ids: list[list[int]], logprobs: list[Any] | None) -> list[GeneratedTurn]:
        texts = self._tokenizer.batch_decode(ids, skip_special_tokens=True)
        turn_logprobs = logprobs or [None] * len(ids)
        return [GeneratedTurn(*turn) for turn in zip(ids, texts, self._endings, turn_logprobs, strict=True)]

    def _watcher(self, active: ActiveRollout) -> TurnWatcher:
        n_left, ends = self._settings.max_tokens - len(active.transcript.ids), frozenset(self.eos_token_ids)
        protocol, repetition = active.protocol, active.repetition
        return TurnWatcher(
            self._tokenizer, protocol, n_left=n_left, ends=ends, repetition=repetition, on_code=active.begin
        )

    def _by_server(self, server: VllmServer) -> Any:
        tokenizer, adaptive = self._tokenizer, self._settings.adaptive_temperature
        turns = ServerTurns(server, tokenizer=tokenizer, watcher=self._watcher, clock=self._clock, adaptive=adaptive)
        with self._raised_in_all(EngineDown):
            self._sync_weights(server)
            self.accelerator.wait_for_everyone()  # only the first process knows when the weights have arrived
            self._run_batch(turns)
        transcripts = [active.transcript for active in self._active]
        return [transcript.ids for transcript in transcripts], [transcript.logprobs for transcript in transcripts]

    def _sync_weights(self, engine: Any) -> None:
        if self.state.global_step != self._last_loaded_step:
            engine.sync_weights()
            self._last_loaded_step = self.state.global_step

    @contextmanager
    def _raised_in_all(self, kind: type[TrainError]) -> Iterator[None]:
        """Raise an error of any process in all of them: else the others would wait for it for ever."""
        error = None
        try:
            yield
        except kind as raised:
            error = raised
        for raised_anywhere in filter(None, gather_object([error])):
            raise raised_anywhere
