"""What rollouts come to: pure functions of ``Played`` records.

Accuracy counts every rollout, broken ones as wrong; what an endpoint or a sandbox failed to give (``Played.failed``) is
to be taken out before. Tools are counted as rounds of code; FIGR's words are kept for its four figures (§4.4).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

import numpy as np

from pipelines.records import Round
from pipelines.visual_tokens import Vision, visual_tokens
from train.evaluation.intervals import Estimate, estimate, pass_at_k
from train.evaluation.playing import Played
from train.evaluation.taxonomy import Tool, tools_of

K = TypeVar("K", bound=Hashable)
BUCKETS = ("no tools", "1 tool", "2 tools", "3+ tools")
"""CodeV, appendix 11 and figure 8."""
_NOT_EXECUTED = frozenset({"blocked", "protocol"})


@dataclass(frozen=True, slots=True)
class Accuracy:
    """``right``: share of right answers; ``value``: the benchmark's own score (ANLS), the same where it has none.

    ``pass_at`` has the unbiased pass@k for k = 1, 2, 4, … up to the rollouts of a question; ``circular`` the share of
    questions that are right in all their forms, where there are several.
    """

    right: Estimate
    value: Estimate
    n_questions: int
    n_rollouts: int
    pass_at: Mapping[int, float]
    circular: Estimate | None


@dataclass(frozen=True, slots=True)
class Bucket:
    """Rollouts with so many programs: their share of all, and how many of them are right."""

    name: str
    n: int
    share: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Code:
    """``tool_use``: share of rollouts that call a tool (Look Less, Reason More, table 1). FIGR §4.4: ``ratio``, share
    of rollouts with a program that was executed; ``pass_rate``, share of programs without error; ``lines``, non-empty
    lines of a program."""

    tool_use: Estimate
    ratio: Estimate
    pass_rate: float
    lines: float
    n_programs: int
    n_per_rollout: float


@dataclass(frozen=True, slots=True)
class Spread:
    """How a count is spread over rollouts."""

    mean: float
    median: float
    p95: float
    most: float


def accuracy(played: Sequence[Played]) -> Accuracy:
    """Of rollouts on any number of questions, with as many rollouts each as there are."""
    by_group, by_question = _by(played, _group), _by(played, _asked)
    n_each = min((len(found) for found in by_question.values()), default=0)
    return Accuracy(
        right=_estimate(played, lambda one: one.score.right),
        value=_estimate(played, lambda one: one.score.value),
        n_questions=len(by_question),
        n_rollouts=len(played),
        pass_at={k: fmean(_pass(found, k) for found in by_question.values()) for k in _powers(n_each)},
        circular=_circular(by_group.values()) if len(by_group) < len(by_question) else None,
    )


def by_benchmark(played: Sequence[Played]) -> dict[str, Accuracy]:
    """Accuracy of each benchmark."""
    return {name: accuracy(found) for name, found in _by(played, lambda one: one.question.benchmark).items()}


def by_category(played: Sequence[Played]) -> dict[str, dict[str, Accuracy]]:
    """Accuracy of each category of each benchmark."""
    benchmarks = _by(played, lambda one: one.question.benchmark)
    categories = {name: _by(found, lambda one: one.question.sample.category) for name, found in benchmarks.items()}
    return {name: {key: accuracy(rows) for key, rows in sorted(found.items())} for name, found in categories.items()}


def by_cycle(played: Sequence[Played]) -> dict[str, dict[str, Accuracy]]:
    """Accuracy of each order of the choices, for benchmarks that have several."""
    turned = _by([one for one in played if one.question.cycle], lambda one: one.question.benchmark)
    cycles = {name: _by(found, lambda one: one.question.cycle) for name, found in turned.items()}
    return {name: {key: accuracy(rows) for key, rows in sorted(found.items())} for name, found in cycles.items()}


def by_tool_calls(played: Sequence[Played]) -> tuple[Bucket, ...]:
    """CodeV's four buckets by the number of programs, empty ones included."""
    found = _by(played, lambda one: min(len(one.rollout.rounds), len(BUCKETS) - 1))
    return tuple(_bucket(name, found.get(number, []), len(played)) for number, name in enumerate(BUCKETS))


