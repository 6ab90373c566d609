"""Policies continue conversations: ``OpenAIPolicy`` at OpenAI-compatible endpoints, ``OraclePolicy`` with no key."""

from darkroom.pipelines.models.policies.budget import BudgetPool, BudgetSpent, SpendLimit, SpendTracker
from darkroom.pipelines.models.policies.embedded import RL_STAGES, OraclePolicy, oracle_policy, oracle_script, oracles
from darkroom.pipelines.models.policies.openai import OpenAIPolicy
from darkroom.pipelines.models.policies.policy import (
    Completion,
    CompletionRequest,
    Policy,
    PolicyError,
    PolicyIdentity,
    PolicyUnavailable,
    SentImage,
)
from darkroom.pipelines.models.policies.recorded import RecordedPolicy
from darkroom.pipelines.models.policies.settings import Endpoint

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
