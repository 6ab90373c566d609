"""A judge against people's labels, on planted judges of known quality."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, precision_score, recall_score

from pipelines.verification.judges.calibration import CalibrationError, Interval, calibrate, calibrate_for


def _planted(n: int, *, accuracy: float, seed: int = 0) -> tuple[list[float], list[bool]]:
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.6
    votes = np.where(rng.random((8, n)) < accuracy, labels, ~labels)
    return list(votes.mean(axis=0)), list(labels)


def test_the_estimates_are_those_of_the_textbook():
    scores, labels = _planted(300, accuracy=0.7)
    found = calibrate(scores, labels, threshold=0.5)
    passes = np.asarray(scores) >= 0.5
    assert found.precision.value == pytest.approx(precision_score(labels, passes))
    assert found.recall.value == pytest.approx(recall_score(labels, passes))
    assert found.kappa.value == pytest.approx(cohen_kappa_score(labels, passes))


def test_an_interval_holds_the_truth_about_as_often_as_it_says():
    accuracy, hits = 0.8, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        labels = rng.random(200) < 0.5
        passes = np.where(rng.random(200) < accuracy, labels, ~labels)
        found = calibrate(list(passes.astype(float)), list(labels), seed=seed)
        hits += found.precision.low <= accuracy <= found.precision.high
    assert hits >= 34


def test_the_threshold_is_the_lowest_that_is_precise_enough():
    scores, labels = _planted(400, accuracy=0.65)
    found = calibrate_for(scores, labels, target_precision=0.9)
    assert found.precision.value >= 0.9
    lower = max(score for score in scores if score < found.threshold)
    assert calibrate(scores, labels, threshold=lower).precision.value < 0.9
    assert found.target_precision == 0.9


def test_a_target_out_of_reach_names_the_best():
    labels = [n % 2 == 0 for n in range(40)]
    with pytest.raises(CalibrationError, match=r"the best is 0\.5"):
        calibrate_for([1.0] * 40, labels, target_precision=0.99)


def test_the_same_labels_give_the_same_numbers():
    scores, labels = _planted(60, accuracy=0.7)
    assert calibrate(scores, labels) == calibrate(scores, labels)


@pytest.mark.parametrize(
    ("scores", "labels", "said"),
    [
        ([1.0] * 5, [True] * 5, "at least 20"),
        ([1.0] * 30, [True] * 30, "all 30 labels say good"),
        ([1.0] * 30, [False] * 30, "all 30 labels say bad"),
        ([1.0] * 30, [True] * 29, "30 scores and 29 labels"),
        ([float("nan")] * 30, [True, False] * 15, "finite"),
    ],
)
def test_what_cannot_be_measured_is_said(scores, labels, said):
    with pytest.raises(CalibrationError, match=said):
        calibrate(scores, labels)


def test_an_interval_reads_as_people_write_it():
    assert str(Interval(0.91234, 0.85, 0.96)) == "0.912 (0.850 to 0.960)"
