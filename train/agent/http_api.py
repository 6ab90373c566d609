"""The agent's HTTP application, as OpenAI's chat completions.

POST /v1/chat/completions    the answer is the content; ``darkroom`` beside it is the trajectory
GET  /v1/models              the one model
GET  /trajectories/ID        an answer as a page; /images/SHA256 its images
GET  /health
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse
from starlette.types import ASGIApp

from darkroom.pipelines.models.policies.images import MEDIA_TYPES
from darkroom.pipelines.records import Sample, Usage
from darkroom.pipelines.services.errors import ServiceError
from darkroom.pipelines.services.listening import guarded, speak_json
from darkroom.pipelines.storage.ledger import all_finished
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.train.agent.answers import Agent, Answer
from darkroom.train.agent.conversations import ChatRequest, question_of
from darkroom.train.agent.settings import AgentSettings

ALIVE_SECONDS = 10.0
"""Between two comments of a stream whose answer is not there yet: else clients and proxies give up."""


def application(
    settings: AgentSettings, workspace: Workspace, *, version: str, host: str, token: str, most_mb: int
) -> ASGIApp:
    """The application; what guards it is as for the sandbox service."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with Agent.open(settings, workspace) as app.state.agent:
            yield

    app = FastAPI(title="Darkroom: an agent", version=version, lifespan=lifespan, max_body_size=most_mb << 20)
    speak_json(app)
    _routes(app, version)
    return guarded(app, host=host, token=token)


def _routes(app: FastAPI, version: str) -> None:
    def agent() -> Agent:
        return cast(Agent, app.state.agent)

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"version": version, "model": agent().name}

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": agent().name, "object": "model", "owned_by": "darkroom"}]}

    @app.post("/v1/chat/completions")
    async def chat_completions(request: ChatRequest) -> Response:
        sample = await asyncio.to_thread(question_of, request, agent().images)
        answers = _answers(agent(), request, sample)
        if request.stream:
            events = _events(agent().name, request, asyncio.ensure_future(answers))
            return StreamingResponse(events, media_type="text/event-stream")
        return JSONResponse(_completion(agent().name, await answers))

    @app.get("/trajectories/{name}")
    async def page(name: str) -> HTMLResponse:
        return HTMLResponse(await agent().page(name))

    @app.get("/images/{sha256}")
    async def image(sha256: str) -> Response:
        ref = agent().image(sha256)
        data = await asyncio.to_thread(agent().images.read, ref)
        return Response(data, media_type=MEDIA_TYPES.get(ref.format, "image/png"))


async def _answers(agent: Agent, request: ChatRequest, sample: Sample) -> list[Answer]:
    return await all_finished(*(agent.answer(sample, number, request.seed) for number in range(request.n or 1)))


def _completion(model: str, answers: Sequence[Answer]) -> dict[str, Any]:
    return {
        **_head(model, answers[0].trajectory.trajectory_id, "chat.completion"),
        "choices": [
            {
                "index": index,
                "message": {"role": "assistant", "content": answer.rollout.answer, "darkroom": answer.as_json()},
                "finish_reason": "stop",
            }
            for index, answer in enumerate(answers)
        ],
        "usage": _usage(answers),
    }


def _head(model: str, name: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{name[:24]}", "object": kind, "created": int(time.time()), "model": model}


def _usage(answers: Sequence[Answer]) -> dict[str, int]:
    total = sum((answer.rollout.usage for answer in answers), Usage())
    prompt, completion = total.prompt_tokens, total.completion_tokens
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


async def _events(model: str, request: ChatRequest, answers: "asyncio.Future[list[Answer]]") -> AsyncIterator[str]:
    """The answers as one piece each, when they are there."""
    try:
        while not (await asyncio.wait({answers}, timeout=ALIVE_SECONDS))[0]:
            yield ": an answer is being worked on\n\n"
        made = await answers
    except ServiceError as error:
        yield _event(error.body)
        return
    finally:
        answers.cancel()  # the client has gone
    head = _head(model, made[0].trajectory.trajectory_id, "chat.completion.chunk")
    for index, answer in enumerate(made):
        delta = {"role": "assistant", "content": answer.rollout.answer, "darkroom": answer.as_json()}
        yield _event({**head, "choices": [{"index": index, "delta": delta, "finish_reason": None}]})
        yield _event({**head, "choices": [{"index": index, "delta": {}, "finish_reason": "stop"}]})
    if request.stream_options is not None and request.stream_options.include_usage:
        yield _event({**head, "choices": [], "usage": _usage(made)})
    yield "data: [DONE]\n\n"


def _event(content: dict[str, Any]) -> str:
    return f"data: {json.dumps(content)}\n\n"
