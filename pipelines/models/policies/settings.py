"""Settings of the endpoints that write, convert, judge and learn: ``DARKROOM_POLICY``, ``DARKROOM_JUDGE``, …

    environment = {"DARKROOM_POLICY": "openai", "DARKROOM_POLICY_MODEL": "qwen"}
    settings = EndpointSettings.from_environment("JUDGE", environment)
    settings.kind, settings.model               # "openai", "qwen"

Every role has the same variables; unset ones fall back to ``DARKROOM_POLICY``.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import field_validator

from darkroom.pipelines.models.policies.budget import SpendLimit
from darkroom.pipelines.models.policies.policy import PolicyIdentity, PolicyUnavailable
from darkroom.pipelines.storage.settings import EnvironmentSettings, setting


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint and how to call it; ``EndpointSettings`` describes the fields that people set. ``key_variable``
    names the environment variable of the key: settings are stored in run configurations, and keys must not be."""

    base_url: str
    model: str
    key_variable: str = "OPENAI_API_KEY"
    revision: str = ""
    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 2048
    send_stop: bool = True
    send_schema: bool = True
    send_n: bool = True
    concurrency: int = 32
    timeout_seconds: float = 300.0
    """Of one try, from the request's first byte to the answer's last."""
    max_retries: int = 5
    usd_per_million_prompt_tokens: float = 0.0
    usd_per_million_completion_tokens: float = 0.0
    min_pixels: int | None = None
    """Qwen2.5-VL: 3136."""
    max_pixels: int | None = None
    """PyVision-RL on Qwen2.5-VL: 2,000,000."""
    size_step: int = 1
    """Sides are sent as multiples of this, so that the server does not resize (Qwen2.5-VL: 28)."""
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the request's body (``top_k``, ``reasoning_effort``, …); None leaves a field out."""
    batch: Literal["off", "openai", "folder"] = "off"
    """How stages send single-turn requests: at once, by the Batch API, or as files for ``vllm run-batch``."""
    batch_price: float = 0.5
    """Of a token by the Batch API, in its usual price."""
    max_failures: int = 10
    """After so many failed calls in a row the endpoint counts as broken, and all further calls fail at once."""

    @property
    def is_local(self) -> bool:
        """Return whether the endpoint is on this machine: such servers take any key."""
        return urlsplit(self.base_url).hostname in ("127.0.0.1", "localhost", "::1")

    @property
    def sampling(self) -> dict[str, Any]:
        """Fields of every request's body, by their names there."""
        return {name: getattr(self, name) for name in ("model", "temperature", "top_p", "max_tokens")}

    def key(self) -> str:
        """The API key; empty where its variable is not set."""
        return os.environ.get(self.key_variable, "").strip()

    @property
    def has_prices(self) -> bool:
        """Return whether calls cost money that can be counted."""
        return self.usd_per_million_prompt_tokens > 0 or self.usd_per_million_completion_tokens > 0

    @property
    def identity(self) -> PolicyIdentity:
        """Everything that determines the completions; later fields only where set, so that older keys stay valid."""
        sampling: dict[str, Any] = {"temperature": self.temperature, "top_p": self.top_p, "max_tokens": self.max_tokens}
        limits = {"min_pixels": self.min_pixels, "max_pixels": self.max_pixels}
        sampling |= {name: value for name, value in limits.items() if value is not None}
        if self.size_step != 1:
            sampling["size_step"] = self.size_step
        if self.extra_body:
            sampling["extra_body"] = dict(self.extra_body)
        return PolicyIdentity("openai", self.model, self.revision, sampling)


Role = Literal["POLICY", "CONVERT", "JUDGE", "STUDENT"]
"""``POLICY`` writes trajectories and plans, ``CONVERT`` turns drafts into code, ``JUDGE`` votes, ``STUDENT`` is the
model to be trained, whose pass rates are measured."""

FAMILY = "{family}"
"""Placeholder for the family at work in the name of a budget pool."""


