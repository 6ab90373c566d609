"""What assets are given: the workspace, and the policy that writes. Settings come from the environment by default and
can be changed for one run in the launchpad."""

import os
from typing import Literal

import dagster as dg
from pydantic import Field

from pipelines.images import ImageStore
from pipelines.policies import OpenAIPolicy, OraclePolicy, Policy, PolicyUnavailable
from pipelines.policies.openai import Endpoint
from pipelines.recipes import Recipe
from pipelines.workspace import Workspace


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

        Raises ``PolicyUnavailable`` for a ``DARKROOM_POLICY`` that is none.
        """
        kind = os.environ.get("DARKROOM_POLICY") or "oracle"
        if kind not in ("oracle", "openai"):
            raise PolicyUnavailable(f"DARKROOM_POLICY is {kind!r}; set it to 'oracle' or 'openai'")
        return cls(
            kind="openai" if kind == "openai" else "oracle",
            base_url=os.environ.get("DARKROOM_POLICY_URL", ""),
            model=os.environ.get("DARKROOM_POLICY_MODEL", ""),
            key_variable=os.environ.get("DARKROOM_POLICY_KEY") or "OPENAI_API_KEY",
            temperature=_number("DARKROOM_POLICY_TEMPERATURE", 1.0),
            max_tokens=int(_number("DARKROOM_POLICY_MAX_TOKENS", 2048)),
        )

    def for_recipe(self, recipe: Recipe, store: ImageStore) -> Policy:
        """The policy at work on one recipe. Raises ``PolicyUnavailable``, naming the variable to set."""
        if self.kind == "oracle":
            return OraclePolicy(recipe.script, revision=recipe.digest)
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


def _number(variable: str, default: float) -> float:
    value = os.environ.get(variable)
    try:
        return float(value) if value else default
    except ValueError as fault:
        raise PolicyUnavailable(f"{variable} is {value!r}; set it to a number") from fault
