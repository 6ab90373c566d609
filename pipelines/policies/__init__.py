"""Policies write turns. ``OraclePolicy`` needs no key; ``OpenAIPolicy`` speaks to any OpenAI-compatible endpoint."""

from pipelines.policies.account import Account
from pipelines.policies.base import Completion, Frame, Identity, Policy, PolicyFault, PolicyUnavailable, Turn
from pipelines.policies.budget import Budget, BudgetSpent, Purse
from pipelines.policies.endpoint import Endpoint
from pipelines.policies.openai import OpenAIPolicy
from pipelines.policies.oracle import OraclePolicy
from pipelines.policies.recorded import RecordedPolicy

__all__ = [
    "Account",
    "Budget",
    "BudgetSpent",
    "Completion",
    "Endpoint",
    "Frame",
    "Identity",
    "OpenAIPolicy",
    "OraclePolicy",
    "Policy",
    "PolicyFault",
    "PolicyUnavailable",
    "Purse",
    "RecordedPolicy",
    "Turn",
]
