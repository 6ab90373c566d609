"""A judge against people's labels, on planted judges of known quality."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, precision_score, recall_score

from darkroom.pipelines.verification.judges.calibration import CalibrationError, Interval, calibrate, calibrate_for


def _planted(n: int, *, accuracy: float) -> tuple[list[float], list[bool]]:
    rng = np.random.default_rng(0)
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


@pytest.mark.parametrize("n", [20, 70, 200])
@pytest.mark.parametrize("accuracy", [0.8, 0.97])
def test_an_interval_holds_the_truth_as_often_as_it_says(n: int, accuracy: float) -> None:
    """Percentiles of a bootstrap did 64 times of 100."""
    good, n_tries = 0.6, 300
    passed = good * accuracy + (1 - good) * (1 - accuracy)
    by_chance = passed * good + (1 - passed) * (1 - good)
    truth = {"precision": good * accuracy / passed, "recall": accuracy}
    truth["kappa"] = (accuracy - by_chance) / (1 - by_chance)
    hits = dict.fromkeys(truth, 0)
    rng = np.random.default_rng(n)
    for _ in range(n_tries):
        labels = rng.random(n) < good
        if labels.all() or not labels.any():
            continue
        passes = np.where(rng.random(n) < accuracy, labels, ~labels)
        found = calibrate(list(passes.astype(float)), list(labels))
        for name, value in truth.items():
            hits[name] += getattr(found, name).low <= value <= getattr(found, name).high
    assert all(0.94 * n_tries <= hit for hit in hits.values()), hits


def test_a_chosen_threshold_is_measured_on_labels_that_did_not_choose_it() -> None:
    """On the same labels, the precision of a judge that knows nothing would look like the target."""
    reached, held = [], 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        scores, labels = list(rng.integers(0, 9, 80) / 8), list(rng.random(80) < 0.6)
        try:
            found = calibrate_for(scores, labels, target_precision=0.7)
        except CalibrationError:
            continue
        if not np.isnan(found.precision.value):
            reached.append(found.precision.value)
            held += found.precision.low <= 0.6 <= found.precision.high
    assert len(reached) > 60
    assert np.mean(reached) == pytest.approx(0.6, abs=0.04)
    assert held >= 0.92 * len(reached)


def test_the_threshold_is_the_lowest_that_is_precise_enough() -> None:
    scores, labels = _planted(4000, accuracy=0.65)
    found = calibrate_for(scores, labels, target_precision=0.9)
    assert (found.target_precision, found.n_chosen_on, found.n_labels) == (0.9, 2000, 2000)
    lower = max(score for score in scores if score < found.threshold)
    assert calibrate(scores, labels, threshold=found.threshold).precision.value > 0.88
    assert calibrate(scores, labels, threshold=lower).precision.value < 0.9


def test_the_order_of_the_labels_decides_nothing() -> None:
    scores, labels = _planted(60, accuracy=0.7)
    turned = calibrate_for(scores[::-1], labels[::-1], target_precision=0.6)
    assert calibrate_for(scores, labels, target_precision=0.6) == turned


def test_too_few_labels_for_two_halves_are_said() -> None:
    with pytest.raises(CalibrationError, match="at least 40 rows"):
        calibrate_for(*_planted(39, accuracy=0.9), target_precision=0.5)


def test_where_all_agree_the_interval_still_has_a_width() -> None:
    labels = [n % 2 == 0 for n in range(40)]
    found = calibrate([float(label) for label in labels], labels)
    assert found.kappa.low < 0.9 < found.kappa.value == found.kappa.high == 1.0
    assert found.precision.low < 0.85


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
