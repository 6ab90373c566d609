"""Resources and settings of assets: defaults are from the environment; the launchpad changes them for one run."""

import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import dagster as dg
from pydantic import ConfigDict, Field, create_model

from darkroom.assets.clusters.worker import worker_tags
from darkroom.pipelines.generation.recipes import Recipe, quotas
from darkroom.pipelines.models.policies import RL_STAGES, OpenAIPolicy, Policy, PolicyUnavailable, oracle_policy
from darkroom.pipelines.models.policies.settings import FAMILY, EndpointSettings, Role
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.verification.checks import Necessity
from darkroom.sandbox.errors import raised_as
from darkroom.train.runs import TrainError

R = TypeVar("R", bound=dg.ConfigurableResource)
NECESSITY_VARIABLE = "DARKROOM_NECESSITY"
_VLLM = "http://127.0.0.1:8000/v1"
"""Where `vllm serve` listens unless told otherwise."""
LEAK_JUDGE_VARIABLE = "DARKROOM_LEAK_JUDGE"


class WorkspaceResource(dg.ConfigurableResource):
    """The folder with images, tables, datasets and ledger (``DARKROOM_HOME``)."""

    def open(self) -> Workspace:
        return Workspace.from_environment()

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Record which process works on the run, for when it is gone."""
        if context.run is not None and context.instance is not None:
            context.instance.add_run_tags(context.run.run_id, worker_tags(context.run.run_id))


class PolicyResource(EndpointSettings, dg.ConfigurableResource):
    """A policy that writes, converts or judges.

    ``oracle`` is embedded and needs nothing: it writes from the truth, and judges by measured rules. ``openai`` asks
    any OpenAI-compatible endpoint: a ``vllm serve`` or ``transformers serve`` of yours, or a commercial API. ``local``
    is a checkpoint's folder, which generates in this process.
    """

    def for_recipe(self, recipe: Recipe, workspace: Workspace) -> Policy:
        """The policy at work on one recipe. Raises ``PolicyUnavailable``, naming the variable to set."""
        if self.kind == "oracle":
            return oracle_policy(recipe.family, revision=recipe.digest)
        return self._endpoint(recipe.family, workspace)

    def for_judging(self, family: str, workspace: Workspace) -> Policy | None:
        """The policy that votes; None for the embedded judge. Raises ``PolicyUnavailable``."""
        return None if self.kind == "oracle" else self._endpoint(family, workspace)

    def for_rl(self, stage: str, workspace: Workspace) -> Policy:
        """The policy that an RL stage asks; the embedded one answers from the truth, as it was planted."""
        if self.kind == "oracle":
            return oracle_policy(RL_STAGES)
        return self._endpoint(stage, workspace)

    def for_pre_annotating(self, workspace: Workspace) -> Policy:
        """The policy that writes records for people to correct. Raises ``PolicyUnavailable``: the oracle sees none."""
        if self.kind == "oracle":
            mend = "set DARKROOM_POLICY=openai, DARKROOM_POLICY_URL and DARKROOM_POLICY_MODEL"
            raise PolicyUnavailable(f"pre-annotations need a policy that sees images: {mend}")
        return self._endpoint("pre_annotations", workspace)

    def _endpoint(self, family: str, workspace: Workspace) -> Policy:
        if self.kind == "local":
            from darkroom.train.models.local_policy import LocalPolicy, Sampling  # torch takes seconds

            if not self.model:
                raise PolicyUnavailable("the local policy needs DARKROOM_POLICY_MODEL: the folder of a checkpoint")
            folder, sampling = Path(self.model), Sampling(self.temperature, self.top_p, self.max_tokens)
            size, store = max(1, self.concurrency // 2), workspace.images  # the policy keeps two batches in flight
            with raised_as(lambda error: PolicyUnavailable(str(error)), TrainError):
                return LocalPolicy(folder, store, sampling=sampling, batch_size=size, max_pixels=self.max_pixels)
        url = self.base_url or (_VLLM if self.batch == "folder" else "")  # there for further turns of a conversation
        for setting, variable in ((url, "DARKROOM_POLICY_URL"), (self.model, "DARKROOM_POLICY_MODEL")):
            if not setting:
                raise PolicyUnavailable(f"the openai policy needs {variable}: set it, or DARKROOM_POLICY=oracle")
        purse = self.purse.replace(FAMILY, family)
        settings = self.model_copy(update={"base_url": url})
        return OpenAIPolicy.on_ledger(settings, workspace.images, workspace.ledger, purse=purse)


def at_launch(resource: R) -> R:
    """Make a resource's values the defaults of its fields: where a launch sets one, Dagster gives the others the
    defaults of the class, and the oracle would write instead of an endpoint."""
    fields: dict[str, Any] = {}
    for name, declared in type(resource).model_fields.items():
        (field := copy(declared)).default = getattr(resource, name)
        fields[name] = (declared.annotation, field)
    return create_model(type(resource).__name__, __base__=type(resource), **fields)()


def policies() -> dict[str, PolicyResource]:
    """The policies of all roles, from the environment."""
    roles: dict[str, Role] = {"policy": "POLICY", "converter": "CONVERT", "judge": "JUDGE", "student": "STUDENT"}
    return {name: at_launch(PolicyResource.from_environment(role)) for name, role in roles.items()}


class LaunchpadSettings(dg.Config):
    """Settings of assets; the text below a field describes it in the launchpad."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class DraftSettings(LaunchpadSettings):
    """A family's drafts."""

    n_most: int | None = None
    """Maximum samples to draft; null: all of the partition."""


