"""Metrics of rollouts, means with 95 % intervals, and pass@k: pure functions of ``ScoredRollout`` records.

Accuracy counts every rollout, broken ones as wrong; callers leave out those with an infrastructure failure
(``ScoredRollout.failed``). Tool calls are rounds of code; the four figures of FIGR (§4.4) keep its names.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, TypeVar

import numpy as np

from darkroom.pipelines.storage.row_files import by_key
from darkroom.pipelines.verification.proportion import Proportion
from darkroom.pipelines.vision.visibility import VisionModel, visual_tokens
from darkroom.train.evaluation.code_analysis import Tool, tools_of
from darkroom.train.evaluation.rollouts import ScoredRollout

_RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over ``n`` independent units with its 95 % interval; all zero for none."""

    mean: float
    low: float
    high: float
    n: int
    method: Literal["wilson", "bootstrap", "none"]


def wilson(n_yes: int, n: int) -> Estimate:
    """A proportion of ``n`` independent units (Wilson 1927): within 0..1, and of positive width at 0 and 1."""
    if not n:
        return Estimate(0.0, 0.0, 0.0, 0, "none")
    low, high = Proportion(n_yes, n).interval
    return Estimate(n_yes / n, low, high, n, "wilson")


def bootstrap(groups: Sequence[Sequence[float]]) -> Estimate:
    """The mean over all values; whole groups are resampled, because values within a group are not independent."""
    if not groups:
        return Estimate(0.0, 0.0, 0.0, 0, "none")
    sums = np.array([sum(group) for group in groups], np.float64)
    counts = np.array([len(group) for group in groups], np.float64)
    mean = float(sums.sum() / counts.sum())
    generator = np.random.default_rng(0)
    samples = (generator.integers(0, len(sums), len(sums)) for _ in range(_RESAMPLES))
    means = [float(sums[indices].sum() / counts[indices].sum()) for indices in samples]
    low, high = np.quantile(means, (0.025, 0.975))
    return Estimate(mean, float(low), float(high), len(groups), "bootstrap")


def estimate(groups: Sequence[Sequence[float]]) -> Estimate:
    """Wilson's interval where every group is one yes or no, else the bootstrap's over groups. When all values agree
    there is nothing to resample: each group counts once."""
    values = [value for group in groups for value in group]
    is_one_each = all(len(group) == 1 for group in groups) and all(value in (0.0, 1.0) for value in values)
    if is_one_each or set(values) in ({0.0}, {1.0}):
        return wilson(sum(group[0] == 1.0 for group in groups), len(groups))
    return bootstrap(groups)


def pass_at_k(n: int, n_right: int, k: int) -> float:
    """The chance that of ``k`` answers sampled from ``n`` at least one is right: ``1 - C(n - c, k) / C(n, k)``.
    Unbiased (Chen et al. 2021, eq. 1; FIGR §4.1). Raises ``ValueError`` for ``k`` beyond ``n``."""
    if not 1 <= k <= n:
        raise ValueError(f"pass@{k} needs at least {k} answers to a question; there are {n}")
    return 1.0 - math.comb(n - n_right, k) / math.comb(n, k)


K = TypeVar("K", bound=Hashable)
BUCKETS = ("no tools", "1 tool", "2 tools", "3+ tools")
"""CodeV, appendix 11 and figure 8."""
_NOT_EXECUTED = frozenset({"blocked", "protocol"})


@dataclass(frozen=True, slots=True)
class Accuracy:
    """``right``: share of right answers; ``value``: the benchmark's own score (ANLS), the same where it has none;
    ``pass_at``: the unbiased pass@k for k = 1, 2, 4, …; ``circular``: the share of questions right in all forms."""

    right: Estimate
    value: Estimate
    n_questions: int
    n_rollouts: int
    pass_at: Mapping[int, float]
    circular: Estimate | None


@dataclass(frozen=True, slots=True)
class Bucket:
    """Rollouts with a given number of code rounds: their share of all, and their accuracy."""

    name: str
    n: int
    share: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Code:
    """``tool_use``: share of rollouts that call a tool (Look Less, Reason More, table 1). FIGR §4.4: ``ratio``, share
    with executed code; ``pass_rate``, share of code rounds without error; ``lines``, non-empty lines per round."""

    tool_use: Estimate
    ratio: Estimate
    pass_rate: float
    lines: float
    n_programs: int
    n_per_rollout: float


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of a count over rollouts."""

    mean: float
    median: float
    p95: float
    most: float


def accuracy(rollouts: Sequence[ScoredRollout]) -> Accuracy:
    by_group = group_by(rollouts, lambda scored: scored.question.group)
    by_question = group_by(rollouts, lambda scored: (scored.question.benchmark, scored.question.sample.sample_id))
    counts = [(len(group), sum(scored.score.right for scored in group)) for group in by_question.values()]
    n_each = min((n for n, _ in counts), default=0)
    # a form counts with its first rollout
    all_forms = [all(scored.score.right for scored in group if scored.number == 0) for group in by_group.values()]
    return Accuracy(
        right=_estimate(rollouts, lambda scored: scored.score.right),
        value=_estimate(rollouts, lambda scored: scored.score.value),
        n_questions=len(by_question),
        n_rollouts=len(rollouts),
        pass_at={k: fmean(pass_at_k(n, n_right, k) for n, n_right in counts) for k in _powers(n_each)},
        circular=estimate([[float(right)] for right in all_forms]) if len(by_group) < len(by_question) else None,
    )


def by_category(rollouts: Sequence[ScoredRollout]) -> dict[str, dict[str, Accuracy]]:
    return _by_benchmark_and(rollouts, lambda scored: scored.question.sample.category)


def by_cycle(rollouts: Sequence[ScoredRollout]) -> dict[str, dict[str, Accuracy]]:
    """Accuracy of each order of the choices, for benchmarks that have several."""
    turned = [scored for scored in rollouts if scored.question.cycle]
    return _by_benchmark_and(turned, lambda scored: scored.question.cycle)


def _by_benchmark_and(
    rollouts: Sequence[ScoredRollout], part: Callable[[ScoredRollout], str]
) -> dict[str, dict[str, Accuracy]]:
    return {
        name: {key: accuracy(rows) for key, rows in sorted(group_by(group, part).items())}
        for name, group in group_by(rollouts, lambda scored: scored.question.benchmark).items()
    }


def by_tool_calls(rollouts: Sequence[ScoredRollout]) -> tuple[Bucket, ...]:
    """CodeV's four buckets by the number of code rounds, empty ones included."""
    buckets = group_by(rollouts, lambda scored: min(len(scored.rollout.rounds), len(BUCKETS) - 1))
    groups = [buckets.get(number, []) for number in range(len(BUCKETS))]
    return tuple(
        Bucket(name, len(group), len(group) / max(1, len(rollouts)), _mean([scored.score.right for scored in group]))
        for name, group in zip(BUCKETS, groups, strict=True)
    )


