"""The environment's HTTP application, with an OpenAPI page (``/docs``).

OpenEnv's interface: a WebSocket (``/ws``) is a session, an episode after the other; ``/schema`` describes its messages.

{"type": "reset", "data": {"row": 0, "seed": 0}}  ->  {"type": "observation", "data": {"observation", "reward", "done"}}
{"type": "step", "data": {"text": …}}             ->  the same
{"type": "state"}                                 ->  {"type": "state", "data": {"episode_id", "step_count"}}
{"type": "close"}

``observation`` is the response of the routes of HTTP: the episode, then parts and images, in the end the score. Checked
against openenv-core 0.3.0, whose clients bring no token: where the service wants one, it rejects all of them.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Literal

from fastapi import FastAPI, Request, Response, WebSocket
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, Field, StrictInt, ValidationError
from starlette.types import ASGIApp
from starlette.websockets import WebSocketDisconnect

from darkroom.adapters import ADAPTERS, adapter_files
from darkroom.adapters.reward import by_toolkit
from darkroom.pipelines.inspection.pages import data_url
from darkroom.pipelines.models.policies.images import MEDIA_TYPES
from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.records import Grader
from darkroom.pipelines.services import ServiceError, invalid
from darkroom.pipelines.services.files import WholeText, encoded
from darkroom.pipelines.services.listening import SMALL_MB, check_parts, guarded, speak_json
from darkroom.train.environment.episodes import Episodes


class ResetRequest(BaseModel, extra="forbid"):
    """A row and its prompt."""

    row: StrictInt | str = Field(description="Its number, from 0 on, or its sample_id.")
    mode: str = Field(default="free", description="The protocol's prompt: free, forced, forbidden, no_libraries.")
    seed: int = Field(default=0, ge=0, lt=2**31, description="Of the sandbox; each rollout its own.")


class StepRequest(BaseModel, extra="forbid"):
    """The model's next turn."""

    text: WholeText
    finished: bool = Field(default=True, description="False: a token limit cut the turn off.")


class ScoreRequest(BaseModel, extra="forbid"):
    """Finished episodes of one row."""

    episodes: list[str] = Field(min_length=1, max_length=1024)


class GradedTruth(BaseModel, extra="forbid"):
    """The truth that a rule compares an answer with, as exports have it."""

    question: str
    answer: str
    choices: list[str]
    grader: Grader


class GradeRequest(BaseModel, extra="forbid"):
    """A final answer and the row's truth."""

    answer: str
    truth: GradedTruth


Route = Callable[..., Awaitable[Any]]


class OpenEnvMessage(BaseModel):
    """A message of a client."""

    type: Literal["reset", "step", "state", "close"]
    data: dict[str, Any] = {}


class OpenEnvSession:
    """The session of one client: the routes of HTTP for one episode at a time."""

    def __init__(self, reset: Route, step: Route, close: Route) -> None:
        self._reset, self._step, self._close = reset, step, close
        self._episode: str | None = None
        self._n_steps = 0

    async def answer(self, text: str | bytes) -> dict[str, Any] | None:
        """Respond to a message; None to the last. Raises ``ServiceError`` and pydantic's ``ValidationError``."""
        await asyncio.to_thread(check_parts, text.encode() if isinstance(text, str) else text)
        message = OpenEnvMessage.model_validate_json(text)
        match message.type:
            case "reset":
                await self.end()
                opening = await self._reset(ResetRequest.model_validate({"row": 0, **message.data}))
                self._episode, self._n_steps = opening["episode"], 0
                return _observation(opening, None, is_done=False)
            case "step":
                if self._episode is None:
                    raise ServiceError("invalid_request", "no episode is open: reset first")
                result = await self._step(self._episode, StepRequest.model_validate(message.data))
                self._n_steps += 1
                return _observation(result, (result.get("score") or {}).get("reward"), is_done=result["done"])
            case "state":
                return {"type": "state", "data": {"episode_id": self._episode, "step_count": self._n_steps}}
            case "close":
                await self.end()
                return None

    async def end(self) -> None:
        episode, self._episode = self._episode, None
        if episode is not None:
            await self._close(episode)


