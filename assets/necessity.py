"""Settings of a family's verdicts: whether rows are asked without tools and without their image, and how often."""

import os
from collections.abc import Mapping
from dataclasses import replace

import dagster as dg
from pydantic import Field

from pipelines.checks import Necessity
from pipelines.policies import PolicyUnavailable
from pipelines.recipes import Recipe

VARIABLE = "DARKROOM_NECESSITY"


class VerdictSettings(dg.Config):
    """What can be set for one run of a family's verdicts."""

    necessity_answers: int | None = Field(
        default=None,
        ge=0,
        description=f"Ask the policy so often without tools and with a blank image; 0: not at all; null: as {VARIABLE} "
        "says, else not at all where answers are paid for, and as the recipe says where they are not.",
    )
    max_blind: float | None = Field(
        default=None, ge=0, le=1, description="Take rows out that it answers rightly more often than this when blind."
    )
    max_without_tools: float | None = Field(default=None, ge=0, le=1, description="The same without tools.")

    def necessity(
        self, recipe: Recipe, *, is_free: bool, environment: Mapping[str, str] = os.environ
    ) -> Necessity | None:
        """How it is measured; None: it is not. Raises ``PolicyUnavailable`` for a variable that is no number."""
        k = _from_environment(environment) if self.necessity_answers is None else self.necessity_answers
        if k is None and is_free and recipe.necessity is not None:
            k = recipe.necessity.k
        if not k:
            return None
        given = {"max_blind": self.max_blind, "max_without_tools": self.max_without_tools}
        bounds = {name: bound for name, bound in given.items() if bound is not None}
        return replace(recipe.necessity or Necessity(), k=k, **bounds)


def _from_environment(environment: Mapping[str, str]) -> int | None:
    value = environment.get(VARIABLE, "")
    if value and not value.isdecimal():
        raise PolicyUnavailable(f"{VARIABLE} is {value!r}; set it to a number of answers, 0 for none")
    return int(value) if value else None
