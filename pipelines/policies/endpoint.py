"""Where a model answers, how it is asked, and what it bears: everything about an endpoint that people set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from pipelines.policies.base import Identity


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model answers, and how it is asked.

    ``key_variable`` names the environment variable that holds the key, never the key itself: settings are stored in
    run configurations, keys must not be.
    """

    base_url: str
    model: str
    key_variable: str = "OPENAI_API_KEY"
    revision: str = ""
    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 2048
    send_stop: bool = True
    """Whether to send the protocol's stop strings; a server that refuses them costs tokens, not correctness."""
    send_schema: bool = True
    """Whether to send the JSON schema of an answer that must be one; without it more answers are malformed."""
    send_n: bool = True
    """Whether to ask for several answers to one prompt in one request; without it each is a request of its own."""
    concurrency: int = 32
    """The most calls in flight; fewer while the endpoint asks for fewer (``pipelines/policies/rate.py``)."""
    timeout_seconds: float = 300.0
    """For one try, from the request's first byte to the answer's last."""
    max_retries: int = 5
    usd_per_million_prompt_tokens: float = 0.0
    usd_per_million_completion_tokens: float = 0.0
    min_pixels: int | None = None
    """Smaller pictures are enlarged to this before they are sent (Qwen2.5-VL: 3136)."""
    max_pixels: int | None = None
    """Larger pictures are reduced to this before they are sent (PyVision-RL on Qwen2.5-VL: 2,000,000)."""
    size_step: int = 1
    """Sides are sent as multiples of this, so that the server has nothing left to resize (Qwen2.5-VL: 28)."""
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the request's body, as vLLM takes them (``top_k``, ``repetition_penalty``, …)."""
    max_failures: int = 10
    """So many calls given up in a row and the endpoint counts as broken: nothing further is tried."""

    @property
    def is_local(self) -> bool:
        """Whether the endpoint is on this machine: such servers take any key."""
        return urlsplit(self.base_url).hostname in ("127.0.0.1", "localhost", "::1")

    @property
    def has_prices(self) -> bool:
        """Whether calls cost money that can be counted."""
        return self.usd_per_million_prompt_tokens > 0 or self.usd_per_million_completion_tokens > 0

    @property
    def identity(self) -> Identity:
        """All that determines what the model writes. What was added later appears only where it is set: the keys of
        acts that were paid for before stay what they were."""
        sampling: dict[str, Any] = {"temperature": self.temperature, "top_p": self.top_p, "max_tokens": self.max_tokens}
        limits = {"min_pixels": self.min_pixels, "max_pixels": self.max_pixels}
        sampling |= {name: value for name, value in limits.items() if value is not None}
        if self.size_step != 1:
            sampling["size_step"] = self.size_step
        if self.extra_body:
            sampling["extra_body"] = dict(self.extra_body)
        return Identity("openai", self.model, self.revision, sampling)
