"""Checks on what code printed and drew: it carries the answer, was computed; a figure is its own, and was needed. Of
released trajectories: what the sandbox shows now is what the release says that its code showed."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
from PIL import Image

from darkroom.pipelines.models.messages import Text
from darkroom.pipelines.models.parsing import parsed
from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.models.tasks import spelled_answer
from darkroom.pipelines.records import ImageRef, Observation, Sample, Trajectory
from darkroom.pipelines.records.samples import details_of
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.check import CheckResult, Flaw, check, decided, failed, passed
from darkroom.pipelines.verification.grading import grade

MAX_LINES = 30
"""Of each observation, the last ones: where programs print their result."""
MAX_CANDIDATES = 40
"""Different ones; an expression takes some 0.02 s to compare."""
_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?(?:/\d+)?")
_COMPUTING = (
    ast.Call, ast.BinOp, ast.AugAssign, ast.Compare, ast.For, ast.While,
    ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp,
)  # fmt: skip


@check()
def output_supports_answer(case: Case) -> CheckResult:
    """Printed output holds the sample's answer, by value and not by chance of spelling."""
    samples = _as_asked(case.sample)
    for candidate in islice(dict.fromkeys(_candidates(case.trajectory)), MAX_CANDIDATES):
        if any(grade(candidate, sample).right for sample in samples):
            return passed(f"printed {candidate[:80]!r}")
    return failed(Flaw.UNSUPPORTED, f"no program printed {samples[-1].answer!r}")


@check()
def program_computes(case: Case) -> CheckResult:
    """Some program computes something, and none prints the answer as a constant of its own."""
    trees = [tree for turn in case.trajectory.rounds if (tree := parsed(turn.code)) is not None]
    samples = _as_asked(case.sample)
    for constant in (text for tree in trees for text in _printed_constants(tree)):
        if any(grade(constant, sample).right for sample in samples):
            return failed(Flaw.NOT_COMPUTED, f"the program prints {constant!r}, which it was told")
    if any(isinstance(node, _COMPUTING) and not _is_print(node) for tree in trees for node in ast.walk(tree)):
        return passed()
    return failed(Flaw.NOT_COMPUTED, "no program computes anything")


def _as_asked(sample: Sample) -> tuple[Sample, ...]:
    """The sample, and where it has choices also the one that asks for the right choice's text."""
    if not sample.choices:
        return (sample,)
    return sample, replace(sample, choices=(), answer=spelled_answer(sample))


def _candidates(trajectory: Trajectory) -> Iterator[str]:
    """Lines, from the last one up; what stands behind their last colon or equals sign; their numbers."""
    for turn in reversed(trajectory.rounds):
        for line in reversed(turn.observation.text.splitlines()[-MAX_LINES:]):
            if text := line.strip()[:400]:
                yield from (text, re.split(r"[:=]", text)[-1].strip(), *_NUMBER.findall(text))


def _printed_constants(tree: ast.Module) -> Iterator[str]:
    """The constants among the arguments of ``print``, and all numbers in those that are text."""
    for argument in (argument for node in ast.walk(tree) if _is_print(node) for argument in node.args):
        for piece in argument.values if isinstance(argument, ast.JoinedStr) else [argument]:
            if isinstance(piece, ast.Constant):
                yield str(piece.value)
                yield from re.split(r"[:=]", str(piece.value))[1:]


