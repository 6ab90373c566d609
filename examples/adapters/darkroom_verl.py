"""verl's agent loop for rows that Darkroom exported. Runs by itself: observations and rewards come over HTTP.

    darkroom environment serve DATASET --method thyme     (where Darkroom is installed)
    export PYTHONPATH=FOLDER DARKROOM_ENVIRONMENT_URL=http://127.0.0.1:8767
    python -m verl.trainer.main_ppo … actor_rollout_ref.rollout.agent.agent_loop_config_path=FOLDER/darkroom_verl.yaml

A turn of the model goes to the service as text; what the service shows becomes a user turn with its images. The mask is
1 for tokens that the model sampled and 0 for all others; sampled tokens are never encoded again. The reward is the
service's, so verl's own reward function is not called. A rollout that is no verdict on the model (its score is
`broken`) starts anew with another seed; after three, nothing of it is trained and its reward is 0.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx
from PIL import Image
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput
from verl.utils.profiler import simple_timer

URL = os.environ.get("DARKROOM_ENVIRONMENT_URL", "http://127.0.0.1:8767")
TOKEN = os.environ.get("DARKROOM_SERVICE_TOKEN", "")
MOST_ATTEMPTS = 3
"""Rollouts that may break, one after the other, before nothing is trained."""
SEED_STRIDE = 1_000_003
"""Between the seeds of a rollout's attempts, more than there are rollouts in a step."""
KEEP_STOP: Mapping[str, Mapping[str, Any]] = {
    "vllm": {"include_stop_str_in_output": True},
    "sglang": {"no_stop_trim": True},
}
"""By engine: what keeps the stop string in a turn, whose tokens are trained."""


@dataclass
class RolloutTokens:
    """A rollout as tokens; ``mask`` and ``logprobs`` are of those after the prompt."""

    messages: list[dict[str, Any]]
    images: list[Image.Image]
    ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


