"""Rewards of a rollout as pure functions: the formulas of the five papers, with their numbers.

    thyme(result=1, addition=1, format=1)                                           # 2.0
    pyvision(True, 3)                                                               # 1.3
    tapo(1.0, (1.0, 0.5, 0.0), weight_accuracy=1.0, weight_tool=0.5)                # 1.25
    necessity_rollout(1.0, instruction_following(True, "forced"))                   # 1.096
    figr(True, True, suitable=True, executed=True)                                  # 3.0

Where a paper and the code that was released with it differ, ``variant="paper"`` is the default and ``"code"`` computes
as the code does. Advantages and the selection of groups are in ``rollouts/scoring.py``; tool scores come from
``judging/code_rules.py`` and ``judging/judges.py``.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Literal

from darkroom.pipelines.models.protocols import PROTOCOLS, ParsedTurn
from darkroom.pipelines.models.protocols.markup import Boxed, one_answer
from darkroom.pipelines.records import Grader, Sample
from darkroom.pipelines.verification.grading import grade

_SPANS = re.compile(r"<(/?)(think|answer)>")


def formatted(text: str, *, protocol: str = "thyme") -> float:
    r"""1.0 for a rollout in the form of its protocol, else 0.0.

    ``text`` is the whole text of the model in one rollout, without observations. ``thyme``: one ``<think>…</think>``
    around all the code, then one ``<answer>…</answer>`` (Thyme §4.4, Formatting Reward). ``pyvision``: one
    ``<answer>`` at the end with one ``\boxed{…}`` in it (PyVision-RL figure 8). ``tool_call``: every call is one in
    the protocol's own spelling, the answer is in one box, and ``<think>`` and ``<answer>``, which FIGR §3.2 names and
    its prompt does not, stand in pairs if they stand at all.
    """
    (closing_tag,) = PROTOCOLS[protocol].stop
    code_ends = re.finditer(re.escape(closing_tag), text, re.IGNORECASE)
    borders = [0, *(match.end() for match in code_ends), len(text)]
    turns = [PROTOCOLS[protocol].parse(text[start:end]) for start, end in pairwise(borders)]
    *coded, last = [isinstance(turn, ParsedTurn) and turn.answer is not None for turn in turns]
    whole = all(isinstance(turn, ParsedTurn) and not turn.mended for turn in turns)
    return float(whole and last and not any(coded) and _is_framed(text, protocol))


def _is_framed(text: str, protocol: str) -> bool:
    """Check the form that no single turn shows."""
    tags = list(_SPANS.finditer(text))
    if protocol == "thyme":
        if [tag[0] for tag in tags] != ["<think>", "</think>", "<answer>", "</answer>"]:
            return False
        return not (text[: tags[0].start()] + text[tags[1].end() : tags[2].start()] + text[tags[3].end() :]).strip()
    if protocol == "pyvision":
        whole = text.rstrip()
        _, opening, answer = whole.removesuffix("</answer>").rpartition("<answer>")
        return bool(opening) and whole.endswith("</answer>") and isinstance(one_answer(answer), Boxed)
    pairs = zip(tags[::2], tags[1::2], strict=False)
    return not len(tags) % 2 and all(start[0] == f"<{end[2]}>" and end[1] for start, end in pairs)


Variant = Literal["paper", "code"]
"""The paper's formula, or its released code's."""


def correctness(answer: str | None, sample: Sample, grader: Grader | None = None) -> float:
    """1.0 when ``answer`` is the sample's by its grader (``darkroom.pipelines.verification.grading``); no answer is
    wrong. Raises ``GradingError`` when expressions cannot be compared on this machine."""
    return float(answer is not None and grade(answer, sample, grader).right)


def thyme(result: float, addition: float, format: float, *, weight: float = 0.5) -> float:
    """Thyme §4.4: ``r = result · (1 + 0.5 · consistency) + 0.5 · format``; 0 to 2. The ablations of appendix C.5.2 put
    another ``addition``, in [0, 1], in the place of consistency: the code reward, or a judge's score of the thinking.
    It counts only for a right answer; a result of -1 (``thyme_result``, variant code) stays."""
    return result + weight * max(result, 0.0) * addition + 0.5 * format


def thyme_code(result: float, executed: float, format: float, *, variant: Variant = "paper") -> float:
    """``thyme`` with ``executed_share`` as the addition: its weight is 0.5, in the code 0.1 (``CODE_WEIGHT``)."""
    return thyme(result, executed, format, weight=0.5 if variant == "paper" else 0.1)


def thyme_result(correct: bool | None, *, variant: Variant = "paper") -> float:
    """Thyme's result reward: 1 for a right answer, else 0; ``correct`` is None where there is no answer. The code
    (``VQA_NORM=1``, its default) gives -1 for a wrong answer, so that no answer pays more."""
    if correct is False and variant == "code":
        return -1.0
    return 1.0 if correct else 0.0


def executed_share(n_executed: int, n_programs: int) -> float:
    """Thyme appendix C.5.2, code reward: the proportion of executed code blocks; 0 without any."""
    return n_executed / n_programs if n_programs else 0.0


def pyvision(
    correct: bool, n_tool_calls: int, *, n_failed: int = 0, per_call: float = 0.1, variant: Variant = "paper"
) -> float:
    """PyVision-RL eq. 1: ``R = R_acc + 0.1 · n_tc · 1{R_acc = 1}``; 0, or 1 and ``per_call`` for every call.
    ``n_failed`` of the calls ended in an error: no productive calls, so they earn nothing; the code pays for them."""
    n_paid = n_tool_calls - n_failed if variant == "paper" else n_tool_calls
    return 1.0 + per_call * n_paid if correct else 0.0


def tapo(
    accuracy: float, tool_scores: Sequence[float], *, weight_accuracy: float, weight_tool: float, format: float = 0.0
) -> float:
    """CodeV eqs. 5 and 6: ``R = λ_acc · r_acc + λ_tool · mean(r_t)`` over the rounds with code (0 if none).
    ``tool_scores`` is one per round with code: the judge's 0..1, or less than 0 for a redline. ``format`` is added as
    it is (eq. 5 has none, figure 9 at most 0.3). Raises ``ValueError`` unless ``|λ_tool| < |λ_acc|``."""
    if not abs(weight_tool) < abs(weight_accuracy):
        expected = "|weight_tool| < |weight_accuracy|, so that the answer dominates"
        raise ValueError(f"TAPO needs {expected}; found {weight_tool} and {weight_accuracy}")
    return weight_accuracy * accuracy + weight_tool * (fmean(tool_scores) if tool_scores else 0.0) + format


def instruction_following(used_tool: bool, mode: str, *, b1: float = 1.2, c1: float = 1.0) -> float:
    """Look Less, Reason More eq. 5: ``+b1`` for a rollout that did as its prompt said, else ``-c1`` (table A2). The
    whole rollout must obey, as the text says: by eq. 5 *one* step would do, and every rollout has one without a tool.
    Raises ``ValueError`` for a ``mode`` other than ``forced`` and ``forbidden``."""
    if mode not in ("forced", "forbidden"):
        raise ValueError(f"instructions are followed in the modes forced and forbidden; found {mode!r}")
    return b1 if used_tool == (mode == "forced") else -c1


def necessity(accuracy_with: float, accuracy_without: float) -> bool:
    """Look Less, Reason More eq. 4: tools are needed where they answer better, in the mean of a question."""
    return accuracy_without < accuracy_with


def alignment(
    correct: bool,
    used_tool: bool,
    necessary: bool,
    *,
    b2: float = 1.6,
    b3: float = 1.2,
    c2: float = 0.8,
    c3: float = 1.0,
) -> float:
    """Look Less, Reason More eq. 6 (table A2): ``+b2`` right and as needed, ``+b3`` right though not as needed, ``-c2``
    wrong though as needed, ``-c3`` wrong and not. Raises ``ValueError`` unless ``b2 > b3 > 0`` and ``c3 > c2 > 0``."""
    if not (b2 > b3 > 0 and c3 > c2 > 0):
        raise ValueError(f"alignment needs b2 > b3 > 0 and c3 > c2 > 0; found b2={b2}, b3={b3}, c2={c2}, c3={c3}")
    right, wrong = (b2, c2) if used_tool == necessary else (b3, c3)
    return right if correct else -wrong


def consistency_penalty(used_tool_flags: Sequence[bool], *, gamma: float = 0.1) -> float:
    """Look Less, Reason More eq. 7: ``-γ · Var(1_zoom)`` over the free rollouts of a question, -γ/4 to 0. The variance
    is the population's; every free rollout of the question gets the same. 0 where there is none."""
    if not used_tool_flags:
        return 0.0
    share = fmean(map(bool, used_tool_flags))
    return 0.0 - gamma * share * (1 - share)


