"""Checks on what programs printed: that it carries the answer, and that it was computed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from pipelines.answers import split_choice
from pipelines.cases import Case
from pipelines.checks.base import Flaw, Verdict, check, failed, passed
from pipelines.grading import grade
from pipelines.records import Sample, Trajectory
from pipelines.syntax import parsed

MAX_LINES = 30
"""Of each observation, the last ones: where programs print their result."""
MAX_CANDIDATES = 40
"""Different ones; an expression takes some 0.02 s to compare."""
_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?(?:/\d+)?")
_COMPUTING = (
    ast.BinOp, ast.AugAssign, ast.Compare, ast.For, ast.While,
    ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp,
)  # fmt: skip


@check()
def output_supports_answer(case: Case) -> Verdict:
    """What a program printed holds the sample's answer, by value and not by chance of spelling."""
    wanted = _as_asked(case.sample)
    for candidate in islice(dict.fromkeys(_candidates(case.trajectory)), MAX_CANDIDATES):
        if any(grade(candidate, sample).right for sample in wanted):
            return passed(f"printed {candidate[:80]!r}")
    return failed(Flaw.UNSUPPORTED, f"no program printed {wanted[-1].answer!r}")


@check()
def program_computes(case: Case) -> Verdict:
    """Some program computes something, and none prints the answer as a constant of its own."""
    trees = [tree for turn in case.trajectory.rounds if (tree := parsed(turn.code)) is not None]
    wanted = _as_asked(case.sample)
    for constant in (said for tree in trees for said in _printed_constants(tree)):
        if any(grade(constant, sample).right for sample in wanted):
            return failed(Flaw.NOT_COMPUTED, f"the program prints {constant!r}, which it was told")
    if any(_computes(node) for tree in trees for node in ast.walk(tree)):
        return passed()
    return failed(Flaw.NOT_COMPUTED, "no program computes anything")


def _as_asked(sample: Sample) -> tuple[Sample, ...]:
    """The sample, and where it has choices also the one that asks for the right choice's text."""
    if not sample.choices:
        return (sample,)
    text = dict(map(split_choice, sample.choices))[sample.answer]
    return sample, replace(sample, choices=(), answer=text)


def _candidates(trajectory: Trajectory) -> Iterator[str]:
    """Lines, from the last one up; what stands behind their last colon or equals sign; their numbers."""
    for turn in reversed(trajectory.rounds):
        for line in reversed(turn.observation.text.splitlines()[-MAX_LINES:]):
            text = line.strip()[:400]
            if text:
                yield from (text, re.split(r"[:=]", text)[-1].strip(), *_NUMBER.findall(text))


def _printed_constants(tree: ast.Module) -> Iterator[str]:
    """The constants among the arguments of ``print``, and all numbers in those that are text."""
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"):
            continue
        pieces = [
            piece for given in call.args for piece in (given.values if isinstance(given, ast.JoinedStr) else [given])
        ]
        for piece in pieces:
            if isinstance(piece, ast.Constant):
                yield str(piece.value)
                yield from re.split(r"[:=]", str(piece.value))[1:]


def _computes(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return not (isinstance(node.func, ast.Name) and node.func.id == "print")
    return isinstance(node, _COMPUTING)
