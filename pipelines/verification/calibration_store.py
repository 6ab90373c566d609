"""A workspace's calibrations: how far each judge agrees with people, and the threshold that follows, in one file each.

    <home>/calibrations/consistency.json

A calibration holds for one judge alone: one check of one version and prompt, one model with its revision and sampling,
one number of votes. For any other it does not exist, and the card says "not calibrated". The embedded judge is
calibrated on the labels that come with the toolkit (``judges/labelled/``), unless people's own are there.
"""

import asyncio
import inspect
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from darkroom.pipelines.records import Provenance, Trajectory, Usage
from darkroom.pipelines.records.digest import digest, digest_bytes
from darkroom.pipelines.records.samples import bare_sample
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.store_paths import StorePath
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.check import JudgedCheck
from darkroom.pipelines.verification.judges import EmbeddedJudge, Judge
from darkroom.pipelines.verification.judges.calibration import (
    Calibration,
    Counts,
    Interval,
    Label,
    calibrate,
    calibrate_for,
    read_labels,
)

BUNDLED = Path(__file__).with_name("judges") / "labelled"
_MEASURES = ("precision", "recall", "kappa")
_BY_NOBODY = Provenance(
    policy="", model="", revision="", sampling="{}", prompt_digest="", sandbox_digest="", seed=0, code_version=""
)


@dataclass(frozen=True, slots=True)
class StoredCalibration:
    """A judge's calibration as it is kept. ``identity`` is all that determines the judge's votes."""

    judge: str
    """The check that asks it."""
    identity: Mapping[str, Any]
    calibration: Calibration
    labels: str
    """Digest of the rows and what people said of them."""
    labelled: str
    """The name of the file that they came from."""
    reviewers: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Make the JSON form for the file, the digest of a stage's inputs and the card; NaN is null."""
        numbers = asdict(self.calibration)
        for name in _MEASURES:
            numbers[name] = {part: value if math.isfinite(value) else None for part, value in numbers[name].items()}
        return {**asdict(self), "reviewers": list(self.reviewers), "calibration": numbers}


def identity_of(check: JudgedCheck, judge: Judge) -> dict[str, Any]:
    """All that determines how ``judge`` votes in ``check``."""
    rule = Path(inspect.getfile(check.question.rule)).read_bytes()
    embedded = {"rule": digest_bytes(rule)[:12]} if judge.identity["policy"] == "embedded" else {}
    question = {"version": check.version, "question": check.question.name, "prompt": check.question.prompt.digest}
    return {**question, **judge.identity, **embedded}


class CalibrationStore:
    """The calibrations below one folder."""

    def __init__(self, folder: StorePath) -> None:
        self.folder = folder

    def path(self, judge: str) -> StorePath:
        return self.folder / f"{judge}.json"

    def of(self, check: JudgedCheck, judge: Judge) -> StoredCalibration | None:
        """The calibration of exactly this judge, if there is one."""
        stored = self._read(check.name)
        return stored if stored is not None and stored.identity == identity_of(check, judge) else None

    def write(self, frozen: StoredCalibration) -> StorePath:
        """Whole or not at all."""
        path = self.path(frozen.judge)
        write_whole(path, json.dumps(frozen.as_json(), indent=2, sort_keys=True) + "\n")
        return path

    def add_bundled(self, check: JudgedCheck, store: ImageStore) -> None:
        """Calibrates the embedded judge on the labels that come with the toolkit; what people made is left alone. It
        takes milliseconds, so it is done each time: a rule also changes with what it calls."""
        path = BUNDLED / f"{check.name}.jsonl"
        judge = EmbeddedJudge()
        there = self._read(check.name)
        if not path.exists() or (there is not None and there.labelled != _name(path)):
            return
        labels = read_labels(path, check.name).labels
        scores = asyncio.run(_scores(check, judge, [inline_case(label, store) for label in labels]))
        if (calibration := stored_calibration(check, judge, labels, scores, labelled=_name(path))) != there:
            self.write(calibration)

    def _read(self, judge: str) -> StoredCalibration | None:
        """Read a stored calibration. Raises ``ValueError`` for another file, naming it."""
        if not (path := self.path(judge)).exists():
            return None
        try:
            return _frozen(json.loads(path.read_text()))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is no calibration; run `darkroom calibrate {judge}` again") from error


def stored_calibration(
    check: JudgedCheck,
    judge: Judge,
    labels: Sequence[Label],
    scores: Sequence[float],
    *,
    labelled: str,
    target_precision: float | None = None,
) -> StoredCalibration:
    """The judge's ``scores`` against the labels. Raises ``CalibrationError``."""
    good = [label.is_good for label in labels]
    if target_precision is None:
        calibration = calibrate(scores, good)
    else:
        calibration = calibrate_for(scores, good, target_precision=target_precision)
    lines = [(label.line, label.is_good) for label in labels]
    judgements = digest(sorted([line.family, line.row, digest(line.model_dump()), is_good] for line, is_good in lines))
    reviewers = tuple(sorted({name for label in labels for name in label.reviewers}))
    return StoredCalibration(
        check.name, identity_of(check, judge), calibration, labels=judgements, labelled=labelled, reviewers=reviewers
    )


def inline_case(label: Label, store: ImageStore) -> Case:
    """The case of a line that brings its text itself."""
    line = label.line
    assert line.question is not None
    row = digest(line.model_dump(include={"question", "choices", "expected", "thought", "answer"}))
    origin: dict[str, Any] = {"source": "labels", "source_row": line.row}
    sample = bare_sample(row, line.question, choices=tuple(line.choices), answer=line.expected, **origin)
    names, said = (row, row, line.family, ""), ((), line.thought, line.answer)
    trajectory = Trajectory(*names, (), *said, "last_round", (), Usage(), _BY_NOBODY)
    return Case(sample, trajectory, {}, store)


async def _scores(check: JudgedCheck, judge: Judge, cases: Sequence[Case]) -> list[float]:
    return [verdict.score or 0.0 for verdict in [await check.ask(case, judge) for case in cases]]


def _frozen(stored: Mapping[str, Any]) -> StoredCalibration:
    numbers = dict(stored["calibration"])
    for name in _MEASURES:
        numbers[name] = Interval(**{part: math.nan if n is None else n for part, n in numbers[name].items()})
    calibration = Calibration(**numbers)
    if "n_chosen_on" not in stored["calibration"]:
        calibration = _with_intervals(calibration)
    return StoredCalibration(**{**stored, "reviewers": tuple(stored["reviewers"]), "calibration": calibration})


def _with_intervals(old: Calibration) -> Calibration:
    """Recompute the intervals of older versions from their counts: those of the bootstrap were too narrow."""
    if not old.precision.value > 0:
        return old  # how many passed is not known
    good_passed = round(old.recall.value * old.n_good)
    bad_passed = round(good_passed / old.precision.value) - good_passed
    bad_stopped = old.n_labels - old.n_good - bad_passed
    counts = Counts(good_passed, bad_passed, old.n_good - good_passed, bad_stopped)
    return replace(counts.calibration(old.threshold), target_precision=old.target_precision)


def _name(path: Path) -> str:
    return f"bundled: {path.name}"