class VerdictSettings(LaunchpadSettings):
    """A family's verdicts: whether the policy also answers without tools and without the image, and how often."""

    necessity_answers: int | None = Field(default=None, ge=0)
    """Answers per row without tools and with a blank image; 0: none; null: the value of DARKROOM_NECESSITY, else none
    where answers cost money, and the recipe's number where they do not."""
    max_blind: float | None = Field(default=None, ge=0, le=1)
    """A question answered at this rate on a blank image does not need its image; null: the recipe's."""
    needed_blind: float | None = Field(default=None, gt=0, lt=1)
    """A question answered at this rate on a blank image needs it."""
    false_passes: float | None = Field(default=None, gt=0, lt=0.5)
    """Of questions at the rate `max_blind`, the share that may pass."""
    false_rejects: float | None = Field(default=None, gt=0, lt=0.5)
    """Of questions at the rate `needed_blind`, the share that may fail."""
    max_answers: int | None = Field(default=None, ge=1)
    """Answers on a blank image at most, where fewer leave it undecided."""
    max_without_tools: float | None = Field(default=None, ge=0, le=1)
    """Reject rows with a larger share of right answers without tools."""

    judge_leak: bool | None = None
    """The judge also reads every thought for privileged facts; null: where DARKROOM_LEAK_JUDGE is 1."""

    def judges_leaks(self, *, environment: Mapping[str, str] = os.environ) -> bool:
        """True if the judge is asked about leaks. Raises ``PolicyUnavailable`` if the variable is neither 1 nor 0."""
        value = environment.get(LEAK_JUDGE_VARIABLE, "") or "0"
        if value not in ("0", "1"):
            raise PolicyUnavailable(f"{LEAK_JUDGE_VARIABLE} is {value!r}; set it to 1, or to 0 for no such judge")
        return value == "1" if self.judge_leak is None else self.judge_leak

    def necessity(
        self, recipe: Recipe, *, is_free: bool, environment: Mapping[str, str] = os.environ
    ) -> Necessity | None:
        """The measurement of necessity; None: not at all. Raises ``PolicyUnavailable`` if the variable is no number."""
        k, value = self.necessity_answers, environment.get(NECESSITY_VARIABLE, "")
        if k is None and value:
            if not value.isdecimal():
                raise PolicyUnavailable(f"{NECESSITY_VARIABLE} is {value!r}; set it to a number of answers, 0 for none")
            k = int(value)
        if k is None and is_free and recipe.necessity is not None:
            k = recipe.necessity.k
        if not k:
            return None
        bounds = self.model_dump(exclude={"necessity_answers", "judge_leak"}, exclude_none=True)
        return replace(recipe.necessity or Necessity(), k=k, **bounds)


class MixSettings(LaunchpadSettings):
    """The RL rows that ship."""

    quotas: dict[str, int] = Field(default={})
    """Rows by source, or `annotated` for human annotations."""
    n_rows: int | None = Field(default=None, ge=0)
    """Rows in all; null: all that the quotas allow."""
    validation_share: float = Field(default=0.05, ge=0, le=1)
    """Share of rows for validation, in whole groups of images."""


class DatasetSettings(LaunchpadSettings):
    """The SFT rows that ship."""

    n_rows: int | None = None
    """Rows in all, in the published mixture (Thyme App. B); null: everything accepted."""
    quotas: dict[str, int] = Field(default={})
    """Rows by family; overrides the mixture."""
    validation_share: float = Field(default=0.05, ge=0, le=1)
    """Share of rows for validation, in whole groups of images."""
    n_replayed: int | None = 3
    """Rows per family whose code is executed again for the card; null: all."""

    def quotas_of(self, recipes: Sequence[Recipe]) -> dict[str, int]:
        """Rows by family; a family without a quota ships everything accepted."""
        return quotas(recipes, n_rows=self.n_rows) | self.quotas


class ReviewSettings(LaunchpadSettings):
    """The expert review."""

    n_rows: int = Field(default=20, ge=0)
    """Trajectories per family for experts to review."""
