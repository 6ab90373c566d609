"""A verifiers environment of rows that `darkroom environment serve` plays. Runs by itself; nothing is exported for it.

    darkroom environment serve DATASET --method thyme     (where Darkroom is installed)
    export PYTHONPATH=FOLDER DARKROOM_ENVIRONMENT_URL=http://127.0.0.1:8767
    vf-eval darkroom_verifiers -m MODEL --client.base-url URL --no-push

Tasks are the service's rows. The service plays the user: it asks, and answers each turn with what its code showed. Only
the model's turns are sampled nodes of a trace. The reward is the service's. A rollout that is no verdict on the model
(its score is `broken`, or the service answers 503) is an error of its episode.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import verifiers.v1 as vf

URL = os.environ.get("DARKROOM_ENVIRONMENT_URL", "http://127.0.0.1:8767")
TOKEN = os.environ.get("DARKROOM_SERVICE_TOKEN", "")

__all__ = ["DarkroomEnv", "DarkroomTaskset"]


class DarkroomData(vf.TaskData):
    """A row by its sample_id."""

    row: str


class DarkroomTask(vf.Task[DarkroomData]):
    """All behaviour is the environment's."""


class DarkroomTasksetConfig(vf.TasksetConfig):
    """Address of the service, and the protocol's prompt that it asks with."""

    url: str = URL
    mode: str = "free"


class DarkroomTaskset(vf.Taskset[DarkroomTask, DarkroomTasksetConfig]):
    """The rows of the service."""

    def load(self) -> Iterator[DarkroomTask]:
        """A task for each row. Raises ``httpx.HTTPError`` without the service."""
        answer = httpx.get(f"{self.config.url}/rows", headers=_headers(), timeout=60).raise_for_status()
        for row in answer.json()["ids"]:
            yield DarkroomTask(DarkroomData(id=row, name=row, row=row), self.config.task)


class DarkroomEnvConfig(vf.EnvConfig):
    """The player writes text, without tools of its own; it runs where `vf-eval` does."""

    player: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, runtime={"type": "subprocess"})


class DarkroomEnv(vf.Env[DarkroomEnvConfig]):
    """One episode of the service for each task."""

    async def run(self, task: DarkroomTask, agents: Any) -> None:
        """Raises ``ValueError`` for a broken rollout and for a method that compares groups."""
        config = self.taskset.config
        async with httpx.AsyncClient(base_url=config.url, headers=_headers(), timeout=None) as http:
            opening = {"row": task.data.row, "mode": config.mode, "seed": secrets.randbelow(2**31)}
            episode = await _request(http, "POST", "/episodes", opening)
            name = f"/episodes/{episode['episode']}"
            try:
                trace, score = await _played(http, name, _asked(task, episode["messages"]), agents.player)
            finally:
                await _request(http, "DELETE", name)
        if score is None:
            raise ValueError(f"the method of the service at {config.url} compares groups: serve another one")
        if score["reward"] is None:
            raise ValueError(f"a broken rollout, no verdict on the model: {score['broken']}")
        trace.record_reward("reward", score["reward"])
        trace.record_metrics({"correct": score["correct"], "calls": score["calls"]})


async def _played(http: httpx.AsyncClient, name: str, task: DarkroomTask, player: Any) -> tuple[Any, Any]:
    async with player.interaction(task) as interaction:
        segment = await interaction.turn()
        while True:
            # a limit of the player's ended the rollout: so does a turn that was cut off
            turn = {"text": "", "finished": False} if segment.terminated else {"text": segment.last_reply}
            result = await _request(http, "POST", f"{name}/step", turn)
            if result["done"]:
                return interaction.trace, result["score"]
            content = [_part(part, result["images"]) for part in result["parts"]]
            segment = await interaction.turn([{"role": "user", "content": content}])


def _asked(task: DarkroomTask, messages: list[dict[str, Any]]) -> DarkroomTask:
    """The task with the conversation that the service opened."""
    system = [part["text"] for message in messages if message["role"] == "system" for part in message["content"]]
    prompt = [message for message in messages if message["role"] != "system"]
    data = DarkroomData.model_validate({**task.data.model_dump(), "prompt": prompt})
    return task.with_data(system_prompt="\n\n".join(system) or None, prompt=data.prompt)


def _part(part: Mapping[str, Any], images: list[str]) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{images[part['image']]}"}}


async def _request(http: httpx.AsyncClient, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
    """The service's answer, None without one; waits while it has no room. Raises ``httpx.HTTPStatusError``."""
    while (answer := await http.request(method, path, json=body)).status_code == httpx.codes.TOO_MANY_REQUESTS:
        await asyncio.sleep(float(answer.headers.get("Retry-After", 1)))
    if answer.is_error:
        raise httpx.HTTPStatusError(f"{method} {path}: {answer.text}", request=answer.request, response=answer)
    return answer.json() if answer.content else None


def _headers() -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN}"} if TOKEN else {}
