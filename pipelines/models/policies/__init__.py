"""Policies continue conversations: ``OpenAIPolicy`` at OpenAI-compatible endpoints, ``OraclePolicy`` with no key."""

from darkroom.pipelines.models.policies.budget import (
    BudgetPool as BudgetPool,
    BudgetSpent as BudgetSpent,
    SpendLimit as SpendLimit,
    SpendTracker as SpendTracker,
)
from darkroom.pipelines.models.policies.embedded import (
    RL_STAGES as RL_STAGES,
    OraclePolicy as OraclePolicy,
    oracle_policy as oracle_policy,
    oracle_script as oracle_script,
    oracles as oracles,
)
from darkroom.pipelines.models.policies.openai import OpenAIPolicy as OpenAIPolicy
from darkroom.pipelines.models.policies.policy import (
    Completion as Completion,
    CompletionRequest as CompletionRequest,
    Policy as Policy,
    PolicyError as PolicyError,
    PolicyIdentity as PolicyIdentity,
    PolicyUnavailable as PolicyUnavailable,
    SentImage as SentImage,
)
from darkroom.pipelines.models.policies.recorded import RecordedPolicy as RecordedPolicy
from darkroom.pipelines.models.policies.settings import Endpoint as Endpoint
