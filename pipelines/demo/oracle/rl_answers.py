"""The embedded policy's part in every RL stage: voter, second opinion and student, without a model or a key.

It reads the truth, errs at set rates, and writes what a model would write, about one answer in sixty
malformed; everything else of a stage (parsing, grading, counting, the ledger) is the real thing. What it writes is a
function of the task, the sample and the turn's seed; rows that came about so name the oracle as their judge.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random

from pipelines.demo.oracle.simulated_ability import competence, competence_with_tools, right_answer, slip
from pipelines.generation.recipes import as_fractions, with_margin
from pipelines.models.policies.base import CompletionRequest
from pipelines.models.protocols import ToolCall
from pipelines.models.protocols.tools import crop_line
from pipelines.records import Sample
from pipelines.records.digest import seed_from
from pipelines.records.samples import details_of

MALFORMED = 1 / 60
SCREEN_ERROR, SUITABILITY_ERROR = 0.03, 0.12
RELABEL, RELABEL_AMBIGUOUS = 0.93, 0.4
_MARGIN = 0.25
"""How far a crop reaches beyond the target, as a share of its longer side."""
_CENTRE: tuple[float, float, float, float] = (0.25, 0.25, 0.75, 0.75)


def script(turn: CompletionRequest) -> str:
    """The next turn of a task of an RL stage. Raises ``ValueError`` for another family."""
    part = _PARTS.get(turn.task.family)
    if part is None:
        raise ValueError(f"the embedded policy has a part in {', '.join(_PARTS)}; found {turn.task.family!r}")
    key = (turn.task.family, turn.task.mode, turn.task.sample.sample_id, turn.seed)
    return part(turn, Random(seed_from("rl/embedded", *key)))


def _belongs_together(turn: CompletionRequest, rng: Random) -> str:
    is_good = _planted(turn.task.sample) != "mismatch"
    return _vote(is_good, rng, SCREEN_ERROR, _TOGETHER)


def _self_contained(turn: CompletionRequest, rng: Random) -> str:
    is_good = _planted(turn.task.sample) != "outside_knowledge"
    return _vote(is_good, rng, SCREEN_ERROR, _CONTAINED)


def _suitability(turn: CompletionRequest, rng: Random) -> str:
    sample = turn.task.sample
    suitable = details_of(sample).get("suitable", looks_suitable(sample.question))
    return _vote(bool(suitable), rng, SUITABILITY_ERROR, _DRAWN)


def _relabel(turn: CompletionRequest, rng: Random) -> str:
    sample = turn.task.sample
    share = RELABEL_AMBIGUOUS if _planted(sample) == "ambiguous" else RELABEL
    return _tagged(sample, rng, share, _CAREFULLY)


def _pass_rate(turn: CompletionRequest, rng: Random) -> str:
    return _tagged(turn.task.sample, rng, competence(turn.task.sample), _BRIEFLY)


def _tool_necessity(turn: CompletionRequest, rng: Random) -> str:
    sample, forced = turn.task.sample, turn.task.mode == "forced"
    if forced and not turn.rounds:
        return _call(sample, rng)
    share = competence_with_tools(sample) if forced else competence(sample)
    thought = rng.choice(_AFTER_A_CALL if forced else _BRIEFLY)
    if rng.random() < MALFORMED:
        return f"{thought} But I cannot settle on one answer."
    return ToolCall().write_answer(thought, _answer(sample, rng, share), first=not turn.rounds)


def _call(sample: Sample, rng: Random) -> str:
    """A look at the target, or at the middle of an image; without an image, a program on the problem's numbers."""
    if not sample.images:
        numbers = ", ".join(re.findall(r"(?<![\w.])\d{1,9}(?![\w.])", sample.question))
        return ToolCall().write_round(rng.choice(_TO_DRAW), f"numbers = [{numbers}]\nprint(numbers)", first=True)
    index, sides = 0, _CENTRE
    for target in sample.truth.boxes[:1]:
        index, image = target.image, sample.images[target.image]
        sides = as_fractions(with_margin(target.box, image, margin=_MARGIN), image)
    return ToolCall().write_round(rng.choice(_TO_LOOK), crop_line(list(sides), index + 1), first=True)


def _vote(says: bool, rng: Random, error: float, reasons: tuple[str, str]) -> str:
    verdict = says != (rng.random() < error)
    if rng.random() < MALFORMED:
        return f"I would say {'yes' if verdict else 'no'}: {reasons[verdict]}"
    return json.dumps({"reason": reasons[verdict], "verdict": verdict})


