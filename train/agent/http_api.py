"""The agent's HTTP application, as OpenAI's chat completions; ``darkroom`` beside an answer is its trajectory."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal, cast

from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse
from pydantic import BaseModel, Field
from starlette.types import ASGIApp

from darkroom.pipelines.models.policies.images import MEDIA_TYPES
from darkroom.pipelines.records import Sample, Usage
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.records.samples import bare_sample
from darkroom.pipelines.services import ServiceError
from darkroom.pipelines.services.files import WholeText, decoded
from darkroom.pipelines.services.listening import guarded, speak_json
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.ledger import all_finished
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.errors import raised_as
from darkroom.train.agent.answers import Agent, Answer
from darkroom.train.evaluation.settings import AgentSettings

SOURCE = "agent"


class Url(BaseModel):
    """The address of a file: a data URL, since the service fetches nothing."""

    url: str


class Part(BaseModel):
    """A piece of a message. Other fields, as some tools send them, are ignored."""

    type: Literal["text", "image_url", "video_url"]
    text: WholeText = ""
    image_url: Url | str | None = None
    video_url: Url | str | None = None


class ChatMessage(BaseModel):
    """A message of the conversation."""

    role: Literal["system", "developer", "user", "assistant"]
    content: WholeText | list[Part]

    @property
    def parts(self) -> list[Part]:
        return [Part(type="text", text=self.content)] if isinstance(self.content, str) else self.content


class StreamOptions(BaseModel):
    """Options of a stream."""

    include_usage: bool = False


class ChatRequest(BaseModel):
    """A chat completion. Sampling is the service's own: ``temperature``, ``max_tokens`` and others are ignored."""

    model: str = ""
    messages: list[ChatMessage] = Field(min_length=1)
    n: Annotated[int, Field(ge=1, le=64)] | None = None
    seed: int | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None


def question_of(request: ChatRequest, store: ImageStore) -> Sample:
    """Read the question: texts of system and user in their order, then the images, which are stored. Raises
    ``ServiceError`` (invalid_request, unreadable_image)."""
    users = [message for message in request.messages if message.role == "user"]
    if len(users) != 1 or request.messages[-1].role != "user":
        roles = ", ".join(message.role for message in request.messages)
        raise ServiceError("invalid_request", f"expected one question, a user's message in the end; found {roles}")
    parts = [part for message in request.messages for part in message.parts]
    text = "\n".join(filter(None, (part.text.strip() for part in parts if part.type == "text")))
    if not text:
        raise ServiceError("invalid_request", "the question has no text")
    with raised_as(lambda error: ServiceError("unreadable_image", str(error)), RowError):
        images = tuple(store.ingest(_file(part.image_url)) for part in parts if part.type == "image_url")
        videos = tuple(store.add_video(_file(part.video_url)) for part in parts if part.type == "video_url")
    name = digest([SOURCE, text, [image.sha256 for image in images], [video.sha256 for video in videos]])
    return bare_sample(name, text, images, source=SOURCE, source_row=name, license="unknown", videos=videos)


def _file(url: Url | str | None) -> bytes:
    text = url.url if isinstance(url, Url) else url
    if text is None or not text.startswith("data:"):
        raise ServiceError("invalid_request", "expected a data URL (data:image/png;base64,…): nothing is fetched here")
    with raised_as(lambda error: ServiceError("invalid_request", f"a data URL is {error}"), ValueError):
        return decoded(text)


ALIVE_SECONDS = 10.0
"""Between two comments of a stream whose answer is not there yet: else clients and proxies give up."""


def application(
    settings: AgentSettings, workspace: Workspace, *, version: str, host: str, token: str, most_mb: int
) -> ASGIApp:
    """Build the application, guarded as the sandbox service."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with Agent.open(settings, workspace) as app.state.agent:
            yield

    app = FastAPI(title="Darkroom: an agent", version=version, lifespan=lifespan)
    speak_json(app)
    _routes(app, version)
    return guarded(app, host=host, token=token, most_mb=most_mb, with_images=("/v1/chat/completions",))


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
        answers = all_finished(*(agent().answer(sample, number, request.seed) for number in range(request.n or 1)))
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


def _completion(model: str, answers: Sequence[Answer]) -> dict[str, Any]:
    choices = []
    for index, answer in enumerate(answers):
        message = {"role": "assistant", "content": answer.rollout.answer, "darkroom": answer.as_json()}
        choices.append({"index": index, "message": message, "finish_reason": "stop"})
    head = _head(model, answers[0].trajectory.trajectory_id, "chat.completion")
    return {**head, "choices": choices, "usage": _usage(answers)}


def _head(model: str, name: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{name[:24]}", "object": kind, "created": int(time.time()), "model": model}


def _usage(answers: Sequence[Answer]) -> dict[str, int]:
    total = sum((answer.rollout.usage for answer in answers), Usage())
    prompt, completion = total.prompt_tokens, total.completion_tokens
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


async def _events(model: str, request: ChatRequest, answers: "asyncio.Future[list[Answer]]") -> AsyncIterator[str]:
    """Stream the answers as one piece each, when they are there."""
    try:
        while not (await asyncio.wait({answers}, timeout=ALIVE_SECONDS))[0]:
            yield ": an answer is being worked on\n\n"
        results = await answers
    except ServiceError as error:
        yield _event(error.body)
        return
    finally:
        answers.cancel()  # the client has gone
    head = _head(model, results[0].trajectory.trajectory_id, "chat.completion.chunk")
    for index, answer in enumerate(results):
        delta = {"role": "assistant", "content": answer.rollout.answer, "darkroom": answer.as_json()}
        yield _event({**head, "choices": [{"index": index, "delta": delta, "finish_reason": None}]})
        yield _event({**head, "choices": [{"index": index, "delta": {}, "finish_reason": "stop"}]})
    if request.stream_options is not None and request.stream_options.include_usage:
        yield _event({**head, "choices": [], "usage": _usage(results)})
    yield "data: [DONE]\n\n"


def _event(content: dict[str, Any]) -> str:
    return f"data: {json.dumps(content)}\n\n"
