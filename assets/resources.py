"""What assets are given: the workspace, and the policy that writes. Settings come from the environment by default and
can be changed for one run in the launchpad."""

import os
from typing import Literal

import dagster as dg
from pydantic import Field, ValidationError

from pipelines.digest import digest
from pipelines.images import ImageStore
from pipelines.policies import OpenAIPolicy, OraclePolicy, Policy, PolicyUnavailable
from pipelines.policies.openai import Endpoint
from pipelines.recipes import Recipe
from pipelines.stages import code_digest
from pipelines.workspace import Workspace

_VARIABLES = {
    "base_url": "DARKROOM_POLICY_URL",
    "model": "DARKROOM_POLICY_MODEL",
    "revision": "DARKROOM_POLICY_REVISION",
    "key_variable": "DARKROOM_POLICY_KEY",
    "temperature": "DARKROOM_POLICY_TEMPERATURE",
    "max_tokens": "DARKROOM_POLICY_MAX_TOKENS",
    "concurrency": "DARKROOM_POLICY_CONCURRENCY",
    "usd_per_million_prompt_tokens": "DARKROOM_POLICY_PROMPT_PRICE",
    "usd_per_million_completion_tokens": "DARKROOM_POLICY_COMPLETION_PRICE",
}


class WorkspaceResource(dg.ConfigurableResource):
    """The folder with images, tables, datasets and ledger (``DARKROOM_HOME``)."""

    def open(self) -> Workspace:
        """The workspace that the environment names."""
        return Workspace.from_environment()


class PolicyResource(dg.ConfigurableResource):
    """Who writes the trajectories.

    ``oracle`` writes them from the truth and needs nothing. ``openai`` asks any OpenAI-compatible endpoint: a
    ``vllm serve`` or ``transformers serve`` of yours, or a commercial API.
    """

    kind: Literal["oracle", "openai"] = "oracle"
    base_url: str = Field(default="", description="Endpoint, with /v1 (DARKROOM_POLICY_URL).")
    model: str = Field(default="", description="Model name as the endpoint knows it (DARKROOM_POLICY_MODEL).")
    revision: str = Field(default="", description="Revision of the model: part of the ledger's keys.")
    key_variable: str = Field(
        default="OPENAI_API_KEY", description="NAME of the environment variable with the key (DARKROOM_POLICY_KEY)."
    )
    temperature: float = Field(default=1.0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_tokens: int = Field(default=2048, gt=0)
    send_stop: bool = Field(default=True, description="Send stop strings; off for servers that refuse them.")
    concurrency: int = Field(default=32, gt=0, description="Requests in flight.")
    usd_per_million_prompt_tokens: float = Field(default=0.0, ge=0)
    usd_per_million_completion_tokens: float = Field(default=0.0, ge=0)

    @classmethod
    def from_settings(cls) -> "PolicyResource":
        """As the environment says: ``DARKROOM_POLICY`` and the variables that begin with it.

        Raises ``PolicyUnavailable``, naming the variable, for a value that cannot be one.
        """
        kind = os.environ.get("DARKROOM_POLICY") or "oracle"
        if kind not in ("oracle", "openai"):
            raise PolicyUnavailable(f"DARKROOM_POLICY is {kind!r}; set it to 'oracle' or 'openai'")
        given = {field: os.environ[name] for field, name in _VARIABLES.items() if os.environ.get(name)}
        try:
            return cls.model_validate({"kind": kind, **given})
        except ValidationError as fault:
            first = fault.errors()[0]
            name = _VARIABLES.get(str(first["loc"][0]), "DARKROOM_POLICY")
            raise PolicyUnavailable(f"{name} is {first['input']!r}: {first['msg']}") from fault

    def for_recipe(self, recipe: Recipe, store: ImageStore) -> Policy:
        """The policy at work on one recipe. Raises ``PolicyUnavailable``, naming the variable to set."""
        if self.kind == "oracle":
            return OraclePolicy(recipe.oracle, revision=digest([recipe.digest, code_digest()]))
        for setting, variable in ((self.base_url, "DARKROOM_POLICY_URL"), (self.model, "DARKROOM_POLICY_MODEL")):
            if not setting:
                raise PolicyUnavailable(f"the openai policy needs {variable}: set it, or DARKROOM_POLICY=oracle")
        return OpenAIPolicy(self._endpoint(), store)

    def _endpoint(self) -> Endpoint:
        return Endpoint(
            base_url=self.base_url,
            model=self.model,
            key_variable=self.key_variable,
            revision=self.revision,
            temperature=self.temperature,
            top_p=self.top_p,
            max_tokens=self.max_tokens,
            send_stop=self.send_stop,
            concurrency=self.concurrency,
            usd_per_million_prompt_tokens=self.usd_per_million_prompt_tokens,
            usd_per_million_completion_tokens=self.usd_per_million_completion_tokens,
        )
