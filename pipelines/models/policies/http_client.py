"""An OpenAI-compatible endpoint through openai's SDK: one chat completion, and whether it is there.

The SDK knows keys, organisations, proxies, certificates, redirects and Azure. Retries and limits are ours. Answers stay
raw, with the fields of engines and gateways. The body is made here: an image of a few hundred kilobytes would otherwise
be escaped and copied for each of the calls that send it, while all other calls wait.
"""

import json
import os
import re
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from typing import Any, BinaryIO
from uuid import uuid4

import aiohttp
import httpx2
import openai
from openai.types import Batch

from darkroom.pipelines.models.messages import Message, Part, Text
from darkroom.pipelines.models.policies.policy import NoAnswer, PolicyError, PolicyUnavailable, StatusError
from darkroom.pipelines.models.policies.settings import Endpoint
from darkroom.sandbox.errors import raised_as

CHECK_SECONDS = 10.0
FILE_SECONDS = 120.0
"""Without a byte of a batch or a file of it."""
_NAME = "darkroom"
"""The batch's name in its metadata."""
IDLE_SECONDS = 4.0
"""Connections that were idle for longer are not used again: servers close them after five."""
_PIECE_BYTES = 2**17
"""What the socket does not take at once is copied, so it gets pieces and may say when to go on."""
_PAGE = re.compile(r"\A\s*<(?:.*?<title[^>]{0,100}>([^<]{0,200}))?", re.IGNORECASE | re.DOTALL)
_TITLE_BYTES = 4096
"""Of a page, in which its title is looked for."""
_MARK = uuid4().hex
"""Around the digest of an image where its URL will be. It leaves no process, so no text holds it."""


class Body:
    """The JSON of ``fields`` and ``messages``, sent in pieces, and again after a redirect; ``urls``: the messages'
    images by sha256, unquoted. Raises ``ValueError`` for texts that are no UTF-8 and numbers that are not finite."""

    def __init__(self, fields: Mapping[str, Any], messages: Sequence[Message], urls: Mapping[str, bytes]) -> None:
        body = {**fields, "messages": [*map(_openai_message, messages)]}
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        self.fragments = text.encode().split(_MARK.encode())
        self.fragments[1::2] = [urls[sha256.decode()] for sha256 in self.fragments[1::2]]

    def __len__(self) -> int:
        return sum(map(len, self.fragments))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for fragment in self.fragments:
            for first in range(0, len(fragment), _PIECE_BYTES):
                yield fragment[first : first + _PIECE_BYTES]


def _openai_message(message: Message) -> dict[str, Any]:
    if message.role == "user":
        return {"role": "user", "content": [*map(_openai_part, message.parts)]}
    return {"role": message.role, "content": "".join(part.text for part in message.parts if isinstance(part, Text))}


