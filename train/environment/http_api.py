"""The environment's HTTP application, with an OpenAPI page (``/docs``).

GET    /rows                   {"rows": n, "ids": […], "method": …, "protocol": …}
POST   /episodes               {"row": 0 or "ID", "mode": "free", "seed": 0} -> the episode and its conversation
POST   /episodes/NAME/step     {"text": what the model wrote} -> an observation, or the end with its reward
POST   /score                  {"episodes": [NAME, …]} -> the rewards of one group
DELETE /episodes/NAME
POST   /grade                  {"answer": "42", "truth": {…}} -> {"right": true}
GET    /adapters/FILE          what other trainers load (pipelines/publishing/adapters)
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from starlette.types import ASGIApp

from darkroom.pipelines.inspection.html_page import data_url
from darkroom.pipelines.models.policies.images import MEDIA_TYPES
from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.publishing.adapters import ADAPTERS, adapter_files
from darkroom.pipelines.publishing.layouts.reward import by_toolkit
from darkroom.pipelines.services.errors import ServiceError
from darkroom.pipelines.services.files import encoded
from darkroom.pipelines.services.listening import guarded, speak_json
from darkroom.pipelines.services.observation_parts import ObservationPart
from darkroom.train.environment.episodes import Episodes
from darkroom.train.environment.openenv import add_openenv
from darkroom.train.environment.requests import GradeRequest, ResetRequest, ScoreRequest, StepRequest

MOST_MB = 64
"""Of a request, which is a turn's text."""


def application(episodes: Episodes, *, version: str, host: str, token: str, compression: int) -> ASGIApp:
    """The application; what guards it is as for the sandbox service. ``compression``: of the images' PNG."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with episodes.registry.running():
            yield

    app = FastAPI(title="Darkroom: an environment", version=version, lifespan=lifespan, max_body_size=MOST_MB << 20)
    speak_json(app)
    _routes(app, episodes, version, compression)
    return guarded(app, host=host, token=token)


def _routes(app: FastAPI, episodes: Episodes, version: str, compression: int) -> None:
    settings = episodes.settings

    @app.get("/health")
    async def health() -> dict[str, Any]:
        return {"version": version, "rows": len(episodes.rows), "episodes": len(episodes.registry)}

    @app.get("/rows")
    async def rows() -> dict[str, Any]:
        facts = {"method": settings.method, "protocol": settings.protocol, "max_rounds": settings.max_rounds}
        return {"rows": len(episodes.rows), "ids": list(episodes.rows["sample_id"]), **facts}

    @app.post("/episodes", status_code=201)
    async def reset(request: ResetRequest) -> dict[str, Any]:
        name = await episodes.reset(request.row, mode=request.mode, seed=request.seed)
        asked = episodes.registry.get(name).row
        return {
            "episode": name,
            "sample_id": asked["sample_id"],
            "protocol": asked["protocol"],
            "stop": list(PROTOCOLS[asked["protocol"]].stop),
            "max_rounds": settings.max_rounds,
            "messages": await asyncio.to_thread(_messages, asked),
        }

    @app.post("/episodes/{name}/step")
    async def step(name: str, request: StepRequest) -> dict[str, Any]:
        result = await episodes.registry.get(name).step(request.text, finished=request.finished)
        if result.done:
            alone = (await episodes.score([name]))[0] if episodes.scores_alone else None
            return {"done": True, "score": alone}
        parts = [part.model_dump(exclude_none=True) for part in ObservationPart.of(result.parts)]
        images = await encoded(result.images, compression=compression)
        return {"done": False, "parts": parts, "images": images, "status": result.status}

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

    add_openenv(app, reset, step, episodes.registry.close)


def _messages(asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The conversation before the first turn as OpenAI's messages, images as they are stored."""
    formats = (image.format for image in asked["asked"].sample.images)
    files = zip(asked["image_files"], formats, strict=False)

    def part_of(part: Mapping[str, Any]) -> dict[str, Any]:
        if part["type"] != "image":
            return {"type": "text", "text": part["text"]}
        data, format = next(files)
        return {"type": "image_url", "image_url": {"url": data_url(data, MEDIA_TYPES.get(format, "image/png"))}}

    return [
        {"role": message["role"], "content": [part_of(part) for part in message["content"]]}
        for message in asked["prompt"]
    ]
