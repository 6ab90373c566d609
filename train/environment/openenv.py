"""OpenEnv's interface: a WebSocket (``/ws``) is a session, an episode after the other; ``/schema`` says what it takes.

{"type": "reset", "data": {"row": 0, "seed": 0}}  ->  {"type": "observation", "data": {"observation", "reward", "done"}}
{"type": "step", "data": {"text": …}}             ->  the same
{"type": "state"}                                 ->  {"type": "state", "data": {"episode_id", "step_count"}}
{"type": "close"}

``observation`` is what the routes of HTTP answer: the episode, then parts and images, in the end the score.

Checked against openenv-core 0.3.0, whose clients bring no token: where the service wants one, it takes none of them.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from fastapi import FastAPI, WebSocket
from pydantic import BaseModel, ValidationError
from starlette.websockets import WebSocketDisconnect

from darkroom.pipelines.services.errors import ServiceError, invalid
from darkroom.train.environment.requests import ResetRequest, StepRequest

POLICY_VIOLATION = 1008
"""Of WebSockets' closing codes."""
Reset = Callable[[ResetRequest], Awaitable[dict[str, Any]]]
Step = Callable[[str, StepRequest], Awaitable[dict[str, Any]]]
Close = Callable[[str], Awaitable[None]]


class OpenEnvMessage(BaseModel):
    """What a client sends."""

    type: Literal["reset", "step", "state", "close"]
    data: dict[str, Any] = {}


class OpenEnvSession:
    """What one client plays: the routes of HTTP for one episode at a time."""

    def __init__(self, reset: Reset, step: Step, close: Close) -> None:
        self._reset, self._step, self._close = reset, step, close
        self._episode: str | None = None
        self._n_steps = 0

    async def answer(self, text: str | bytes) -> dict[str, Any] | None:
        """The response, None to the last message. Raises ``ServiceError`` and pydantic's ``ValidationError``."""
        message = OpenEnvMessage.model_validate_json(text)
        match message.type:
            case "reset":
                await self.end()
                opening = await self._reset(ResetRequest.model_validate({"row": 0, **message.data}))
                self._episode, self._n_steps = opening["episode"], 0
                return _observation(opening, None, done=False)
            case "step":
                if self._episode is None:
                    raise ServiceError("invalid_request", "no episode is open: reset first")
                request = StepRequest.model_validate(message.data)
                result = await self._step(self._episode, request)
                self._n_steps += 1
                score = result.get("score") or {}
                return _observation(result, score.get("reward"), done=result["done"])
            case "state":
                return {"type": "state", "data": {"episode_id": self._episode, "step_count": self._n_steps}}
            case "close":
                return None

    async def end(self) -> None:
        """Ends the episode that is open, if any."""
        episode, self._episode = self._episode, None
        if episode is not None:
            await self._close(episode)


def add_openenv(app: FastAPI, reset: Reset, step: Step, close: Close) -> None:
    """Adds the interface to ``app``, over its own routes; ``close`` ends an episode, which may have ended itself."""

    @app.get("/schema")
    async def schema() -> dict[str, Any]:
        return {"action": StepRequest.model_json_schema(), "observation": {}, "state": {}}

    @app.websocket("/ws")
    async def session(socket: WebSocket) -> None:
        if "origin" in socket.headers:  # a page in a browser, which no rule of same origins holds back here
            await socket.close(POLICY_VIOLATION)
            return
        await socket.accept()
        played = OpenEnvSession(reset, step, close)
        try:
            while (answer := await _answered(played, await _received(socket))) is not None:
                await socket.send_json(answer)
        except WebSocketDisconnect:
            return  # the client has gone, which ends its session
        finally:
            await played.end()


async def _received(socket: WebSocket) -> str | bytes:
    """The next message, as text or as bytes, which may be JSON as well. Raises ``WebSocketDisconnect``."""
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message["code"], message.get("reason"))
    return message.get("text") or message.get("bytes") or ""


async def _answered(session: OpenEnvSession, text: str | bytes) -> dict[str, Any] | None:
    try:
        return await session.answer(text)
    except ValidationError as error:
        return _error(invalid(error))
    except ServiceError as error:
        return _error(error)


def _observation(observation: dict[str, Any], reward: float | None, *, done: bool) -> dict[str, Any]:
    return {"type": "observation", "data": {"observation": observation, "reward": reward, "done": done}}


def _error(error: ServiceError) -> dict[str, Any]:
    return {"type": "error", "data": {"message": str(error), "code": error.kind}}
