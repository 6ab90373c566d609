"""Chat completions as benchmark tools request them, and the question that one asks."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from darkroom.pipelines.records import ImageRef, Sample, Truth, VideoRef
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.services.errors import ServiceError
from darkroom.pipelines.services.files import decoded
from darkroom.pipelines.services.json_bodies import WholeText
from darkroom.pipelines.storage.images import ImageStore

SOURCE = "agent"


class Url(BaseModel):
    """Where a file is: a data URL, since the service fetches nothing."""

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
        """The content as parts."""
        return [Part(type="text", text=self.content)] if isinstance(self.content, str) else self.content


class StreamOptions(BaseModel):
    """Of a stream."""

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
    """The question: texts of system and user in their order, then the images, which are stored.

    Raises ``ServiceError`` (invalid_request, unreadable_image).
    """
    users = [message for message in request.messages if message.role == "user"]
    if len(users) != 1 or request.messages[-1].role != "user":
        roles = ", ".join(message.role for message in request.messages)
        raise ServiceError("invalid_request", f"expected one question, a user's message in the end; found {roles}")
    parts = [part for message in request.messages for part in message.parts]
    text = "\n".join(filter(None, (part.text.strip() for part in parts if part.type == "text")))
    if not text:
        raise ServiceError("invalid_request", "the question has no text")
    try:
        images = tuple(store.ingest(_file(part.image_url)) for part in parts if part.type == "image_url")
        videos = tuple(store.add_video(_file(part.video_url)) for part in parts if part.type == "video_url")
    except RowError as error:
        raise ServiceError("unreadable_image", str(error)) from error
    return _sample(text, images, videos)


def _sample(text: str, images: tuple[ImageRef, ...], videos: tuple[VideoRef, ...]) -> Sample:
    name = digest([SOURCE, text, [image.sha256 for image in images], [video.sha256 for video in videos]])
    return Sample(
        sample_id=name,
        source=SOURCE,
        source_row=name,
        license="unknown",
        images=images,
        question=text,
        choices=(),
        answer="",
        truth=Truth(),
        category="",
        videos=videos,
    )


def _file(url: Url | str | None) -> bytes:
    text = url.url if isinstance(url, Url) else url
    if text is None or not text.startswith("data:"):
        raise ServiceError("invalid_request", "expected a data URL (data:image/png;base64,…): nothing is fetched here")
    try:
        return decoded(text)
    except ValueError as error:
        raise ServiceError("invalid_request", f"a data URL is {error}") from error
