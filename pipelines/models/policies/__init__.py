"""Policies continue conversations: ``OpenAIPolicy`` at OpenAI-compatible endpoints, ``OraclePolicy`` with no key."""

from pipelines.models.policies.base import (
    Completion,
    CompletionRequest,
    Policy,
    PolicyError,
    PolicyIdentity,
    PolicyUnavailable,
    SentImage,
)
from pipelines.models.policies.budget import BudgetPool, BudgetSpent, SpendLimit, SpendTracker
from pipelines.models.policies.embedded import RL_STAGES, OraclePolicy, oracle_policy, oracle_script, oracles
from pipelines.models.policies.openai import OpenAIPolicy
from pipelines.models.policies.recorded import RecordedPolicy
from pipelines.models.policies.settings import Endpoint

__all__ = [
    "RL_STAGES",
    "BudgetPool",
    "BudgetSpent",
    "Completion",
    "CompletionRequest",
    "Endpoint",
    "OpenAIPolicy",
    "OraclePolicy",
    "Policy",
    "PolicyError",
    "PolicyIdentity",
    "PolicyUnavailable",
    "RecordedPolicy",
    "SentImage",
    "SpendLimit",
    "SpendTracker",
    "oracle_policy",
    "oracle_script",
    "oracles",
]