def code(played: Sequence[Played]) -> Code:
    """How much code was written, and how it fared."""
    programs = [turn for one in played for turn in one.rollout.rounds]
    return Code(
        tool_use=_estimate(played, lambda one: bool(one.rollout.rounds)),
        ratio=_estimate(played, lambda one: any(map(_was_executed, one.rollout.rounds))),
        pass_rate=_mean([turn.observation.status == "ok" for turn in programs]),
        lines=_mean([code_lines(turn.code) for turn in programs]),
        n_programs=len(programs),
        n_per_rollout=len(programs) / max(1, len(played)),
    )


def code_lines(code: str) -> int:
    """Lines that are not empty (FIGR §4.4)."""
    return sum(bool(line.strip()) for line in code.splitlines())


def tools(played: Sequence[Played]) -> dict[Tool, int]:
    """How many programs are of each kind; a program may be of several."""
    counts = Counter(tool for one in played for found in tools_by_round(one) for tool in found)
    return {tool: counts[tool] for tool in Tool if counts[tool]}


def tools_by_round(one: Played) -> list[frozenset[Tool]]:
    """The kinds of each program of a rollout."""
    return [
        tools_of(turn.code, turn.observation, untouched=_is_untouched(one, number))
        for number, turn in enumerate(one.rollout.rounds)
    ]


def tokens_seen(played: Sequence[Played], vision: Vision) -> dict[str, Spread]:
    """Visual tokens of a rollout: of its question's pictures, of those that its programs showed, of both."""
    asked = [sum(visual_tokens(i.width, i.height, vision) for i in one.images) for one in played]
    shown = [
        sum(visual_tokens(i.width, i.height, vision) for turn in one.rollout.rounds for i in turn.observation.images)
        for one in played
    ]
    both = [a + b for a, b in zip(asked, shown, strict=True)]
    return {"question": spread(asked), "observations": spread(shown), "all": spread(both)}


def broken(played: Sequence[Played]) -> dict[str, int]:
    """Rollouts without an answer, by reason."""
    reasons = Counter(str(one.rollout.fault.reason) for one in played if one.rollout.fault is not None)
    return dict(reasons.most_common())


def lengths(played: Sequence[Played]) -> dict[str, Spread]:
    """Turns (one that cannot be read is one), tokens written by the model, and tokens that it read, by rollout."""
    return {
        "turns": spread([len(one.rollout.rounds) + 1 for one in played]),
        "completion_tokens": spread([one.rollout.usage.completion_tokens for one in played]),
        "prompt_tokens": spread([one.rollout.usage.prompt_tokens for one in played]),
    }


def spread(values: Sequence[float]) -> Spread:
    """Mean, median, 95th percentile and the most; zeros where there is nothing."""
    if not values:
        return Spread(0.0, 0.0, 0.0, 0.0)
    median, p95 = np.quantile(values, (0.5, 0.95))
    return Spread(fmean(values), float(median), float(p95), float(max(values)))


def _bucket(name: str, found: Sequence[Played], n: int) -> Bucket:
    return Bucket(name, len(found), len(found) / max(1, n), _mean([one.score.right for one in found]))


def _circular(groups: Iterable[Sequence[Played]]) -> Estimate:
    """A form counts with its first rollout."""
    return estimate([[float(all(one.score.right for one in group if one.number == 0))] for group in groups])


def _pass(found: Sequence[Played], k: int) -> float:
    return pass_at_k(len(found), sum(one.score.right for one in found), k)


def _powers(n: int) -> list[int]:
    """1, 2, 4, …, and ``n`` itself."""
    return sorted({*(2**e for e in range(n.bit_length()) if 2**e <= n), *([n] if n else [])})


def _is_untouched(one: Played, number: int) -> bool:
    shown = [seen for seen in one.seen if seen.round == number]
    return bool(shown) and all(seen.is_untouched for seen in shown)


def _was_executed(turn: Round) -> bool:
    return turn.observation.status not in _NOT_EXECUTED


def _estimate(played: Sequence[Played], value: Callable[[Played], float]) -> Estimate:
    return estimate([[float(value(one)) for one in found] for found in _by(played, _group).values()])


def _group(one: Played) -> str:
    return one.question.group


def _asked(one: Played) -> str:
    return f"{one.question.benchmark}/{one.question.sample.sample_id}"


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def _by(played: Iterable[Played], key: Callable[[Played], K]) -> dict[K, list[Played]]:
    found: dict[K, list[Played]] = defaultdict(list)
    for one in played:
        found[key(one)].append(one)
    return dict(found)
