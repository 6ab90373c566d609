"""What assets are given: the workspace, and the policies at work. Settings come from the environment by default and can
be changed for one run in the launchpad."""

import os
from collections.abc import Mapping
from typing import Any, Literal

import dagster as dg
from pydantic import Field, ValidationError

from pipelines.digest import digest
from pipelines.policies import Account, Budget, Endpoint, OpenAIPolicy, OraclePolicy, Policy, PolicyUnavailable, Purse
from pipelines.policies.variables import FAMILY, Role, role_settings
from pipelines.recipes import Recipe
from pipelines.rl.embedded import script as rl_script
from pipelines.stages import code_digest
from pipelines.workspace import Workspace


class WorkspaceResource(dg.ConfigurableResource):
    """The folder with images, tables, datasets and ledger (``DARKROOM_HOME``)."""

    def open(self) -> Workspace:
        """The workspace that the environment names."""
        return Workspace.from_environment()


class PolicyResource(dg.ConfigurableResource):
    """Who writes, converts or judges.

    ``oracle`` is embedded and needs nothing: it writes from the truth, and judges by measured rules. ``openai`` asks
    any OpenAI-compatible endpoint: a ``vllm serve`` or ``transformers serve`` of yours, or a commercial API.
    """

    kind: Literal["oracle", "openai"] = "oracle"
    base_url: str = Field(default="", description="Endpoint, with /v1 (…_URL).")
    model: str = Field(default="", description="Model name as the endpoint knows it (…_MODEL).")
    revision: str = Field(default="", description="Revision of the model: part of the ledger's keys.")
    key_variable: str = Field(
        default="OPENAI_API_KEY", description="NAME of the environment variable with the key (…_KEY)."
    )
    temperature: float = Field(default=1.0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_tokens: int = Field(default=2048, gt=0)
    send_stop: bool = Field(
        default=True, description="Send stop strings; off for servers that refuse them (…_SEND_STOP)."
    )
    send_schema: bool = Field(
        default=True,
        description="Send the JSON schema of decisions and votes; off for servers that refuse it (…_SEND_SCHEMA).",
    )
    send_n: bool = Field(
        default=True,
        description="Ask for several answers to one prompt in one request; off for servers without `n` (…_SEND_N).",
    )
    concurrency: int = Field(default=32, gt=0, description="The most requests in flight.")
    min_pixels: int | None = Field(default=None, description="Smaller pictures are enlarged before they are sent.")
    max_pixels: int | None = Field(default=None, description="Larger pictures are reduced before they are sent.")
    usd_per_million_prompt_tokens: float = Field(default=0.0, ge=0)
    usd_per_million_completion_tokens: float = Field(default=0.0, ge=0)
    budget_usd: float | None = Field(
        default=None, description="The most that a purse may ever spend, in USD (…_BUDGET); spent: set a larger one."
    )
    budget_tokens: int | None = Field(default=None, description="The same in tokens (…_BUDGET_TOKENS).")
    budget_hours: float | None = Field(default=None, description="The same in hours (…_BUDGET_HOURS).")
    purse: str = Field(
        default=FAMILY,
        min_length=1,
        max_length=100,
        description="Who shares the budget: all stages and runs with this name; one per family by default (…_PURSE).",
    )
    n_votes: int = Field(default=1, ge=1, description="Votes per question, where this policy judges.")

    @classmethod
    def from_settings(cls, role: Role = "POLICY", environment: Mapping[str, str] = os.environ) -> "PolicyResource":
        """As the environment says: ``DARKROOM_<role>`` and the variables that begin with it.

        What is not set for the other roles is as for ``POLICY``; a role with a budget of its own has a
        purse of its own. Raises ``PolicyUnavailable``, naming the variable, for a value that cannot be one.
        """
        given = role_settings(role, environment)
        try:
            return cls.model_validate({"kind": given.kind, **given.values})
        except ValidationError as fault:
            raise given.unreadable(fault) from fault

    def for_recipe(self, recipe: Recipe, workspace: Workspace) -> Policy:
        """The policy at work on one recipe. Raises ``PolicyUnavailable``, naming the variable to set."""
        if self.kind == "oracle":
            return OraclePolicy(recipe.oracle, revision=digest([recipe.digest, code_digest()]))
        return self._asked(recipe.family, workspace)

    def for_judging(self, family: str, workspace: Workspace) -> Policy | None:
        """The policy that votes; None for the embedded judge. Raises ``PolicyUnavailable``."""
        return None if self.kind == "oracle" else self._asked(family, workspace)

    def for_rl(self, stage: str, workspace: Workspace) -> Policy:
        """The policy that an RL stage asks; the embedded one answers from the truth, as it was planted."""
        if self.kind == "oracle":
            return OraclePolicy(rl_script, revision=code_digest())
        return self._asked(stage, workspace)

    def for_pre_annotating(self, workspace: Workspace) -> Policy:
        """The policy that writes records for people to correct. Raises ``PolicyUnavailable``: the oracle sees none."""
        if self.kind == "oracle":
            raise PolicyUnavailable(
                "pre-annotations need a policy that sees images: set DARKROOM_POLICY=openai, DARKROOM_POLICY_URL and "
                "DARKROOM_POLICY_MODEL"
            )
        return self._asked("pre_annotations", workspace)

    def _asked(self, family: str, workspace: Workspace) -> Policy:
        for setting, variable in ((self.base_url, "DARKROOM_POLICY_URL"), (self.model, "DARKROOM_POLICY_MODEL")):
            if not setting:
                raise PolicyUnavailable(f"the openai policy needs {variable}: set it, or DARKROOM_POLICY=oracle")
        budget = Budget(usd=self.budget_usd, tokens=self.budget_tokens, hours=self.budget_hours)
        account = Account(workspace.ledger, self.purse.replace(FAMILY, family))
        return OpenAIPolicy(self._endpoint(), workspace.images, purse=Purse(budget, account=account))

    def _endpoint(self) -> Endpoint:
        settings: dict[str, Any] = self.model_dump(
            include={
                "base_url",
                "model",
                "key_variable",
                "revision",
                "temperature",
                "top_p",
                "max_tokens",
                "send_stop",
                "send_schema",
                "send_n",
                "concurrency",
                "min_pixels",
                "max_pixels",
                "usd_per_million_prompt_tokens",
                "usd_per_million_completion_tokens",
            }
        )
        return Endpoint(**settings)
