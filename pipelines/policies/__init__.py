"""Policies write turns. ``OraclePolicy`` needs no key; ``OpenAIPolicy`` speaks to any OpenAI-compatible endpoint."""

from pipelines.policies.base import Completion, Identity, Policy, PolicyFault, PolicyUnavailable, Turn
from pipelines.policies.openai import OpenAIPolicy
from pipelines.policies.oracle import OraclePolicy
from pipelines.policies.recorded import RecordedPolicy

__all__ = [
    "Completion",
    "Identity",
    "OpenAIPolicy",
    "OraclePolicy",
    "Policy",
    "PolicyFault",
    "PolicyUnavailable",
    "RecordedPolicy",
    "Turn",
]