class EndpointSettings(EnvironmentSettings):
    """Settings of the model that answers in one role: how it is called, and the most it may cost."""

    kind: Literal["oracle", "openai", "local"] = setting("", "oracle")
    """`oracle`: the embedded policy; `openai`: an OpenAI-compatible endpoint; `local`: a checkpoint in this process."""
    base_url: str = setting("_URL", "")
    """URL of the endpoint, with `/v1`."""
    model: str = setting("_MODEL", "")
    """Name of the model at the endpoint; `local`: its folder."""
    revision: str = setting("_REVISION", "")
    """Revision of the model, part of the ledger's keys. Set it when two servers serve different models by one name."""
    key_variable: str = setting("_KEY", "OPENAI_API_KEY")
    """NAME of the environment variable that holds the API key."""
    temperature: float = setting("_TEMPERATURE", 1.0, ge=0)
    """Sampling temperature."""
    top_p: float = setting(None, 1.0, gt=0, le=1)
    """Nucleus sampling: probability mass to sample from."""
    max_tokens: int = setting("_MAX_TOKENS", 2048, gt=0)
    """Token limit of one completion."""
    send_stop: bool = setting("_SEND_STOP", True)
    """Send stop strings; off for servers that reject them."""
    send_schema: bool = setting("_SEND_SCHEMA", True)
    """Send the JSON schema of decisions and votes; off for servers that reject it."""
    send_n: bool = setting("_SEND_N", True)
    """Request several answers to one prompt at once; off for servers without `n`."""
    batch: Literal["off", "openai", "folder"] = setting("_BATCH", "off")
    """First turns, plans and votes: `openai`: by the Batch API; `folder`: as files."""
    extra: str = setting("_EXTRA", "")
    """Further fields of every request, a JSON object; null leaves one out: `{"reasoning_effort": "low", "temperature":
    null}`, `{"max_tokens": null, "max_completion_tokens": 4096}`."""
    concurrency: int = setting("_CONCURRENCY", 32, gt=0)
    """Maximum number of requests in flight, of each role."""
    shared_concurrency: int | None = setting("_SHARED_CONCURRENCY", None, gt=0)
    """Maximum number of requests in flight of all processes on one ledger together; default: each has its own alone."""
    min_pixels: int | None = setting(None, None)
    """Smaller images are enlarged to this before sending."""
    max_pixels: int | None = setting("_MAX_PIXELS", None)
    """Larger images are reduced to this before sending."""
    usd_per_million_prompt_tokens: float = setting("_PROMPT_PRICE", 0.0, ge=0)
    """Price of prompts in USD per million tokens."""
    usd_per_million_completion_tokens: float = setting("_COMPLETION_PRICE", 0.0, ge=0)
    """Price of completions in USD per million tokens."""
    budget_usd: float | None = setting("_BUDGET", None)
    """Budget in USD over all stages and runs of the budget pool. Raise it to continue once it is spent."""
    budget_tokens: int | None = setting("_BUDGET_TOKENS", None)
    """Budget in tokens."""
    budget_hours: float | None = setting("_BUDGET_HOURS", None)
    """Budget in hours of calling."""
    purse: str = setting("_BUDGET_POOL", FAMILY, formerly="_PURSE", min_length=1, max_length=100)
    """Name of the budget pool, which stages and runs share; default: one per family. A new name starts at zero."""
    n_votes: int = setting("_VOTES", 1, ge=1)
    """Votes per question, where this model judges."""

    @field_validator("extra")
    @classmethod
    def _adds_fields(cls, extra: str) -> str:
        added = json.loads(extra or "{}")
        if not isinstance(added, dict):
            raise ValueError('expected a JSON object, such as {"reasoning_effort": "low"}')
        if own := added.keys() & {"model", "messages", "n", "stream"}:
            raise ValueError(f"{', '.join(sorted(own))} cannot be replaced")
        return extra

    @classmethod
    def from_environment(
        cls, role: Role = "POLICY", environment: Mapping[str, str] = os.environ, **defaults: Any
    ) -> Self:
        """The settings of ``role``, with ``defaults`` instead of the fields' own. A role with its own budget and no
        pool name gets a pool of its own. Raises ``PolicyUnavailable``, naming the variable, for a wrong value, and
        for an endpoint where no kind is set: the oracle would write."""
        settings = cls.read(environment, f"DARKROOM_{role}", "DARKROOM_POLICY", error=PolicyUnavailable, **defaults)
        own = cls.variables_set(environment, f"DARKROOM_{role}")
        is_unsaid = settings.kind == "oracle" and "kind" not in defaults
        for kind in (f"DARKROOM_{role}", "DARKROOM_POLICY") if is_unsaid else ():
            variables = cls.variables_set(environment, kind)
            if "kind" in variables:
                break  # it is meant: an endpoint may be set for other times
            if name := variables.get("base_url") or variables.get("model"):
                raise PolicyUnavailable(
                    f"{name} is set, and {kind} is not: set {kind}=openai to ask it, or {kind}=oracle"
                )
        has_budget = not own.keys().isdisjoint(("budget_usd", "budget_tokens", "budget_hours"))
        if role == "POLICY" or not has_budget or "purse" in own:
            return settings
        return settings.model_copy(update={"purse": f"{settings.purse}/{role.lower()}"})

    @property
    def endpoint(self) -> Endpoint:
        names = {field.name for field in fields(Endpoint)} & set(EndpointSettings.model_fields)
        return Endpoint(**{name: getattr(self, name) for name in names}, extra_body=json.loads(self.extra or "{}"))

    @property
    def budget(self) -> SpendLimit:
        return SpendLimit(usd=self.budget_usd, tokens=self.budget_tokens, hours=self.budget_hours)
