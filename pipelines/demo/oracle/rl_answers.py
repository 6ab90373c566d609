"""The embedded policy in every RL stage: voter, second opinion and simulated student, without a model or a key.

It reads the truth, errs at set rates, and writes what a model would write, about one answer in sixty
malformed; everything else of a stage (parsing, grading, counting, the ledger) is the real thing. What it writes is a
function of the task, the sample and the turn's seed; rows that came about so name the oracle as their judge.

How often the student is right is drawn from the sample's id: some samples are never solved, some always, most are in
between. A tiny target is seen less well, and gains from a closer look.
"""

import json
import re
from collections.abc import Sequence
from random import Random

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.generation.recipes import as_fractions, with_margin
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import ToolCall
from darkroom.pipelines.models.protocols.tool_call import crop_line
from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.answers import split_choice
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.records.samples import details_of
from darkroom.pipelines.verification.grading import grader_of
from darkroom.pipelines.verification.grading.boxes import read_box
from darkroom.pipelines.verification.grading.lists import elements

NEVER = ALWAYS = 0.12
"""Shares of the samples that are never and always answered rightly."""
LOWEST, HIGHEST = 0.2, 0.8
TINY, LARGE = 0.004, 0.06
"""Shares of the image that a target covers."""
_SEEN_OF_TINY, _GAINED_UP_CLOSE, _KEPT_OF_LARGE = 0.5, 0.7, 0.9
_GAINED_BY_DRAWING = 0.3


def competence(sample: Sample) -> float:
    """The share of answers without tools that are right; trivial questions are always answered."""
    if details_of(sample).get("planted") == "trivial":
        return 1.0
    place = Random(seed_from("rl/competence", sample.sample_id)).random()
    if place < NEVER:
        return 0.0
    if target_share(sample) < TINY:
        return _SEEN_OF_TINY * _middle(min(place, 1 - ALWAYS))
    return 1.0 if place >= 1 - ALWAYS else _middle(place)


def competence_with_tools(sample: Sample) -> float:
    """The same after a closer look at an image, or after a drawing where there is none."""
    without = competence(sample)
    if not sample.images:
        return _raised(without, _GAINED_BY_DRAWING) if details_of(sample).get("suitable") else without
    share = target_share(sample)
    if share < TINY:
        return _raised(without, _GAINED_UP_CLOSE)
    return _KEPT_OF_LARGE * without if share >= LARGE else without


def target_share(sample: Sample) -> float:
    """Share of its image that the first target covers; 1.0 if none is known."""
    if not sample.truth.boxes or not sample.images:
        return 1.0
    target = sample.truth.boxes[0]
    image = sample.images[target.image]
    return target.box.area / (image.width * image.height)


def _middle(place: float) -> float:
    return LOWEST + (HIGHEST - LOWEST) * (place - NEVER) / (1 - NEVER - ALWAYS)


def _raised(share: float, gain: float) -> float:
    return share + gain * (1 - share)


_FIGURES = re.compile(r"\d+(?:\.\d+)?")
_COLOURS = ("red", "orange", "yellow", "green", "blue", "violet", "brown", "black", "white", "grey")
_TURNED = {"left": "right", "up": "down", "above": "below", "inside": "outside", "yes": "no", "first": "last"}
_TURNED |= {other: one for one, other in _TURNED.items()}
_VOWELS, _CONSONANTS = "aeiou", "bcdfghjklmnpqrstvwxyz"
_MISREAD = {
    ord(one): other
    for letters in (_VOWELS, _CONSONANTS)
    for one, other in zip(letters, letters[1:] + letters[0], strict=True)
}
_MISREAD |= {ord(chr(one).upper()): other.upper() for one, other in _MISREAD.items()}
_LONGEST_READ = 4
"""Words: a longer text without a word to turn round is not misread but given up."""


def right_answer(sample: Sample) -> str:
    """The true answer: the sample's, or the one that its source knows to be true where the label is planted wrong."""
    return str(details_of(sample).get("true_answer", sample.answer))


def wrong_answer(sample: Sample, rng: Random) -> str:
    """An answer to the sample's question that is not the right one, and reads as if it could be."""
    right = right_answer(sample)
    if sample.choices:
        others = [letter for letter, _ in map(split_choice, sample.choices) if letter != right]
        return rng.choice(others) if others else "none of these"
    grader = grader_of(sample)
    if grader.kind == "box" and (box := read_box(right)) is not None:
        return _part(box, rng)
    if grader.kind == "list" and len(parts := list(elements(right))) > 1:
        parts.pop(rng.randrange(len(parts)))
        return ", ".join(parts)
    if _FIGURES.search(right):
        return _other_number(right, grader.tolerance, rng)
    return f"2{right}" if right.startswith("\\") else _other_words(right, rng)


