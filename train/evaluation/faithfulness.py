"""Faithfulness: whether a rollout's pictures show what the question is about (CodeV, §3 and appendix 8).

A rollout is faithful when any crop of it shows the target. CodeV divides in two ways: its text (§3, §5.3, appendix 8)
and figure 2 by the rollouts with a right answer (``given_correct``), line 13 of its algorithm 1 and its table 5 by all
rollouts (``over_all``). Both are reported, by their names.

Who says that a crop shows the target: a judge that sees the question and the picture alone, or the truth's boxes, where
they are known. And a control that CodeV lacks: its "crop" may be the whole picture, which always shows the target, so
each figure is there a second time with parts of at most ``whole_share`` of the picture only (``parts_only``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from pipelines.records import ImageRef
from train.evaluation.intervals import Estimate, wilson
from train.evaluation.pictures import Seen
from train.evaluation.playing import Played
from train.evaluation.settings import COVER

ShowsTarget = Callable[[str, ImageRef], Awaitable[bool]]
"""Whether a picture shows anything that the question is about: the question, the picture."""


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """One way of counting. ``faithful``, ``unfaithful`` and ``no_picture`` are shares of all rollouts that add up to
    one (CodeV, figure 5)."""

    given_correct: Estimate
    """Faithful among right answers: CodeV's text and figure 2."""
    over_all: Estimate
    """Faithful and right, of all: CodeV's algorithm 1 and table 5."""
    faithful: float
    unfaithful: float
    no_picture: float


async def shown_to(judge: ShowsTarget, played: Sequence[Played]) -> dict[tuple[str, str], bool]:
    """The judge's word on every picture, by question and picture; each pair is asked about once."""
    pairs = {(one.question.sample.question, seen.image.sha256): seen.image for one in played for seen in one.seen}
    words = await asyncio.gather(*(judge(question, image) for (question, _), image in pairs.items()))
    return dict(zip(pairs, words, strict=True))


def shows_a_target(one: Played, seen: Seen, *, cover: float = COVER) -> bool:
    """Whether a picture shows at least ``cover`` of any of the truth's boxes, measured on pixels."""
    if seen.change is None:
        return False
    targets = [target.box for target in one.question.sample.truth.boxes if target.image == seen.of]
    return any(seen.change.box.intersection(box).area >= cover * box.area for box in targets)


def faithfulness(
    played: Sequence[Played], shows: Callable[[Played, Seen], bool], *, whole_share: float | None = None
) -> Faithfulness:
    """Of ``played``, by ``shows``. With ``whole_share`` only located parts of at most that share count as crops."""
    crops = [[seen for seen in one.seen if whole_share is None or seen.is_part(whole_share)] for one in played]
    faithful = [any(shows(one, seen) for seen in found) for one, found in zip(played, crops, strict=True)]
    right = [one.score.right for one in played]
    n, both = len(played), sum(f and r for f, r in zip(faithful, right, strict=True))
    n_without = sum(not one.seen for one in played)
    return Faithfulness(
        given_correct=wilson(both, sum(right)),
        over_all=wilson(both, n),
        faithful=_share(sum(faithful), n),
        unfaithful=_share(n - sum(faithful) - n_without, n),
        no_picture=_share(n_without, n),
    )


def with_boxes(played: Iterable[Played]) -> list[Played]:
    """Those whose target is known."""
    return [one for one in played if one.question.sample.truth.boxes]


def _share(count: int, n: int) -> float:
    return count / n if n else 0.0