def add_openenv(app: FastAPI, reset: Route, step: Route, close: Route) -> None:
    """Add the interface to ``app``, over its own routes; ``close`` ends an episode, which may have ended itself."""

    @app.get("/schema")
    async def schema() -> dict[str, Any]:
        return {"action": StepRequest.model_json_schema(), "observation": {}, "state": {}}

    @app.websocket("/ws")
    async def session(socket: WebSocket) -> None:
        await socket.accept()
        client = OpenEnvSession(reset, step, close)
        try:
            while (message := await socket.receive())["type"] == "websocket.receive":
                try:
                    answer = await client.answer(message.get("text") or message.get("bytes") or "")
                except (ValidationError, ServiceError) as raised:
                    error = invalid(raised) if isinstance(raised, ValidationError) else raised
                    answer = {"type": "error", "data": {"message": str(error), "code": error.kind}}
                if answer is None:
                    return await socket.close()
                await socket.send_json(answer)
        except WebSocketDisconnect:
            return  # the client has gone, which ends its session
        finally:
            await client.end()


def _observation(observation: dict[str, Any], reward: float | None, *, is_done: bool) -> dict[str, Any]:
    return {"type": "observation", "data": {"observation": observation, "reward": reward, "done": is_done}}


def application(episodes: Episodes, *, version: str, host: str, token: str, compression: int) -> ASGIApp:
    """Build the application, guarded as the sandbox service. ``compression``: of the images' PNG."""
    running = episodes.registry.running
    app = FastAPI(title="Darkroom: an environment", version=version, lifespan=lambda _: running())
    speak_json(app)
    _routes(app, episodes, version, compression)
    return guarded(app, host=host, token=token, most_mb=SMALL_MB)


def _routes(app: FastAPI, episodes: Episodes, version: str, compression: int) -> None:
    settings = episodes.settings
    facts = {"method": settings.method, "protocol": settings.protocol, "max_rounds": settings.max_rounds}
    listed = json.dumps({"rows": len(episodes.rows), "ids": list(episodes.rows["sample_id"]), **facts}).encode()

    @app.get("/health")
    async def health() -> dict[str, Any]:
        return {"version": version, "rows": len(episodes.rows), "episodes": len(episodes.registry)}

    @app.get("/rows")
    async def rows() -> Response:
        return Response(listed, media_type="application/json")

    @app.post("/episodes", status_code=201)
    async def reset(request: ResetRequest) -> dict[str, Any]:
        name = await episodes.reset(request.row, mode=request.mode, seed=request.seed)
        row = episodes.registry.get(name).row
        about = {"episode": name, "sample_id": row["sample_id"], "protocol": row["protocol"]}
        limits = {"stop": list(PROTOCOLS[row["protocol"]].stop), "max_rounds": settings.max_rounds}
        return {**about, **limits, "messages": await asyncio.to_thread(_messages, row)}

    async def step(name: str, request: StepRequest, add: Callable[..., list[str]]) -> dict[str, Any]:
        result = await episodes.step(name, request.text, finished=request.finished)
        if result.done:
            alone = (await episodes.score([name]))[0] if episodes.scores_alone else None
            return {"done": True, "score": alone}
        parts = [part.model_dump(exclude_none=True) for part in result.parts]
        images = await asyncio.to_thread(add, result.images, compression=compression)
        return {"done": False, "parts": parts, "images": images, "status": result.status}

    @app.post("/episodes/{name}/step")
    async def step_over_http(name: str, request: StepRequest, http: Request) -> dict[str, Any]:
        return await step(name, request, http.scope["images"].add)

    @app.post("/score")
    async def score(request: ScoreRequest) -> dict[str, Any]:
        return {"scores": await episodes.score(request.episodes)}

    @app.post("/grade")
    async def grade(request: GradeRequest) -> dict[str, bool]:
        return {"right": await asyncio.to_thread(by_toolkit, request.answer, request.truth.model_dump())}

    @app.get("/adapters/{name}", response_class=PlainTextResponse)
    async def adapter(name: str) -> str:
        if name not in ADAPTERS:
            raise ServiceError("invalid_request", f"no adapter {name[:80]!r}; there are {', '.join(ADAPTERS)}")
        return adapter_files(name)[name]

    @app.delete("/episodes/{name}", status_code=204)
    async def close(name: str) -> None:
        episodes.registry.get(name)
        await episodes.registry.close(name)

    add_openenv(app, reset, partial(step, add=encoded), episodes.registry.close)


def _messages(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The conversation before the first turn as OpenAI's messages, images as they are stored."""
    files = zip(row["image_files"], (image.format for image in row["asked"].sample.images), strict=False)

    def part_of(part: Mapping[str, Any]) -> dict[str, Any]:
        if part["type"] != "image":
            return {"type": "text", "text": part["text"]}
        data, format = next(files)
        return {"type": "image_url", "image_url": {"url": data_url(data, MEDIA_TYPES.get(format, "image/png"))}}

    return [
        {"role": message["role"], "content": [part_of(part) for part in message["content"]]}
        for message in row["prompt"]
    ]
