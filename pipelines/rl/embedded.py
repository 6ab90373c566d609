"""The embedded policy's part in every RL stage: voter, second opinion and student, without a model or a key.

It reads the truth, errs as often as it is told to, and writes what a model would write, about one answer in sixty
malformed; everything else of a stage (parsing, grading, counting, the ledger) is the real thing. What it writes is a
function of the task, the sample and the turn's seed; rows that came about so name the oracle as their judge.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from random import Random

from pipelines.digest import seed_from
from pipelines.geometry import Box
from pipelines.policies.base import Turn
from pipelines.protocols import ToolCall
from pipelines.protocols.tools import crop_line
from pipelines.records import ImageRef, Sample
from pipelines.rl.competence import competence, competence_with_tools
from pipelines.rl.drawable import looks_suitable
from pipelines.rl.slips import right_answer, slip
from pipelines.worked import details_of

MALFORMED = 1 / 60
SCREEN_ERROR, SUITABILITY_ERROR = 0.03, 0.12
RELABEL, RELABEL_AMBIGUOUS = 0.93, 0.4
_MARGIN = 0.25
"""How far a crop reaches beyond the target, as a share of its longer side."""
_CENTRE: tuple[float, float, float, float] = (0.25, 0.25, 0.75, 0.75)


def script(turn: Turn) -> str:
    """The next turn of a task of an RL stage. Raises ``ValueError`` for a family that is none."""
    part = _PARTS.get(turn.task.family)
    if part is None:
        raise ValueError(f"the embedded policy has a part in {', '.join(_PARTS)}; found {turn.task.family!r}")
    told = (turn.task.family, turn.task.mode, turn.task.sample.sample_id, turn.seed)
    return part(turn, Random(seed_from("rl/embedded", *told)))


def _belongs_together(turn: Turn, draw: Random) -> str:
    is_good = _planted(turn.task.sample) != "mismatch"
    return _vote(is_good, draw, SCREEN_ERROR, _TOGETHER)


def _self_contained(turn: Turn, draw: Random) -> str:
    is_good = _planted(turn.task.sample) != "outside_knowledge"
    return _vote(is_good, draw, SCREEN_ERROR, _CONTAINED)


def _suitability(turn: Turn, draw: Random) -> str:
    sample = turn.task.sample
    suitable = details_of(sample).get("suitable", looks_suitable(sample.question))
    return _vote(bool(suitable), draw, SUITABILITY_ERROR, _DRAWN)


def _relabel(turn: Turn, draw: Random) -> str:
    sample = turn.task.sample
    share = RELABEL_AMBIGUOUS if _planted(sample) == "ambiguous" else RELABEL
    return _tagged(sample, draw, share, _CAREFULLY)


def _pass_rate(turn: Turn, draw: Random) -> str:
    return _tagged(turn.task.sample, draw, competence(turn.task.sample), _BRIEFLY)


def _tool_necessity(turn: Turn, draw: Random) -> str:
    sample, forced = turn.task.sample, turn.task.mode == "forced"
    if forced and not turn.rounds:
        return _call(sample, draw)
    share = competence_with_tools(sample) if forced else competence(sample)
    thought = draw.choice(_AFTER_A_CALL if forced else _BRIEFLY)
    if draw.random() < MALFORMED:
        return f"{thought} But I cannot settle on one answer."
    return ToolCall().write_answer(thought, _answer(sample, draw, share), first=not turn.rounds)


def _call(sample: Sample, draw: Random) -> str:
    """A look at the target, or at the middle of an image; without an image, a program on the problem's numbers."""
    if not sample.images:
        numbers = ", ".join(re.findall(r"(?<![\w.])\d{1,9}(?![\w.])", sample.question))
        return ToolCall().write_round(draw.choice(_TO_DRAW), f"numbers = [{numbers}]\nprint(numbers)", first=True)
    target = sample.truth.boxes[0] if sample.truth.boxes else None
    sides = _around(target.box, sample.images[target.image]) if target else _CENTRE
    line = crop_line(list(sides), target.image + 1 if target else 1)
    return ToolCall().write_round(draw.choice(_TO_LOOK), line, first=True)


def _around(target: Box, image: ImageRef) -> tuple[float, float, float, float]:
    """The target with its surroundings, as fractions of the image: thousandths, rounded outwards."""
    region = target.grown(max(8, round(_MARGIN * max(target.width, target.height)))).clipped(image.width, image.height)
    return (
        math.floor(1000 * region.x1 / image.width) / 1000,
        math.floor(1000 * region.y1 / image.height) / 1000,
        math.ceil(1000 * region.x2 / image.width) / 1000,
        math.ceil(1000 * region.y2 / image.height) / 1000,
    )


def _vote(says: bool, draw: Random, error: float, reasons: tuple[str, str]) -> str:
    verdict = says != (draw.random() < error)
    if draw.random() < MALFORMED:
        return f"I would say {'yes' if verdict else 'no'}: {reasons[verdict]}"
    return json.dumps({"reason": reasons[verdict], "verdict": verdict})


def _tagged(sample: Sample, draw: Random, share: float, thoughts: tuple[str, ...]) -> str:
    thought, answer = draw.choice(thoughts), _answer(sample, draw, share)
    return f"{thought} It is {answer}." if draw.random() < MALFORMED else f"{thought}\n<answer>{answer}</answer>"


def _answer(sample: Sample, draw: Random, share: float) -> str:
    return right_answer(sample) if draw.random() < share else slip(sample, draw)


def _judge_answer(turn: Turn, draw: Random) -> str:
    """Answers that are spelled like the expected one are asked of no judge, and the embedded policy knows no other."""
    return _vote(False, draw, 0.0, _MEANING)


def _planted(sample: Sample) -> str:
    return str(details_of(sample).get("planted", ""))


_TOGETHER = (
    "What the question speaks of is nowhere in what is given.",
    "All that the question speaks of is in what is given.",
)
_CONTAINED = (
    "The answer is a fact that nothing given shows.",
    "What is given is enough to find the answer.",
)
_DRAWN = (
    "The problem is reckoned out; a drawing would not carry any step of it.",
    "How the parts lie to each other decides, and a drawing shows that.",
)
_MEANING = (
    "The two do not say the same.",
    "The two say the same.",
)
_CAREFULLY = (
    "I go through what is asked, part by part, and check the result a second time.",
    "First I settle what the question means, then I work it out and compare with what is given.",
)
_BRIEFLY = (
    "I take what is given as it is and work it out in my head.",
    "A short look and a short calculation will do here.",
    "What matters seems clear enough, so I go for the answer at once.",
)
_TO_LOOK = (
    "I want a closer look at the place that the question is about.",
    "Before I answer I enlarge the part of the picture that decides.",
)
_TO_DRAW = (
    "I put the numbers of the problem down before I use them.",
    "I begin with a small program that holds what is given.",
)
_AFTER_A_CALL = (
    "With this before me I can answer.",
    "That is what I needed; now the answer follows.",
)
_PARTS: dict[str, Callable[[Turn, Random], str]] = {
    "belongs_together": _belongs_together,
    "self_contained": _self_contained,
    "relabel": _relabel,
    "pass_rate": _pass_rate,
    "tool_necessity": _tool_necessity,
    "suitability": _suitability,
    "judge_answer": _judge_answer,
}
