"""OpenRLHF's agent for rows that `darkroom environment serve` plays. Runs by itself: all comes over HTTP.

    darkroom environment serve DATASET --method thyme     (where Darkroom is installed)
    export DARKROOM_ENVIRONMENT_URL=http://127.0.0.1:8767
    python -m openrlhf.cli.train_ppo_ray … --train.agent_func_path darkroom_openrlhf.py --data.label_key sample_id

The label names the row; its conversation and images are the service's. A turn goes to the service as text; what the
service shows becomes a user turn with its images, of which no token is trained. The reward is the service's. A rollout
that is no verdict on the model (its score is `broken`) starts anew; after three, its reward is 0.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import functools
import io
import os
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import torch
from openrlhf.utils.agent import AgentInstanceBase, MultiTurnAgentExecutor
from PIL import Image

URL = os.environ.get("DARKROOM_ENVIRONMENT_URL", "http://127.0.0.1:8767")
TOKEN = os.environ.get("DARKROOM_SERVICE_TOKEN", "")
MOST_ATTEMPTS = 3
"""Rollouts that may break, one after the other, before one counts as worth nothing."""
_TURN = "TURN"


class DarkroomAgent(AgentInstanceBase):
    """One episode of the service; ``score`` is there when it is over."""

    def __init__(self, episode: Mapping[str, Any], processor: Any) -> None:
        self.name, self.stop = f"/episodes/{episode['episode']}", list(episode["stop"])
        self.score: Mapping[str, Any] | None = None
        self.done = False
        self._processor = processor
        self._end = getattr(processor, "tokenizer", processor).eos_token

    async def step(self, state_dict: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Sends a turn; what it led to, as the text between it and the next turn; rewards come in the end."""
        text = state_dict["action_text"]
        ended = text.endswith(self._end)
        text = text.removesuffix(self._end)
        result = await self.send(text, finished=ended or text.endswith(tuple(self.stop)))
        feedback, images = "", []
        if not self.done:
            content = [_part(part, result["images"]) for part in result["parts"]]
            images = [part.pop("image") for part in content if part["type"] == "image"]
            turns = [_turn("user", ""), _turn("assistant", _TURN), {"role": "user", "content": content}]
            feedback = self.rendered(turns).partition(_TURN)[2]
            feedback = feedback.removeprefix(self._end) if ended else feedback
        reply = {"environment_feedback": feedback, "environment_images": images, "done": self.done}
        return {"rewards": torch.tensor(0.0), "scores": torch.tensor(0.0), **reply}

    async def send(self, text: str, *, finished: bool) -> dict[str, Any]:
        """Steps the episode."""
        result: dict[str, Any] = await _request("POST", f"{self.name}/step", {"text": text, "finished": finished})
        self.done, self.score = result["done"], result.get("score")
        return result

    def rendered(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """A conversation as the model reads it, up to its next turn."""
        text: str = self._processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return text


class AgentExecutor(MultiTurnAgentExecutor):
    """Plays one row a call; OpenRLHF loads the class by this name."""

    def __init__(self) -> None:
        super().__init__(DarkroomAgent)

    async def execute(
        self,
        prompt: str,
        label: str,
        sampling_params: Any,
        max_length: int,
        hf_tokenizer: Any,
        llm_engine: Any,
        images: Any = None,
    ) -> dict[str, Any]:
        """``label`` is the row's sample_id; ``prompt`` and ``images`` are the service's instead.

        Raises ``ValueError`` for a method that compares groups, ``httpx.HTTPStatusError`` where the service refuses,
        503 included: then it can execute or judge nothing.
        """
        for _ in range(MOST_ATTEMPTS):
            played, score = await self._played(label, sampling_params, max_length, hf_tokenizer, llm_engine)
            if score["reward"] is not None:
                break
        reward = score["reward"] or 0.0
        logs = {"correct": score["correct"] or 0.0, "calls": score["calls"], "broken": float(score["reward"] is None)}
        return {**played, "label": label, "reward": reward, "scores": reward, "extra_logs": logs}

    async def _played(
        self, row: str, sampling_params: Any, max_length: int, processor: Any, engine: Any
    ) -> tuple[dict[str, Any], Mapping[str, Any]]:
        episode = await _request("POST", "/episodes", {"row": row, "seed": secrets.randbelow(2**31)})
        agent, player = DarkroomAgent(episode, processor), copy.copy(self)
        player.agent_instance_cls = lambda: agent
        sampling_params = copy.deepcopy(sampling_params)
        sampling_params.stop, sampling_params.include_stop_str_in_output = agent.stop, True
        try:
            messages = [{**message, "content": list(map(_part, message["content"]))} for message in episode["messages"]]
            parts = [part for message in messages for part in message["content"]]
            images = [part.pop("image") for part in parts if part["type"] == "image"]
            prompt, play = agent.rendered(messages), super(AgentExecutor, player).execute
            played = await play(prompt, row, sampling_params, max_length, processor, engine, images)
            if not agent.done:  # no room for another turn
                await agent.send("", finished=False)
        finally:
            await _request("DELETE", agent.name)
        if agent.score is None:
            raise ValueError(f"the method of the service at {URL} compares groups: serve another one")
        return played, agent.score


def _turn(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _part(part: Mapping[str, Any], images: Sequence[str] = ()) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    data = part["image_url"]["url"].partition(",")[2] if "image_url" in part else images[part["image"]]
    return {"type": "image", "image": Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")}


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