def _tagged(sample: Sample, rng: Random, share: float, thoughts: tuple[str, ...]) -> str:
    thought, answer = rng.choice(thoughts), _answer(sample, rng, share)
    return f"{thought} It is {answer}." if rng.random() < MALFORMED else f"{thought}\n<answer>{answer}</answer>"


def _answer(sample: Sample, rng: Random, share: float) -> str:
    return right_answer(sample) if rng.random() < share else slip(sample, rng)


def _judge_answer(turn: CompletionRequest, rng: Random) -> str:
    """Answers that are spelled like the expected one are asked of no judge, and the embedded policy knows no other."""
    return _vote(False, rng, 0.0, _MEANING)


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
_PARTS: dict[str, Callable[[CompletionRequest, Random], str]] = {
    "belongs_together": _belongs_together,
    "self_contained": _self_contained,
    "relabel": _relabel,
    "pass_rate": _pass_rate,
    "tool_necessity": _tool_necessity,
    "suitability": _suitability,
    "judge_answer": _judge_answer,
}


_SHOWN = (
    r"triangle (?-i:[A-Z]{3})\b|quadrilateral|trapezi\w+|hexagon|semicircle|polygon with the vertices",
    r"\bchords?\b|\btangents?\b|\bbisectors?\b|\bdiameter|inscribed|circumscribed|\bradi(?:us|i)\b",
    r"\b(?:touch|overlap|enclose|intersect|cross|surround)(?:es|s|ed|ing)?\b|\bin common\b|\bmeet\b",
    r"perpendicular|\bparallels?\b|symmetr\w+|\bmirror|reflect\w+",
    r"\bregions?\b|\bbetween the (?:curves?|graphs?|parabola|line)|\bunder the curve\b|[xy]-axis",
    r"\bfold(?:s|ed|ing)?\b|\bunfold\w*|\bcrease\b|\bsawn\b|\bpainted\b|\bturned about\b|\brotat\w+",
    r"\bladder\b|\bshadow\b|\brope\b|\bstring\b|\btethered\b|\bmast\b|\bpeg\b|\bbearing\b|\bramp\b",
    r"\b(?:north|south|east|west)\b|\bturns? (?:left|right)\b|\bforward\b|\bwalks?\b",
    r"\bgrid\b|\bboard\b|\blattice\b|\broads?\b|\bcrossroads?\b|\bstreets?\b|\bsquare by square\b|\blead from\b",
    r"\bhow many (?:real )?solutions\b|\bexactly \w+ solutions\b",
    r"\b(?-i:[A-Z])\s?\(-?\d+, -?\d+\)",
    r"\brandom (?:moments?|places?|times?|points?)\b",
    r"\bboth\b.*\bneither\b|\ball three\b|\bone of them\b|\bjust one\b",
    r"\bcubes?\b|\bcones?\b|\bcylinders?\b|\bpyramids?\b|\bsolid\b|\bfaces\b",
    r"\b(?:greatest|largest|smallest|least) value\b.*(?:\||≤|max)|\bmax\(",
    r"\baround a (?:round )?table\b|\bhandshakes?\b",
)
_RECKONED = (
    r"\A(?:solve|expand|simplify|factor|evaluate|compute|calculate|differentiate|state|prove|show)\b",
    r"\bderivative|\bintegral of\b|\blimit\b|\bdeterminant\b|\bslope\b|\blogarithm|\blog|\bscalar product\b",
    r"\bremainder|\bdivi(?:sible|sors?|ded by)\b|\bprime|\bgreatest common\b|\bleast common\b|\bdigits?\b|\bbase \d",
    r"\bfirst \w+ (?:terms|odd|even|whole)|\bprogression\b|\bsequence\b.*\bterm\b|\bformula\b|\btheorem\b",
    r"\bcommittee|\bletters of\b|\bchosen from\b|\b(?:die|dice|coins?|urn)\b|\bwithout putting back\b",
    r"\bper cent\b|%|\bdiscount\b|\bdoubles\b|\btripled\b|\bnumber was\b|\bcomplete graph\b",
    r"\b[fgh]\([fgh]\(|\bwhat is [fgh]\(|\bcoefficient\b|\bwhat is [a-z]²|\b[a-z]b = |\bremains?\b",
    r"\bperimeter of\b|\bsum of the (?:interior )?angles\b|\bdiagonals\b|\bin the ratio\b|\bi\.",
)


def looks_suitable(question: str) -> bool:
    """Whether more of its words speak of things to be seen than of steps to be reckoned; a draw is no."""
    return _n_found(_SHOWN, question) > _n_found(_RECKONED, question)


def _n_found(patterns: tuple[str, ...], question: str) -> int:
    return sum(re.search(pattern, question, re.IGNORECASE) is not None for pattern in patterns)