def _part(box: tuple[float, float, float, float], rng: Random) -> str:
    """A quarter of the box: it overlaps with the whole by a quarter."""
    x1, y1, x2, y2 = map(round, box)
    width, height = max(1, (x2 - x1) // 2), max(1, (y2 - y1) // 2)
    x, y = rng.choice((x1, x2 - width)), rng.choice((y1, y2 - height))
    return str([x, y, x + width, y + height])


def _other_number(right: str, tolerance: float, rng: Random) -> str:
    """``right`` with its first number changed: beyond the tolerance, or by little where there is none."""
    number = _FIGURES.search(right)
    assert number is not None
    whole, _, decimals = number[0].partition(".")
    value = int(whole + decimals)
    least = int(3 * tolerance * value) + 1
    steps = [least, 2 * least, -least] if value > least else [least, 2 * least]
    figures = str(value + rng.choice(steps)).zfill(len(whole + decimals))
    spelled = f"{figures[: -len(decimals)]}.{figures[-len(decimals) :]}" if decimals else figures
    return f"{right[: number.start()]}{spelled}{right[number.end() :]}"


def _other_words(right: str, rng: Random) -> str:
    words = re.findall(r"\w+|\W+", right)
    for place, word in enumerate(words):
        plain = word.casefold()
        if plain in _COLOURS or plain in _TURNED:
            words[place] = _TURNED.get(plain) or rng.choice([colour for colour in _COLOURS if colour != plain])
            return "".join(words)
    return _misread(right, rng) if len(right.split()) <= _LONGEST_READ else "It cannot be made out."


def _misread(right: str, rng: Random) -> str:
    start = rng.randrange(min(3, len(right)))
    letters = [letter.translate(_MISREAD) if n % 3 == start else letter for n, letter in enumerate(right)]
    misread = "".join(letters)
    return misread if misread != right else "illegible"


_SAYS = data_beside(__file__)
MALFORMED = 1 / 60
SCREEN_ERROR, SUITABILITY_ERROR = 0.03, 0.12
RELABEL, RELABEL_AMBIGUOUS = 0.93, 0.4
_MARGIN = 0.25
"""How far a crop reaches beyond the target, as a share of its longer side."""
_CENTRE: tuple[float, float, float, float] = (0.25, 0.25, 0.75, 0.75)


def script(turn: CompletionRequest) -> str:
    """The next turn of a task of an RL stage. Raises ``ValueError`` for another family."""
    family, sample = turn.task.family, turn.task.sample
    rng = Random(seed_from("rl/embedded", family, turn.task.mode, sample.sample_id, turn.seed))
    planted = str(details_of(sample).get("planted", ""))
    match family:
        case "belongs_together":
            return _vote(planted != "mismatch", rng, SCREEN_ERROR, family)
        case "self_contained":
            return _vote(planted != "outside_knowledge", rng, SCREEN_ERROR, family)
        case "relabel":
            return _tagged(sample, rng, RELABEL_AMBIGUOUS if planted == "ambiguous" else RELABEL, _SAYS["carefully"])
        case "pass_rate":
            return _tagged(sample, rng, competence(sample), _SAYS["briefly"])
        case "tool_necessity":
            return _tool_necessity(turn, rng)
        case "suitability":
            suitable = bool(details_of(sample).get("suitable", looks_suitable(sample.question)))
            return _vote(suitable, rng, SUITABILITY_ERROR, family)
        case "judge_answer":
            # answers spelled like the expected one are asked of no judge, and the embedded policy knows no other
            return _vote(False, rng, 0.0, family)
        case _:
            parts = "belongs_together, self_contained, relabel, pass_rate, tool_necessity, suitability, judge_answer"
            raise ValueError(f"the embedded policy has a part in {parts}; found {family!r}")


def _tool_necessity(turn: CompletionRequest, rng: Random) -> str:
    sample, forced = turn.task.sample, turn.task.mode == "forced"
    if forced and not turn.rounds:
        return _call(sample, rng)
    share = competence_with_tools(sample) if forced else competence(sample)
    thought = rng.choice(_SAYS["after_a_call" if forced else "briefly"])
    if rng.random() < MALFORMED:
        return f"{thought} But I cannot settle on one answer."
    return ToolCall().write_answer(thought, _answer(sample, rng, share), first=not turn.rounds)


def _call(sample: Sample, rng: Random) -> str:
    """A look at the target, or at the middle of an image; without an image, a program on the problem's numbers."""
    if not sample.images:
        numbers = ", ".join(re.findall(r"(?<![\w.])\d{1,9}(?![\w.])", sample.question))
        code = f"numbers = [{numbers}]\nprint(numbers)"
        return ToolCall().write_round(rng.choice(_SAYS["to_draw"]), code, first=True)
    index, sides = 0, _CENTRE
    for target in sample.truth.boxes[:1]:
        index, image = target.image, sample.images[target.image]
        sides = as_fractions(with_margin(target.box, image, margin=_MARGIN), image)
    return ToolCall().write_round(rng.choice(_SAYS["to_look"]), crop_line(list(sides), index + 1), first=True)


def _vote(says: bool, rng: Random, error: float, family: str) -> str:
    verdict = says != (rng.random() < error)
    reason = _SAYS["reasons"][family][verdict]
    if rng.random() < MALFORMED:
        return f"I would say {'yes' if verdict else 'no'}: {reason}"
    return json.dumps({"reason": reason, "verdict": verdict})


def _tagged(sample: Sample, rng: Random, share: float, thoughts: Sequence[str]) -> str:
    thought, answer = rng.choice(thoughts), _answer(sample, rng, share)
    return f"{thought} It is {answer}." if rng.random() < MALFORMED else f"{thought}\n<answer>{answer}</answer>"


def _answer(sample: Sample, rng: Random, share: float) -> str:
    return right_answer(sample) if rng.random() < share else wrong_answer(sample, rng)


def looks_suitable(question: str) -> bool:
    """True if more of its words name things to be seen than steps of arithmetic; a tie is False."""
    return _n_found("shown", question) > _n_found("reckoned", question)


def _n_found(kind: str, question: str) -> int:
    return sum(re.search(pattern, question, re.IGNORECASE) is not None for pattern in _SAYS["patterns"][kind])
