"""A trajectory, the draft that it began as, and what they are made of."""

from __future__ import annotations

import operator
from dataclasses import astuple, dataclass
from typing import Literal

from darkroom.pipelines.records.samples import ImageRef

Status = Literal["ok", "error", "blocked", "timeout", "memory", "killed", "protocol"]

LossPolicy = Literal["last_round", "all_rounds"]


@dataclass(frozen=True, slots=True)
class Edit:
    """One rewrite that the sandbox made to the code, or the reading of a call to the model's spelling of it."""

    kind: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Observation:
    """Result of one execution; the images that it shows are references into the store."""

    status: Status
    text: str
    images: tuple[ImageRef, ...] = ()
    error: str | None = None
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of a policy that wrote code, and what the sandbox answered."""

    thought: str
    code: str
    observation: Observation


@dataclass(frozen=True, slots=True)
class Check:
    """One check's verdict: ``reason`` names the flaw if there is one, ``score`` is what was measured, ``detail`` the
    evidence for a person. ``version`` is the check's own. ``n_trials`` counts the votes or answers of which ``score``
    is a share; 0 where it is none."""

    name: str
    passed: bool
    score: float | None = None
    detail: str = ""
    reason: str = ""
    version: int = 1
    n_trials: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Paid usage of the policy. ``cost_usd`` is 0 where the policy has no price."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, more: Usage) -> Usage:
        return Usage(*map(operator.add, astuple(self), astuple(more)))

    @property
    def n_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def times(self, factor: float) -> Usage:
        """Scale it; calls and tokens are rounded."""
        calls, prompt, completion = (round(count * factor) for count in astuple(self)[:3])
        return Usage(calls, prompt, completion, self.cost_usd * factor)

    def __sub__(self, less: Usage) -> Usage:
        return Usage(*map(operator.sub, astuple(self), astuple(less)))


@dataclass(frozen=True, slots=True)
class Provenance:
    """All that determined a trajectory: policy, model and revision, sampling (JSON), prompt, sandbox, seed, code."""

    policy: str
    model: str
    revision: str
    sampling: str
    prompt_digest: str
    sandbox_digest: str
    seed: int
    code_version: str


@dataclass(frozen=True, slots=True)
class Draft:
    """The opening turn of a rollout: what the policy wrote before anything was executed."""

    trajectory_id: str
    sample_id: str
    family: str
    images: tuple[ImageRef, ...]
    """What the policy sees: the sample's images, or what the recipe made of them (rotated, faded)."""
    hint: str
    """What the recipe told the policy or did to the images, as JSON: privileged."""
    text: str
    usage: Usage
    provenance: Provenance
    mode: str = "free"


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One rollout: rounds of thought, code and observation, then the answer."""

    trajectory_id: str
    sample_id: str
    family: str
    protocol: str
    images: tuple[ImageRef, ...]
    rounds: tuple[Round, ...]
    final_thought: str
    answer: str
    loss_policy: LossPolicy
    checks: tuple[Check, ...]
    usage: Usage
    provenance: Provenance
    mode: str = "free"
    """Which of the protocol's system prompts opens the conversation."""

    @property
    def passed(self) -> bool:
        """True if every check passed; a trajectory that was not checked has not passed."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def shown_images(self) -> tuple[ImageRef, ...]:
        """Every image of the row, in the order in which it appears."""
        return self.images + tuple(image for turn in self.rounds for image in turn.observation.images)