def _is_print(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"


MIN_SIDE = 64
"""Pixels; a smaller image shows nothing to a reader."""
MIN_EDGE_SHARE = 0.0005
"""Of the inner part's pixels: three points of a scatter plot have twice as many, an empty pair of axes has none."""
MIN_SPREAD = 0.25
"""What a drawing reaches across, as a share of the inner part's side; a number written in the middle does not."""
_EDGE = 32.0
"""A step between neighbours, of 255 levels of grey, that the eye takes for a line."""
_INNER = (0.14, 0.88)
"""Where matplotlib's frame and tick labels are not."""
_SAME = 3.0
"""Mean difference in levels of grey below which two small copies are one image."""

Grey = npt.NDArray[np.float32]


@check()
def figure_rendered(case: Case) -> CheckResult:
    """Every image that came back is a drawing of the program's own; ``score`` is the least share of edges."""
    if not (images := case.observed):
        return failed(Flaw.NO_IMAGE, "no program showed an image", score=0.0)
    originals = [_small(case, image) for image in case.trajectory.images]
    shares = []
    for n, image in enumerate(images, 1):
        if any(np.abs(_small(case, image) - original).mean() < _SAME for original in originals):
            return failed(Flaw.FIGURE_NOT_DRAWN, f"image {n} is an image of the question")
        share, spread = _ink(np.asarray(case.store.open(image).convert("L"), dtype=np.float32))
        if min(image.width, image.height) < MIN_SIDE or share < MIN_EDGE_SHARE or spread < MIN_SPREAD:
            what = f"{image.width}x{image.height} pixels, edges {share:.2%}, reaching across {spread:.0%}"
            return failed(Flaw.FIGURE_BLANK, f"image {n} shows no drawing: {what}", score=round(share, 4))
        shares.append(share)
    return passed(f"images: {len(images)}", score=round(min(shares), 4))


@check()
def drawing_needed(case: Case) -> CheckResult:
    """No program printed the answer or holds it as a text of its own: it has to be read off the drawing.

    FIGR §3.1. What is read off is compared by ``answer_verified``. Not found is an answer that a program
    computed and wrote into its own drawing.
    """
    if (printed := output_supports_answer.judge(case)).flaw is None:
        return failed(Flaw.ANSWER_PRINTED, f"the drawing was not needed: {printed.detail}")
    for n, turn in enumerate(case.trajectory.rounds, 1):
        for text in _texts(turn.code):
            values = {text.strip(), text.replace("=", ":").rpartition(":")[2].strip()}
            if any(grade(value, case.sample).right for value in values):
                return failed(Flaw.ANSWER_PRINTED, f"round {n} writes {text[:60]!r} into the drawing")
    return passed()


def _texts(code: str, most: int = 40) -> list[str]:
    """Texts in the code that hold a number and are short enough to be a value with a name before it."""
    tree = parsed(code)
    nodes = ast.walk(tree) if tree is not None else iter(())
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [text for text in dict.fromkeys(texts) if len(text) <= 80 and re.search(r"\d", text)][:most]


def _small(case: Case, image: ImageRef) -> Grey:
    return np.asarray(case.store.open(image).convert("L").resize((32, 32)), dtype=np.float32)


def _ink(grey: Grey) -> tuple[float, float]:
    """The share of edges in the inner part, and how far across they reach."""
    height, width = grey.shape
    low, high = _INNER
    inner = grey[int(low * height) : int(high * height), int(low * width) : int(high * width)]
    if min(inner.shape) < 2:
        return 0.0, 0.0
    edges = np.hypot(np.diff(inner, axis=0)[:, :-1], np.diff(inner, axis=1)[:-1]) > _EDGE
    rows, columns = np.flatnonzero(edges.any(axis=1)), np.flatnonzero(edges.any(axis=0))
    if not rows.size:
        return 0.0, 0.0
    spread = max(np.ptp(rows) / edges.shape[0], np.ptp(columns) / edges.shape[1])
    return float(edges.mean()), float(spread)


MAX_DIFFERENCE = 8.0
"""Mean difference of two images' pixels in levels of 255: releases re-encode theirs as JPEG."""
_MARKER = re.compile(r"</?\w{1,20}>")


def release_of(sample: Sample) -> dict[str, Any] | None:
    """The source's record of the released trajectory (``pipelines/sources/transcripts.py``); None without one."""
    release = details_of(sample).get("released")
    return release if isinstance(release, dict) else None


@check()
def replays_as_released(case: Case) -> CheckResult:
    """Every round shows what the release says that it showed; ``score`` is the share of rounds that do.

    Images are compared by size and pixels, as JPEG leaves them; the text is compared of rounds without images only,
    because every tool has words of its own for an image.
    """
    release, rounds = release_of(case.sample), case.trajectory.rounds
    if release is None:
        return failed(Flaw.OTHER_OBSERVATION, "the sample holds no released trajectory", score=0.0)
    observations = release["observations"]
    if len(rounds) != len(observations):
        return failed(Flaw.OTHER_OBSERVATION, f"{len(rounds)} rounds; the release has {len(observations)}", score=0.0)
    images = list(case.sample.images[release["n_question_images"] :])
    others = []
    for number, (turn, recorded) in enumerate(zip(rounds, observations, strict=True), start=1):
        described, images = images[: recorded["n_images"]], images[recorded["n_images"] :]
        released, now = ([case.store.open(ref) for ref in refs] for refs in (described, turn.observation.images))
        protocol, text = case.trajectory.protocol, recorded["text"]
        if difference := observation_difference(protocol, turn.observation, now, text, released):
            others.append(f"round {number}: {difference}")
    score = round(1 - len(others) / len(rounds), 4) if rounds else 1.0
    return decided(not others, Flaw.OTHER_OBSERVATION, "; ".join(others) or f"{len(rounds)} rounds", score=score)


@check(version=2)
def agrees_with_label(case: Case) -> CheckResult:
    """The answer is the release's label, where it has one besides the trajectory's own answer."""
    if (release := release_of(case.sample)) is None or not release["has_label"]:
        return passed("not compared: the release has no label besides this answer")
    verdict = grade(case.trajectory.answer, case.sample)
    return decided(verdict.right, Flaw.WRONG_ANSWER, f"{verdict.kind}: {verdict.detail}")


def observation_difference(
    protocol: str,
    observation: Observation,
    images: Sequence[Image.Image],
    released_text: str,
    released_images: Sequence[Image.Image],
    *,
    max_difference: float = MAX_DIFFERENCE,
) -> str:
    """Describe how an observation with ``images`` differs from the released one; empty if it does not.
    ``max_difference``: of pixels, on average, in levels of 255."""
    if len(images) != len(released_images):
        error = f" ({observation.error})" if observation.error else ""
        return f"{len(images)} images{error}, released {len(released_images)}"
    for before, after in zip(released_images, images, strict=True):
        if before.size != after.size:
            return f"an image of {after.width}x{after.height}, released {before.width}x{before.height}"
        pixels = [np.asarray(image.convert("RGB"), np.int16) for image in (before, after)]
        if (mean := float(np.abs(pixels[0] - pixels[1]).mean())) > max_difference:
            return f"an image of other pixels, by {mean:.3g} of 255 on average"
    if images:
        return ""
    parts = PROTOCOLS[protocol].wrap(observation)
    printed = _MARKER.sub("", "".join(part.text for part in parts if isinstance(part, Text)))
    now, before_text = (" ".join(text.split()) for text in (printed, released_text))
    return "" if now == before_text else f"printed {now[:80]!r}, released {before_text[:80]!r}"
