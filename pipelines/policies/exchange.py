"""One request and its answer, through the HTTP client that OpenAI's client works with.

OpenAI's ``post`` builds the same request from a dozen layers of options, for more than twice the CPU time
(docs/policies.md); what it would do for us (retries, typed answers) we do ourselves. Refusals are its errors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx2
import openai


class Exchange:
    """Asks ``client``'s endpoint for chat completions; ``http`` is the HTTP client that it was given."""

    def __init__(self, client: openai.AsyncOpenAI, http: httpx2.AsyncClient, *, timeout_seconds: float) -> None:
        self._http, self._timeout = http, httpx2.Timeout(timeout_seconds)
        self._url = httpx2.URL(f"{str(client.base_url).rstrip('/')}/chat/completions")
        owners = {"OpenAI-Organization": client.organization, "OpenAI-Project": client.project}
        self._headers = httpx2.Headers(
            {
                "Accept": "application/json",
                "Content-Type": "application/json",
                "User-Agent": client.user_agent,
                **client.auth_headers,
                **{name: value for name, value in owners.items() if value},
            }
        )

    async def ask(self, body: Mapping[str, Any]) -> Any:
        """The JSON that the endpoint answers with.

        Raises ``openai.APIStatusError`` for a refusal, ``httpx2.HTTPError`` and ``aiohttp.ClientError`` for a lost
        connection, ``ValueError`` for a request that is no UTF-8 or an answer that is no JSON.
        """
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        request = self._http.build_request(
            "POST", self._url, content=content, headers=self._headers, timeout=self._timeout
        )
        response = await self._http.send(request)
        if response.is_success:
            return json.loads(response.content)
        raise _refusal(response)


def _refusal(response: httpx2.Response) -> openai.APIStatusError:
    try:
        body: Any = response.json()
    except ValueError:  # a proxy's page
        body = response.text.strip()
    error = body.get("error", body) if isinstance(body, dict) else body
    said = (error.get("message") if isinstance(error, dict) else None) or error
    status = f"HTTP {response.status_code}"
    return openai.APIStatusError(f"{status}: {said}" if said else status, response=response, body=error)