def necessity_rollout(accuracy: float, instruction: float, *, weight: float = 0.08) -> float:
    """Look Less, Reason More eq. 8, not free: ``r_correct + λ_instr · r_instr`` (table A2); -0.08 to 1.096."""
    return accuracy + weight * instruction


def adaptive_rollout(accuracy: float, aligned: float, consistency: float, *, weight: float = 0.05) -> float:
    """Look Less, Reason More eq. 9, free: ``r_correct + λ_align · r_align + r_cons`` (table A2); -0.075 to 1.08."""
    return accuracy + weight * aligned + consistency


def figr(correct: bool, formatted: bool, *, suitable: bool | None, executed: bool, variant: Variant = "paper") -> float:
    """FIGR eqs. 4 to 6 and 11: ``R = R_acc + R_fmt + R_vis``; 0 to 3.

    ``R_vis`` of a right answer with an executed drawing is 1.0 where one is ``suitable``, 0.2 where not or unknown
    (None). The code computes ``0.8 · acc + 0.2 · fmt + 1.2 · vis``, -0.2 to 2.0: ``fmt`` is -1 without a box, else 0;
    ``executed`` means exactly one image of a call where drawing is suitable, else any call; unknown earns all.
    """
    visual = 0.0
    if correct and executed:
        visual = 1.0 if suitable or (suitable is None and variant == "code") else 0.2
    if variant == "code":
        return 0.8 * correct + 0.2 * (0.0 if formatted else -1.0) + 1.2 * visual
    return float(correct) + float(formatted) + visual