def _openai_part(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": f"{_MARK}{part.image.sha256}{_MARK}"}}


class ChatClient:
    """Chat completions at ``endpoint``, for one event loop, with the proxies and certificates of the environment.
    Raises ``PolicyUnavailable`` where its URL is none, or Azure's without a version of its API."""

    def __init__(self, endpoint: Endpoint, key: str) -> None:
        self.headers: Mapping[str, str] = {}
        """Of the last answer."""
        try:
            self._client = _client(endpoint, key)
        except (httpx2.InvalidURL, ValueError) as error:
            raise PolicyUnavailable(f"{endpoint.base_url} cannot be called: {error}") from None
        self._patient = self._client.with_options(timeout=FILE_SECONDS, max_retries=2)

    async def post(self, body: Body) -> Any:
        """The endpoint's answer as JSON. Raises ``StatusError`` for an HTTP error, ``NoAnswer`` for a lost connection
        or half an answer, ``PolicyError`` for a page of HTML."""
        size = {"Content-Length": str(len(body))}
        with _plain_errors():
            response = await self._client.post(
                "/chat/completions", cast_to=httpx2.Response, content=body, options={"headers": size}
            )
        self.headers = response.headers
        return _json(response.content, response.status_code)

    async def request_models(self) -> list[dict[str, Any]]:
        """Requests the list of models, at most twice: their entries, each with an ``id``; none where the answer is no
        such list. Raises ``StatusError`` and ``NoAnswer``."""
        with _plain_errors():
            twice: openai.RequestOptions = {"max_retries": 1, "timeout": CHECK_SECONDS}
            response = await self._client.get("/models", cast_to=httpx2.Response, options=twice)
        try:
            listed = json.loads(response.content)["data"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return []
        entries = listed if isinstance(listed, list) else []
        return [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]

    async def send_batch(self, file: BinaryIO, name: str) -> str:
        """Has a file of requests answered at half the price within a day. Returns the batch's id at the service, which
        lists it with ``name``. Raises ``StatusError``, ``NoAnswer``."""
        once = self._patient.with_options(max_retries=0)  # a second batch would be paid, too
        with _plain_errors():
            uploaded = await once.files.create(file=(f"darkroom-{name}.jsonl", file), purpose="batch")
            request: Any = {"completion_window": "24h", "endpoint": "/v1/chat/completions", "metadata": {_NAME: name}}
            return (await once.batches.create(input_file_id=uploaded.id, **request)).id

    async def read_batch(self, batch_id: str, name: str, *, since: float) -> Batch | None:
        """The state of a batch; without an id it is looked for by ``name`` among those sent ``since``, and None where
        there is none. Raises ``StatusError``, ``NoAnswer``."""
        with _plain_errors():
            if batch_id:
                return await self._patient.batches.retrieve(batch_id)
            async for batch in self._patient.batches.list(limit=100):
                if (batch.metadata or {}).get(_NAME) == name:
                    return batch
                if batch.created_at < since - 86_400:  # the latest come first; clocks differ
                    break
        return None

    async def download(self, file_id: str, to: BinaryIO) -> None:
        """Writes a file of answers. Raises ``StatusError``, ``NoAnswer``."""
        with _plain_errors():
            async with self._patient.files.with_streaming_response.content(file_id) as response:
                async for piece in response.iter_bytes(_PIECE_BYTES):
                    to.write(piece)

    async def close(self) -> None:
        await self._client.close()


def _client(endpoint: Endpoint, key: str) -> openai.AsyncOpenAI:
    """A client of the SDK. A server behind a password (``https://me:secret@host/v1``) gets the credentials in its URL,
    not a key; the deployment at Azure is the model."""
    url = httpx2.URL(endpoint.base_url)
    limits = httpx2.Limits(max_connections=endpoint.concurrency, keepalive_expiry=IDLE_SECONDS)
    auth = (url.username, url.password) if url.userinfo else None
    certificates = _certificates(*map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))
    settings: dict[str, Any] = {
        "api_key": key or "none",
        "max_retries": 0,
        "timeout": None,  # `EndpointCalls` limits each try
        "default_headers": {"User-Agent": f"darkroom-toolkit/{version('darkroom-toolkit')}"},
        "http_client": openai.DefaultAioHttpClient(limits=limits, auth=auth, verify=certificates),
    }
    if url.host.endswith(".openai.azure.com") and not url.path.rstrip("/").endswith("/v1"):
        return openai.AsyncAzureOpenAI(azure_endpoint=str(url.join("/")), azure_deployment=endpoint.model, **settings)
    return openai.AsyncOpenAI(base_url=url.copy_with(username=None, password=None), **settings)


@cache
def _certificates(file: str | None, folder: str | None) -> ssl.SSLContext:
    """The environment's certificates, read once: it takes 40 ms. Raises ``ValueError`` that names the variables."""
    with raised_as(lambda error: ValueError(f"SSL_CERT_FILE={file}, SSL_CERT_DIR={folder}: {error}"), OSError):
        return httpx2.create_ssl_context()


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Raises the SDK's errors as ours, with what the endpoint or the connection says."""
    try:
        yield
    except openai.APIStatusError as error:
        raise StatusError(error.status_code, error.body, headers=error.response.headers) from None
    except AttributeError as error:
        if not isinstance(error.obj, str):  # the SDK hands on a page of HTML as a text
            raise
        raise NoAnswer(f"an answer of another API ({error})") from None
    # the latter two: an answer that is no HTTP, and a file that was cut off
    except (openai.APIConnectionError, aiohttp.ClientError, httpx2.HTTPError) as error:
        cause = error.__cause__ or error
        cause = cause.__cause__ or cause  # the SDK's error, httpx2's, aiohttp's
        raise NoAnswer(" ".join(f"{type(cause).__name__}: {cause}".split())) from None


def _json(answer: bytes, status: int) -> Any:
    """A response's body. Raises ``NoAnswer`` where it ends too early, ``PolicyError`` for what no further try changes:
    a page of HTML, JSON without an end to its depth."""
    try:
        return json.loads(answer)
    except RecursionError:
        raise PolicyError(f"HTTP {status} with JSON that is nested too deeply") from None
    except ValueError as error:
        if (page := _PAGE.match(answer[:_TITLE_BYTES].decode("utf-8", "replace"))) is None:
            raise NoAnswer(f"the answer was cut off ({type(error).__name__}: {error})") from None
    title = f" ({' '.join(page[1].split())!r})" if page[1] else ""
    mend = "set the URL of the API, which usually ends with /v1, and check the proxy"
    raise PolicyError(f"HTTP {status} with a page of HTML{title} instead of a completion: {mend}")