class DarkroomAgentLoop(AgentLoopBase):
    """Plays one row; ``darkroom_verl.yaml`` gives it the names that rows ask for."""

    async def run(self, sampling_params: dict[str, Any], priority: int = 0, **row: Any) -> AgentLoopOutput:
        """``row`` has ``extra_info`` as exported; ``priority`` is the rollout's number in its step.

        Raises ``ValueError`` for a service of another protocol or method, ``httpx.HTTPStatusError`` where the service
        refuses, 503 included: then it can execute or judge nothing.
        """
        for attempt in range(MOST_ATTEMPTS):
            seed = (int(priority) + attempt * SEED_STRIDE) % 2**31
            rollout, score = await self._played(row["extra_info"], seed, sampling_params)
            if score["reward"] is not None:
                break
        else:
            rollout.mask = [0] * len(rollout.mask)
        return self._output(rollout, score)

    async def _played(
        self, info: Mapping[str, Any], seed: int, sampling_params: dict[str, Any]
    ) -> tuple[RolloutTokens, dict[str, Any]]:
        opening = {"row": info["sample_id"], "mode": info.get("mode") or "free", "seed": seed}
        episode = await _request("POST", "/episodes", opening)
        name = f"/episodes/{episode['episode']}"
        try:
            if episode["protocol"] != info["protocol"]:
                raise ValueError(
                    f"the row is in the protocol {info['protocol']} and the service at {URL} plays "
                    f"{episode['protocol']}: start it with --protocol {info['protocol']}"
                )
            rollout = await self._opened(episode["messages"])
            engine = KEEP_STOP.get(self.rollout_config.name, {})
            sampling_params = {**sampling_params, "stop": episode["stop"], **engine}
            score = await self._turns(name, rollout, sampling_params)
        finally:
            await _request("DELETE", name)
        if score is None:
            raise ValueError(f"the method of the service at {URL} compares groups, which verl's loop does not have")
        return rollout, score

    async def _opened(self, opening: list[dict[str, Any]]) -> RolloutTokens:
        images: list[Image.Image] = []
        messages = [
            {"role": message["role"], "content": [_shown(part, images) for part in message["content"]]}
            for message in opening
        ]
        self._assert_mm_supported(bool(images))
        rollout = RolloutTokens(messages, images)
        rollout.ids = await self.ct_build_initial_tokens(messages, images=images or None)
        return rollout

    async def _turns(self, name: str, rollout: RolloutTokens, sampling_params: dict[str, Any]) -> dict[str, Any] | None:
        """The score; None of a method that compares groups."""
        request_id, fits = uuid4().hex, True
        while True:
            turn = await self._write(rollout, sampling_params, request_id) if fits else ("", False)
            with simple_timer("tool_calls", rollout.metrics):
                result = await _request("POST", f"{name}/step", {"text": turn[0], "finished": turn[1]})
            if result["done"]:
                score: dict[str, Any] | None = result["score"]
                return score
            fits = await self._observe(rollout, result)

    async def _write(
        self, rollout: RolloutTokens, sampling_params: dict[str, Any], request_id: str
    ) -> tuple[str, bool]:
        """The model's next turn, and whether it ended by itself."""
        room = self.rollout_config.response_length - len(rollout.mask)
        with simple_timer("generate_sequences", rollout.metrics):
            turn = await self.server_manager.generate(
                request_id=request_id,
                prompt_ids=rollout.ids,
                sampling_params={**sampling_params, "max_tokens": room},
                image_data=rollout.images or None,
            )
        if rollout.logprobs is None and turn.log_probs:
            rollout.logprobs = [0.0] * len(rollout.mask)
        merged, rollout.mask, rollout.logprobs = await self.ct_merge_assistant_token(
            rollout.ids, turn.token_ids, rollout.mask, rollout.logprobs, assistant_logprobs=turn.log_probs or None
        )
        rollout.ids = merged.token_ids
        latest = turn.extra_fields
        rollout.extra = {**latest, **rollout.extra, "max_global_steps": latest.get("max_global_steps")}
        text = self.tokenizer.decode(turn.token_ids, skip_special_tokens=True)
        rollout.messages.append({"role": "assistant", "content": text})
        return text, len(turn.token_ids) < room or turn.token_ids[-1:] == [self.tokenizer.eos_token_id]

    async def _observe(self, rollout: RolloutTokens, result: Mapping[str, Any]) -> bool:
        """Adds an observation; False, and nothing is added, where no token would be left for a turn after it."""
        images: list[Image.Image] = []
        files = [f"data:image/png;base64,{data}" for data in result["images"]]
        content = [_shown(part, images, files) for part in result["parts"]]
        self._assert_mm_supported(bool(images))
        messages = [*rollout.messages, {"role": "user", "content": content}]
        ids, mask, logprobs = list(rollout.ids), list(rollout.mask), rollout.logprobs
        if ids[-1] != self.tokenizer.eos_token_id:  # a stop string ended the turn, not the model
            ids.append(self.tokenizer.eos_token_id)
            mask.append(0)
            logprobs = None if logprobs is None else [*logprobs, 0.0]
        merged, mask, logprobs = await self.ct_merge_context_msg(rollout.messages, messages, ids, mask, logprobs)
        if len(mask) >= self.rollout_config.response_length:
            return False
        rollout.messages, rollout.ids, rollout.mask, rollout.logprobs = messages, merged.token_ids, mask, logprobs
        rollout.images += images
        return True

    def _output(self, rollout: RolloutTokens, score: Mapping[str, Any]) -> AgentLoopOutput:
        n_prompt = len(rollout.ids) - len(rollout.mask)
        about = {"acc": score["correct"] or 0.0, "calls": score["calls"], "broken": score["reward"] is None}
        return AgentLoopOutput(
            prompt_ids=rollout.ids[:n_prompt],
            response_ids=rollout.ids[n_prompt:],
            response_mask=rollout.mask,
            response_logprobs=rollout.logprobs,
            multi_modal_data={"images": rollout.images} if rollout.images else {},
            reward_score=score["reward"] or 0.0,
            num_turns=sum(message["role"] != "system" for message in rollout.messages),
            metrics=rollout.metrics,
            extra_fields={**rollout.extra, "turn_scores": [], "tool_rewards": [], "reward_extra_info": about},
        )


def _shown(part: Mapping[str, Any], images: list[Image.Image], files: list[str] | None = None) -> dict[str, Any]:
    """A part as chat templates read it. Its image, a data URL or the number of one in ``files``, joins ``images``."""
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    url = part["image_url"]["url"] if files is None else files[part["image"]]
    images.append(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB"))
    return {"type": "image", "image": images[-1]}


async def _request(method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
    """The service's answer, None without one; waits while it has no room. Raises ``httpx.HTTPStatusError``."""
    http = _client(asyncio.get_running_loop())
    while (answer := await http.request(method, path, json=body)).status_code == httpx.codes.TOO_MANY_REQUESTS:
        await asyncio.sleep(float(answer.headers.get("Retry-After", 1)))
    if answer.is_error:
        raise httpx.HTTPStatusError(f"{method} {URL}{path}: {answer.text}", request=answer.request, response=answer)
    return answer.json() if answer.content else None


@functools.lru_cache(maxsize=1)
def _client(_: asyncio.AbstractEventLoop) -> httpx.AsyncClient:
    """One for each event loop, which its connections belong to."""
    headers = {"Authorization": f"Bearer {TOKEN}"} if TOKEN else {}
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
    return httpx.AsyncClient(base_url=URL, headers=headers, limits=limits, timeout=None)
