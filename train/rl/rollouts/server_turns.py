"""The next turn of one rollout from a vLLM server, by itself: no rollout waits for another one.

A turn's seed follows from the training's seed, step, prompt, rollout and round, that of a request also from its number
in the turn. So rollouts do not depend on the order in which requests and code end, as far as the engine is
deterministic: vLLM's arithmetic differs with what else is in its batch, unless it runs batch invariant.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from darkroom.pipelines.records.digest import seed_from
from darkroom.train.rl.rollouts.active_rollout import ActiveRollout, EngineClock
from darkroom.train.rl.rollouts.sampling import TurnWatcher
from darkroom.train.rl.rollouts.transcript import GeneratedTurn
from darkroom.train.rl.rollouts.vllm_engine import Logprobs, VllmServer, next_segment, read_segment


class ServerTurns:
    """A ``TurnWriter`` for one batch of rollouts."""

    def __init__(
        self,
        server: VllmServer,
        *,
        tokenizer: Any,
        watcher: Callable[[ActiveRollout], TurnWatcher],
        clock: EngineClock,
        adaptive: bool,
    ) -> None:
        """``watcher`` makes the watcher of a rollout's next turn; ``adaptive``: temperature 0 inside code."""
        self._server, self._tokenizer, self._watcher = server, tokenizer, watcher
        self._clock, self._adaptive = clock, adaptive
        self._features: dict[tuple[str, int], asyncio.Future[Any]] = {}

    def start(self, rollouts: Sequence[ActiveRollout]) -> None:
        """Do nothing: every rollout starts by itself."""

    def end(self) -> None:
        """Do nothing: no rollout waits for another one."""

    async def next_turn(self, active: ActiveRollout, seed: int) -> GeneratedTurn:
        """Request the turn, segment by segment. Raises ``EngineDown``."""
        transcript, watcher = active.transcript, self._watcher(active)
        ids: list[int] = []
        logprobs: Logprobs = []
        with self._clock:
            features = await self._image_features(active)
            n_requests = 0
            while not watcher.ending:
                segment = next_segment(watcher, stop=active.protocol.stop[0], adaptive=self._adaptive)
                tokens, chances = await self._server.generate(
                    [*transcript.prompt, *transcript.ids, *ids],
                    features,
                    segment,
                    n_tokens=watcher.n_left,
                    seed=seed_from(seed, n_requests),
                )
                read, read_logprobs = read_segment(watcher, tokens, chances, greedy=segment.greedy)
                ids += read
                logprobs += read_logprobs
                n_requests += 1
        return GeneratedTurn(ids, self._tokenizer.decode(ids, skip_special_tokens=True), watcher.ending, logprobs)

    async def _image_features(self, active: ActiveRollout) -> Any:
        """The features of all images so far, None without any; a prompt's are sent once for all of its rollouts."""
        images = active.transcript.all_images
        if not images:
            return None
        n_shown = len(active.transcript.images)
        key = (active.task.trajectory_id if n_shown else active.task.sample.sample_id, n_shown)
        if key not in self._features:
            self._features[key] = asyncio.ensure_future(self._server.image_features(images))
        return await asyncio.shield(self._features[key])
