"""ms-swift's multi-turn scheduler for rows that Darkroom exported. Runs by itself: all else comes over HTTP.

    darkroom environment serve DATASET --method thyme     (where Darkroom is installed)
    export DARKROOM_ENVIRONMENT_URL=http://127.0.0.1:8767
    swift rlhf --rlhf_type grpo … --external_plugins FOLDER/darkroom_ms_swift.py --multi_turn_scheduler darkroom
        --use_gym_env true --stop_words '</code>'

Rows are those of the layout `ms_swift_grpo`. A turn goes to the service as text; what the service shows becomes a user
turn with its images. The reward is the service's, as ms-swift's reward of an environment. A rollout that is no verdict
on the model (its score is `broken`) has the reward 0: ms-swift cannot leave a rollout out of its group.
"""

from __future__ import annotations

import asyncio
import functools
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from swift.rollout import MultiTurnScheduler, multi_turns

URL = os.environ.get("DARKROOM_ENVIRONMENT_URL", "http://127.0.0.1:8767")
TOKEN = os.environ.get("DARKROOM_SERVICE_TOKEN", "")


@dataclass
class OpenEpisode:
    """One rollout's; ``result`` is what its last turn led to."""

    name: str
    result: Mapping[str, Any]


class DarkroomScheduler(MultiTurnScheduler):
    """Plays rows in ms-swift's server and in its trainer's own process."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._episodes: dict[str, OpenEpisode] = {}

    async def on_trajectory_start(self, requests: Sequence[Any]) -> None:
        """Opens an episode for every row. Raises ``ValueError`` for a service of another protocol."""
        await asyncio.gather(*map(self._open, requests))

    async def _open(self, request: Any) -> None:
        row = request.data_dict
        opening = {"row": row["sample_id"], "mode": row.get("mode") or "free", "seed": secrets.randbelow(2**31)}
        episode = await _request("POST", "/episodes", opening)
        self._episodes[request.uuid] = OpenEpisode(f"/episodes/{episode['episode']}", {})
        if episode["protocol"] != row["protocol"]:
            raise ValueError(
                f"the row is in the protocol {row['protocol']} and the service at {URL} plays {episode['protocol']}: "
                f"start it with --protocol {row['protocol']}"
            )

    async def on_turn_end(self, infer_request: Any, response_choice: Any, current_turn: int) -> dict[str, Any]:
        """Sends the turn. Raises ``httpx.HTTPStatusError`` where the service refuses, 503 included: then it can execute
        or judge nothing; ``ValueError`` for a method that compares groups."""
        episode = self._episodes[infer_request.uuid]
        turn = {"text": response_choice.message.content, "finished": response_choice.finish_reason != "length"}
        episode.result = await _request("POST", f"{episode.name}/step", turn)
        if self.max_turns and current_turn >= self.max_turns and not episode.result["done"]:
            episode.result = await _request("POST", f"{episode.name}/step", {"text": "", "finished": False})
        if not episode.result["done"]:
            return {"done": False}
        del self._episodes[infer_request.uuid]
        await _request("DELETE", episode.name)
        score = episode.result["score"]
        if score is None:
            raise ValueError(f"the method of the service at {URL} compares groups: serve another one")
        about = {"correct": score["correct"], "calls": score["calls"], "broken": score["broken"]}
        infos = {"total_reward": score["reward"] or 0.0, "images": infer_request.images, **about}
        return {"done": True, "rollout_infos": infos}

    def step(self, infer_request: Any, response_choice: Any, current_turn: int) -> dict[str, Any]:
        """Adds what the turn led to.

        Without a loss on the turn's last token there is none on the end of turn either, which the model did not write:
        ms-swift trains one that follows a trained token, and has no sampled probability for it.
        """
        result = self._episodes[infer_request.uuid].result
        content = "".join(part.get("text", "<image>") for part in result["parts"])
        infer_request.messages.append({"role": "user", "content": content})
        files = [result["images"][part["image"]] for part in result["parts"] if part["type"] == "image"]
        infer_request.images = [*infer_request.images, *files]
        mask = [1] * (len(response_choice.token_ids) - 1) + [0]
        ids, mask = self.get_response_token_data(infer_request, response_choice, response_loss_mask=mask)
        logprobs = self._extract_logprobs_from_choice(response_choice)[:-1]
        tokens = {"response_token_ids": ids, "response_loss_mask": mask, "rollout_logprobs": logprobs}
        return {"infer_request": infer_request, **tokens}


multi_turns["darkroom"] = DarkroomScheduler


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