def code(rollouts: Sequence[ScoredRollout]) -> Code:
    programs = [turn for scored in rollouts for turn in scored.rollout.rounds]
    return Code(
        tool_use=_estimate(rollouts, lambda scored: bool(scored.rollout.rounds)),
        ratio=_estimate(
            rollouts, lambda scored: any(turn.observation.status not in _NOT_EXECUTED for turn in scored.rollout.rounds)
        ),
        pass_rate=_mean([turn.observation.status == "ok" for turn in programs]),
        lines=_mean([sum(bool(line.strip()) for line in turn.code.splitlines()) for turn in programs]),
        n_programs=len(programs),
        n_per_rollout=len(programs) / max(1, len(rollouts)),
    )


def tools(rollouts: Sequence[ScoredRollout]) -> dict[Tool, int]:
    """Number of code rounds of each kind; a round may be of several."""
    counts = Counter(tool for scored in rollouts for kinds in tools_by_round(scored) for tool in kinds)
    return {tool: counts[tool] for tool in Tool if counts[tool]}


def tools_by_round(scored: ScoredRollout) -> list[frozenset[Tool]]:
    touched = {image.round for image in scored.seen if not image.is_untouched}
    untouched = {image.round for image in scored.seen} - touched
    turns = enumerate(scored.rollout.rounds)
    return [tools_of(turn.code, turn.observation, untouched=number in untouched) for number, turn in turns]


def tokens_seen(rollouts: Sequence[ScoredRollout], vision: VisionModel) -> dict[str, Spread]:
    """Visual tokens per rollout: of the question's images, of the observations, of both."""
    of_questions = [sum(visual_tokens(i.width, i.height, vision) for i in scored.images) for scored in rollouts]
    outputs = [[i for turn in scored.rollout.rounds for i in turn.observation.images] for scored in rollouts]
    of_outputs = [sum(visual_tokens(i.width, i.height, vision) for i in images) for images in outputs]
    both = [a + b for a, b in zip(of_questions, of_outputs, strict=True)]
    return {"question": spread(of_questions), "observations": spread(of_outputs), "all": spread(both)}


_REGION = re.compile(r"(?<!\d)\d{1,5}(?:, ?\d{1,5}){3}(?!\d)")


def n_naming_a_region(rollouts: Sequence[ScoredRollout]) -> int:
    """Questions with four numbers in a row, as a box has: the model need not find where to look."""
    questions = {scored.question.group: scored.question.sample.question for scored in rollouts}
    return sum(bool(_REGION.search(question)) for question in questions.values())


def broken(rollouts: Sequence[ScoredRollout]) -> dict[str, int]:
    reasons = Counter(str(scored.rollout.error.reason) for scored in rollouts if scored.rollout.error is not None)
    return dict(reasons.most_common())


def lengths(rollouts: Sequence[ScoredRollout]) -> dict[str, Spread]:
    """Turns (unparseable ones included), completion tokens and prompt tokens per rollout."""
    return {
        "turns": spread([len(scored.rollout.rounds) + 1 for scored in rollouts]),
        "completion_tokens": spread([scored.rollout.usage.completion_tokens for scored in rollouts]),
        "prompt_tokens": spread([scored.rollout.usage.prompt_tokens for scored in rollouts]),
    }


def spread(values: Sequence[float]) -> Spread:
    """Mean, median, 95th percentile and maximum; zeros for no values."""
    if not values:
        return Spread(0.0, 0.0, 0.0, 0.0)
    median, p95 = np.quantile(values, (0.5, 0.95))
    return Spread(fmean(values), float(median), float(p95), float(max(values)))


def _powers(n: int) -> list[int]:
    """1, 2, 4, …, and ``n`` itself."""
    return sorted({*(2**e for e in range(n.bit_length()) if 2**e <= n), *([n] if n else [])})


def _estimate(rollouts: Sequence[ScoredRollout], value: Callable[[ScoredRollout], float]) -> Estimate:
    groups = group_by(rollouts, lambda scored: scored.question.group).values()
    return estimate([[float(value(scored)) for scored in group] for group in groups])


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def group_by(rollouts: Iterable[ScoredRollout], key: Callable[[ScoredRollout], K]) -> dict[K, list[ScoredRollout]]:
    return by_key((key(scored), scored) for scored in rollouts)
