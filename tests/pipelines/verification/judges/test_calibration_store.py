"""Calibrations: kept, found by exactly the judge that was calibrated, and bundled for the embedded one."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from darkroom.pipelines.models.policies import OraclePolicy, PolicyIdentity
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.calibration_store import (
    BUNDLED,
    CalibrationStore,
    StoredCalibration,
    identity_of,
    inline_case,
    stored_calibration,
)
from darkroom.pipelines.verification.checks import consistency, judge_effective
from darkroom.pipelines.verification.judges import EmbeddedJudge, PolicyJudge
from darkroom.pipelines.verification.judges.calibration import Counts, Interval, read_labels


@pytest.fixture
def calibrations(tmp_path: Path) -> CalibrationStore:
    return CalibrationStore(tmp_path / "calibrations")


def frozen(judge, labels=None) -> StoredCalibration:
    said = labels or read_labels(BUNDLED / "consistency.jsonl", "consistency").labels
    return stored_calibration(consistency, judge, said, [float(label.is_good) for label in said], labelled="mine.jsonl")


def judge(model: str = "m", n_votes: int = 1) -> PolicyJudge:
    policy = OraclePolicy(lambda turn: "", revision="1")
    policy.identity = PolicyIdentity("openai", model)
    return PolicyJudge(policy, n_votes=n_votes)


def test_what_is_written_is_read_again(calibrations: CalibrationStore) -> None:
    made = frozen(judge())
    assert calibrations.write(made) == calibrations.path("consistency")
    assert calibrations.of(consistency, judge()) == made


def test_what_is_not_defined_survives_the_file(calibrations: CalibrationStore) -> None:
    made = frozen(judge())
    undefined = replace(made, calibration=replace(made.calibration, kappa=Interval(math.nan, math.nan, math.nan)))
    calibrations.write(undefined)
    found = calibrations.of(consistency, judge())
    assert found is not None
    assert math.isnan(found.calibration.kappa.value)


def test_narrow_intervals_of_an_older_version_are_made_anew(calibrations: CalibrationStore) -> None:
    """As versions up to 0.1 wrote them: percentiles of a bootstrap, on the labels that had chosen the threshold."""
    path = calibrations.write(frozen(judge()))
    stored = json.loads(path.read_text())
    numbers = stored["calibration"]
    del numbers["n_chosen_on"]
    numbers |= {"n_labels": 70, "n_good": 40, "threshold": 0.75, "target_precision": 0.9}
    numbers["precision"] = {"value": 36 / 38, "low": 0.94, "high": 0.96}
    numbers["recall"] = {"value": 36 / 40, "low": 0.89, "high": 0.91}
    numbers["kappa"] = {"value": 0.83, "low": 0.82, "high": 0.84}
    path.write_text(json.dumps(stored))
    found = calibrations.of(consistency, judge())
    assert found is not None
    assert found.calibration == replace(Counts(36, 2, 4, 28).calibration(0.75), target_precision=0.9)
    assert found.calibration.precision.low < 0.83


@pytest.mark.parametrize("other", [judge("other"), judge(n_votes=3), EmbeddedJudge()])
def test_another_judge_is_not_calibrated(calibrations: CalibrationStore, other) -> None:
    calibrations.write(frozen(judge()))
    assert calibrations.of(consistency, other) is None


def test_another_version_of_the_check_is_not_calibrated(calibrations: CalibrationStore) -> None:
    calibrations.write(frozen(judge()))
    assert calibrations.of(replace(consistency, version=99), judge()) is None


def test_a_file_that_is_no_calibration_is_named(calibrations: CalibrationStore) -> None:
    calibrations.folder.mkdir()
    calibrations.path("consistency").write_text('{"judge": 1}')
    with pytest.raises(ValueError, match=r"consistency\.json is no calibration"):
        calibrations.of(consistency, judge())


def test_the_digest_of_the_labels_changes_with_them_and_not_with_their_order() -> None:
    labels = list(read_labels(BUNDLED / "consistency.jsonl", "consistency").labels)
    turned = [replace(labels[0], is_good=not labels[0].is_good), *labels[1:]]
    assert frozen(judge(), labels).labels == frozen(judge(), labels[::-1]).labels
    assert frozen(judge(), labels).labels != frozen(judge(), turned).labels


def test_the_embedded_judge_is_calibrated_on_what_is_bundled(calibrations: CalibrationStore, store: ImageStore) -> None:
    calibrations.add_bundled(consistency, store)
    found = calibrations.of(consistency, EmbeddedJudge())
    assert found is not None
    numbers = found.calibration
    assert numbers.n_labels >= 60
    assert 0.3 < numbers.n_good / numbers.n_labels < 0.7
    assert numbers.precision.value > 0.8
    assert numbers.recall.value > 0.9
    assert numbers.kappa.low > 0.5


def test_what_people_calibrated_is_not_replaced(calibrations: CalibrationStore, store: ImageStore) -> None:
    path = calibrations.write(frozen(judge()))
    before = path.read_bytes()
    calibrations.add_bundled(consistency, store)
    assert path.read_bytes() == before


def test_a_bundled_calibration_of_older_code_is_made_anew(calibrations: CalibrationStore, store: ImageStore) -> None:
    calibrations.add_bundled(consistency, store)
    path = calibrations.path("consistency")
    whole = path.read_bytes()
    stored = json.loads(whole)
    path.write_text(json.dumps({**stored, "identity": {**stored["identity"], "rule": "old"}}))
    assert calibrations.of(consistency, EmbeddedJudge()) is None
    calibrations.add_bundled(consistency, store)
    assert path.read_bytes() == whole


def test_a_judge_without_bundled_labels_stays_uncalibrated(calibrations: CalibrationStore, store: ImageStore) -> None:
    calibrations.add_bundled(judge_effective, store)
    assert not calibrations.path("judge_effective").exists()


def test_every_bundled_line_is_a_label_that_brings_its_text(store: ImageStore) -> None:
    for path in BUNDLED.glob("*.jsonl"):
        found = read_labels(path, path.stem)
        assert (found.rejects, found.n_other) == ([], 0)
        for label in found.labels:
            assert inline_case(label, store).sample.question


def test_a_judges_identity_names_its_prompt_and_its_votes() -> None:
    found = identity_of(consistency, judge(n_votes=5))
    assert (found["model"], found["n_votes"], found["prompt"]) == ("m", 5, consistency.question.prompt.digest)
