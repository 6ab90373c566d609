"""An OpenAI-compatible endpoint over HTTP: one chat completion, and whether it is there.

Requests go straight to aiohttp: the client of OpenAI's SDK takes several times its CPU time, and still twice as much
where only the HTTP client inside it is used (docs/policies.md).

The body of a request is JSON in fragments, of which the images are those of the cache:

    [b'{"model":"qwen",…,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"',
     b'data:image/png;base64,iVBORw0…', b'"}},{"type":"text","text":"How many?"}]}]}']

An image of a few hundred kilobytes would otherwise be escaped and copied for each of the calls that send it, while all
other calls wait.
"""

import asyncio
import json
import os
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from darkroom.pipelines.models.messages import ImagePart, Message, Text
from darkroom.pipelines.models.policies import calls
from darkroom.pipelines.models.policies.policy import PolicyError, StatusError

_PIECE_BYTES = 2**17
"""What the socket does not take at once is copied, so it gets pieces and may say when to go on."""
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def body_of(fields: Mapping[str, Any], messages: Sequence[Message], urls: Mapping[str, bytes]) -> tuple[bytes, ...]:
    """Encode ``fields`` and ``messages``; ``urls`` are those of the messages' images by sha256, without quotes in them.
    Raises ``ValueError`` for texts that are no UTF-8 and numbers that are not finite."""
    text: list[str] = [_encoder.encode(fields)[:-1], ',"messages":[' if fields else '"messages":[']
    fragments: list[bytes] = []
    for number, message in enumerate(messages):
        text.append("," if number else "")
        if message.role == "user":
            text.append('{"role":"user","content":[')
            for place, part in enumerate(message.parts):
                text.append("," if place else "")
                if isinstance(part, ImagePart):
                    text.append('{"type":"image_url","image_url":{"url":"')
                    fragments += ["".join(text).encode(), urls[part.image.sha256]]
                    text = ['"}}']
                else:
                    text.append(_encoder.encode({"type": "text", "text": part.text}))
            text.append("]}")
        else:
            own = "".join(part.text for part in message.parts if isinstance(part, Text))
            text.append(_encoder.encode({"role": message.role, "content": own}))
    return (*fragments, ("".join(text) + "]}").encode())


class Fragments(aiohttp.Payload):
    """Sent one after the other with their length in all; may be sent again."""

    def __init__(self, fragments: Sequence[bytes]) -> None:
        super().__init__(fragments, content_type="application/json")
        self._size = sum(map(len, fragments))

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return b"".join(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        for fragment in self._value:
            view = memoryview(fragment)
            for first in range(0, len(fragment), _PIECE_BYTES):
                await writer.write(view[first : first + _PIECE_BYTES])


CHECK_SECONDS = 10.0
_TITLE_BYTES = 4096
"""Of a page, in which its title is looked for."""
IDLE_SECONDS = 4.0
"""Connections that were idle for longer are not used again: servers close them after five."""


class ChatClient:
    """Chat completions at ``base_url``, for one event loop, with the proxy and the certificates of the environment."""

    def __init__(self, base_url: str, key: str) -> None:
        self._base_url, self._key = base_url.rstrip("/"), key
        self._url = URL()
        """Of the endpoint, without a user and a password."""
        self._completions = URL()
        self._session: aiohttp.ClientSession | None = None

    async def post(self, fields: Mapping[str, Any], messages: Sequence[Message], urls: Mapping[str, bytes]) -> Any:
        """The endpoint's answer as JSON, to the request that ``body_of`` makes.

        Raises ``StatusError`` for an HTTP error, ``aiohttp.ClientError`` for a lost connection, ``PolicyError`` for a
        page of HTML, ``ValueError`` for a request that is no UTF-8 or an answer that is no JSON.
        """
        session = self._session or self._open()
        body = Fragments(body_of(fields, messages, urls))
        async with session.post(self._completions, data=body) as response:
            answer = await response.read()
            if response.status < 300:
                return _json(answer, response.status)
            raise _status_error(response, answer)

    async def models_status(self) -> int:
        """The status of the answer to a request for the list of models. Raises ``aiohttp.ClientError`` and
        ``TimeoutError`` where none comes, at the second try."""
        try:
            return await self._models_status()
        except (aiohttp.ClientError, TimeoutError):
            await asyncio.sleep(calls.FIRST_WAIT_SECONDS)
            return await self._models_status()

    async def _models_status(self) -> int:
        session = self._session or self._open()
        async with asyncio.timeout(CHECK_SECONDS), session.get(f"{self._url}/models") as response:
            return response.status

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        try:
            credentials = URL(self._base_url)
        except ValueError as error:
            raise aiohttp.InvalidURL(self._base_url, str(error)) from None
        self._url = credentials.with_user(None) if credentials.user else credentials
        self._completions = URL(f"{self._url}/chat/completions")
        proxies = getproxies()
        proxy = proxies.get(self._url.scheme) or proxies.get("all")
        is_direct = proxy is None or proxy_bypass(f"{self._url.host}:{self._url.port}")
        certificates = httpx2.create_ssl_context() if self._url.scheme == "https" else True
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS, ssl=certificates),
            headers=_headers(self._key, credentials),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),  # `EndpointCalls` limits each try
            proxy=None if is_direct else proxy,
        )
        return self._session


def _json(answer: bytes, status: int) -> Any:
    """A response's body. Raises ``PolicyError`` for a page of HTML, which no further try changes."""
    try:
        return json.loads(answer)
    except RecursionError:
        raise PolicyError(f"HTTP {status} with JSON that is nested too deeply") from None
    except ValueError:
        beginning = answer[:_TITLE_BYTES].decode("utf-8", "replace").strip()
        if not beginning.startswith("<"):
            raise
        title = re.search(r"<title[^>]{0,100}>([^<]{0,200})", beginning, re.IGNORECASE)
        label = f" ({' '.join(title[1].split())!r})" if title else ""
        raise PolicyError(
            f"HTTP {status} with a page of HTML{label} instead of a completion: set the URL of the API, which usually "
            "ends with /v1, and check the proxy"
        ) from None


def _headers(key: str, url: URL) -> dict[str, str]:
    """OpenAI's, as its own client takes them from the environment. A server behind a password
    (``https://me:secret@host/v1``) needs the credentials in its URL, not a key."""
    pair = b64encode(f"{url.user}:{url.password or ''}".encode()).decode()
    owners = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
    return {
        "Accept": "application/json",
        "User-Agent": f"darkroom-toolkit/{version('darkroom-toolkit')}",
        "Authorization": f"Basic {pair}" if url.user else f"Bearer {key or 'none'}",
        **{name: owner for name, variable in owners.items() if (owner := os.environ.get(variable))},
    }


def _status_error(response: aiohttp.ClientResponse, answer: bytes) -> StatusError:
    try:
        body: Any = json.loads(answer)
    except ValueError:  # a proxy's page
        body = answer.decode("utf-8", "replace").strip()
    error = body.get("error", body) if isinstance(body, dict) else body
    fields = error if isinstance(error, dict) else {}
    message = fields.get("message") or error
    status = f"HTTP {response.status}"
    names = (fields.get("code"), fields.get("type"))
    return StatusError(f"{status}: {message}" if message else status, response.status, response.headers, names)
