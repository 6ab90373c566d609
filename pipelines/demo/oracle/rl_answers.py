"""The embedded policy's part in every RL stage: voter, second opinion and student, without a model or a key.

It reads the truth, errs at set rates, and writes what a model would write, about one answer in sixty
malformed; everything else of a stage (parsing, grading, counting, the ledger) is the real thing. What it writes is a
function of the task, the sample and the turn's seed; rows that came about so name the oracle as their judge.
"""

import json
import re
from collections.abc import Sequence
from random import Random

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.oracle.simulated_ability import competence, competence_with_tools, right_answer, slip
from darkroom.pipelines.generation.recipes import as_fractions, with_margin
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import ToolCall
from darkroom.pipelines.models.protocols.tools import crop_line
from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.records.samples import details_of

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
            raise ValueError(
                "the embedded policy has a part in belongs_together, self_contained, relabel, pass_rate, "
                f"tool_necessity, suitability, judge_answer; found {family!r}"
            )


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
    return right_answer(sample) if rng.random() < share else slip(sample, rng)


def looks_suitable(question: str) -> bool:
    """Whether more of its words speak of things to be seen than of steps to be reckoned; a draw is no."""
    return _n_found("shown", question) > _n_found("reckoned", question)


def _n_found(kind: str, question: str) -> int:
    return sum(re.search(pattern, question, re.IGNORECASE) is not None for pattern in _SAYS["patterns"][kind])
