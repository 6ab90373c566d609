"""The environment variables that say who writes, converts, judges and learns: ``DARKROOM_POLICY``, ``…_URL``, …

    given = role_settings("JUDGE", {"DARKROOM_POLICY": "openai", "DARKROOM_POLICY_MODEL": "qwen"})
    given.kind, given.values                    # "openai", {"model": "qwen"}

What is not set for a role is as for ``POLICY``. Values are texts here: who has the fields reads them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from pipelines.policies.base import PolicyUnavailable

Role = Literal["POLICY", "CONVERT", "JUDGE", "STUDENT"]
"""Who writes trajectories and plans, who converts what was drafted, who judges, and the model that is to be trained,
whose pass rates are measured: each a prefix of variables."""

SETTINGS = {
    "URL": "base_url",
    "MODEL": "model",
    "REVISION": "revision",
    "KEY": "key_variable",
    "TEMPERATURE": "temperature",
    "MAX_TOKENS": "max_tokens",
    "SEND_STOP": "send_stop",
    "SEND_SCHEMA": "send_schema",
    "SEND_N": "send_n",
    "CONCURRENCY": "concurrency",
    "PROMPT_PRICE": "usd_per_million_prompt_tokens",
    "COMPLETION_PRICE": "usd_per_million_completion_tokens",
    "MAX_PIXELS": "max_pixels",
    "BUDGET": "budget_usd",
    "BUDGET_TOKENS": "budget_tokens",
    "BUDGET_HOURS": "budget_hours",
    "PURSE": "purse",
    "VOTES": "n_votes",
}
"""Endings of a role's variables, and the fields that they set."""

FAMILY = "{family}"
"""In the name of a purse: the family that is at work."""

_BUDGETS = ("BUDGET", "BUDGET_TOKENS", "BUDGET_HOURS")


@dataclass(frozen=True, slots=True)
class RoleSettings:
    """What the environment says of one role; ``values`` by field, without those that are not set."""

    prefix: str
    kind: str
    """``oracle`` or ``openai``."""
    values: Mapping[str, str]
    variables: Mapping[str, str]
    """The variable that each field was read from."""

    def unreadable(self, fault: ValidationError) -> PolicyUnavailable:
        """What pydantic found wrong with the values, naming the variable."""
        first = fault.errors()[0]
        name = self.variables.get(str(first["loc"][0]), self.prefix)
        return PolicyUnavailable(f"{name} is {first['input']!r}: {first['msg']}")


def role_settings(role: Role = "POLICY", environment: Mapping[str, str] = os.environ) -> RoleSettings:
    """``DARKROOM_<role>`` and the variables that begin with it; a role with a budget of its own has a purse of its own.

    Raises ``PolicyUnavailable`` for a kind that is none.
    """
    prefixes = list(dict.fromkeys([f"DARKROOM_{role}", "DARKROOM_POLICY"]))
    kind = next((environment[prefix] for prefix in prefixes if environment.get(prefix)), "oracle")
    if kind not in ("oracle", "openai"):
        raise PolicyUnavailable(f"{prefixes[0]} is {kind!r}; set it to 'oracle' or 'openai'")
    variables = {
        field: name
        for ending, field in SETTINGS.items()
        if (name := next((f"{prefix}_{ending}" for prefix in prefixes if environment.get(f"{prefix}_{ending}")), ""))
    }
    values = {field: environment[name] for field, name in variables.items()}
    own = [environment.get(f"DARKROOM_{role}_{ending}") for ending in _BUDGETS]
    if role != "POLICY" and any(own) and not environment.get(f"DARKROOM_{role}_PURSE"):
        values["purse"] = f"{values.get('purse', FAMILY)}/{role.lower()}"
    return RoleSettings(prefixes[0], kind, values, variables)
