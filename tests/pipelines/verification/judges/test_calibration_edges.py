"""Calibration at its edges: the fewest labels, scores on the threshold, shares of nothing."""

import math

import numpy as np
import pytest

from darkroom.pipelines.verification.judges.calibration import (
    MAJORITY,
    CalibrationError,
    Counts,
    Interval,
    calibrate,
    calibrate_for,
)


def alternating(n: int) -> tuple[list[float], list[bool]]:
    labels = [number % 2 == 0 for number in range(n)]
    return [float(label) for label in labels], labels


def test_twenty_labels_are_enough_and_nineteen_are_not():
    assert calibrate(*alternating(20)).n_labels == 20
    with pytest.raises(CalibrationError, match="19 labels say nothing; label at least 20 rows"):
        calibrate(*alternating(19))


def test_a_threshold_is_chosen_with_forty_labels_and_not_with_fewer():
    found = calibrate_for(*alternating(40), target_precision=1.0)
    assert (found.n_labels, found.n_chosen_on, found.threshold, found.target_precision) == (20, 20, 1.0, 1.0)
    assert found.precision.value == 1.0
    with pytest.raises(CalibrationError, match="39 labels, 20 of them good"):
        calibrate_for(*alternating(39), target_precision=1.0)


@pytest.mark.parametrize("kind", [True, False])
def test_a_half_with_labels_of_one_kind_measures_nothing(kind):
    """One label is of the other kind: where it chose the threshold, the half that is measured lacks it."""
    errors = []
    for odd in range(60):
        labels = [kind if n != odd else not kind for n in range(60)]
        try:
            calibrate_for([n / 60 for n in range(60)], labels, target_precision=0.0)
        except CalibrationError as error:
            errors.append("label at least 40 rows, good and bad ones" in str(error))
    assert errors == [True] * 30


def test_a_score_on_the_threshold_passes():
    scores, labels = alternating(20)
    assert calibrate([score / 2 for score in scores], labels, threshold=0.5).recall.value == 1.0
    assert calibrate([score / 2 for score in scores], labels, threshold=0.51).recall.value == 0.0


def test_without_a_threshold_more_than_half_of_the_votes_pass_a_row():
    scores, labels = alternating(20)
    for share, recall in ((0.5, 0.0), (49 / 99, 0.0), (50 / 99, 1.0), (2 / 3, 1.0)):
        found = calibrate([share * score for score in scores], labels)
        assert (found.recall.value, found.threshold) == (recall, MAJORITY)


def test_each_measure_is_a_share_of_its_own_rows():
    found = Counts(good_passed=36, bad_passed=2, good_stopped=4, bad_stopped=28).calibration(0.75)
    assert (found.threshold, found.n_labels, found.n_good, found.target_precision) == (0.75, 70, 40, None)
    measures = (found.precision, found.recall, found.kappa)
    expected = [(36 / 38, 0.8225, 0.9936), (36 / 40, 0.7634, 0.9721), (0.8264, 0.6410, 0.9350)]
    for measure, figures in zip(measures, expected, strict=True):
        assert (measure.value, measure.low, measure.high) == pytest.approx(figures, abs=5e-5)
    assert found.n_chosen_on == 0


def test_of_nothing_that_passed_no_precision_is_known():
    found = Counts(0, 0, 4, 16).calibration(0.5)
    assert all(map(math.isnan, (found.precision.value, found.precision.low, found.precision.high)))
    assert (found.recall.value, found.recall.low, found.recall.high) == pytest.approx((0, 0, 0.6024), abs=5e-5)


def test_a_share_of_all_has_no_bound_above():
    found = Counts(10, 0, 0, 10).calibration(0.5)
    assert (found.precision.value, found.precision.low, found.precision.high) == pytest.approx((1, 0.6915, 1), abs=5e-5)
    assert str(Interval(0.5, 0.25, 1)) == "0.500 (0.250 to 1.000)"


def test_the_lowest_threshold_that_reaches_the_target_is_taken():
    """Half of the rows score 0.5 and are good three times in four, the others 0.9 and are good."""
    rng = np.random.default_rng(1)
    labels = [True] * 200 + [n % 4 > 0 for n in range(200)] + [False] * 100
    scores = [0.9] * 200 + [0.5] * 200 + [0.1] * 100
    order = rng.permutation(500)
    shuffled = [scores[n] for n in order], [labels[n] for n in order]
    thresholds = [calibrate_for(*shuffled, target_precision=target).threshold for target in (0.5, 0.8, 0.95, 1.0)]
    assert thresholds == [0.1, 0.5, 0.9, 0.9]


def test_the_best_precision_is_named_where_none_reaches_the_target():
    labels = [n % 2 == 0 for n in range(200)]
    scores = [0.25 if n % 4 else 0.75 for n in range(200)]
    labels = [good or n % 8 == 0 for n, good in enumerate(labels)]
    scores[4::8] = [0.25] * 25
    labels[0] = False
    with pytest.raises(CalibrationError, match=r"precision of 1; the best is 0\.\d+ at 0\.75"):
        calibrate_for(scores, labels, target_precision=1)


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_a_score_is_a_finite_number(bad):
    scores, labels = alternating(20)
    with pytest.raises(CalibrationError, match="not a finite number"):
        calibrate([bad, *scores[1:]], labels)
