"""Votes: who wins, what a tie is, and what a share is of."""

import pytest

from darkroom.pipelines.records import CheckedLabel, Grader, PassRate, ToolNecessity, Usage, Votes, from_row, to_row
from darkroom.pipelines.records.rl import majority, shipped_grader

Y, N, X = True, False, None


def votes(*ballots: bool | None, threshold: float | None = None, **more) -> Votes:
    return Votes("judge", ballots, n_wanted=6, threshold=threshold, **more)


@pytest.mark.parametrize(
    ("n_yes", "n_no", "side"), [(0, 0, "tie"), (1, 1, "tie"), (2, 1, "yes"), (1, 2, "no"), (1, 0, "yes"), (0, 1, "no")]
)
def test_the_larger_side_is_the_majority(n_yes, n_no, side):
    assert majority(n_yes, n_no) == side
    assert votes(*[Y] * n_yes, *[N] * n_no, X).majority == side


def test_every_ballot_is_counted_once():
    counted = votes(Y, Y, N, X)
    assert (counted.n, counted.n_yes, counted.n_no, counted.n_invalid, counted.n_saved) == (4, 2, 1, 1, 2)


@pytest.mark.parametrize(
    ("ballots", "share", "agreement"),
    [
        ((), 0.0, 0.0),
        ((X,), 0.0, 0.0),
        ((Y,), 1.0, 1.0),
        ((N,), 0.0, 1.0),
        ((Y, N), 0.5, 0.5),
        ((Y, N, N, N), 0.25, 0.75),
        ((Y, Y, X, X), 0.5, 1.0),
        ((Y, Y, N, X), 0.5, 2 / 3),
    ],
)
def test_a_share_is_of_all_ballots_and_agreement_of_the_valid_ones(ballots, share, agreement):
    assert votes(*ballots).share == share
    assert votes(*ballots).agreement == pytest.approx(agreement)


@pytest.mark.parametrize(
    ("ballots", "threshold", "passes"),
    [
        ((Y, N), None, False),
        ((Y, Y, N), None, True),
        ((Y, Y, X, X), None, False),
        ((), None, False),
        ((Y, N), 0.5, True),
        ((Y, N), 0.51, False),
        ((N, N), 0.0, True),
        ((Y, Y, Y, N), 0.8, False),
    ],
)
def test_more_than_half_or_the_threshold_lets_a_row_pass(ballots, threshold, passes):
    assert votes(*ballots, threshold=threshold).says_yes is passes


def test_votes_read_with_the_first_reason_that_was_given():
    assert str(votes(Y, N)) == "judge: 1 of 2 say yes"
    assert str(votes(Y, N, reasons=("", "blurred", "other"))) == "judge: 1 of 2 say yes; blurred"


def test_need_of_tools_is_what_they_add():
    forced, forbidden = votes(Y, Y, Y, N, usage=Usage(1)), votes(Y, N, N, N, usage=Usage(2))
    necessity = ToolNecessity("s", forced, forbidden)
    assert (necessity.prior, necessity.usage) == (0.5, Usage(3))
    assert ToolNecessity("s", forbidden, forced).prior == -0.5


def test_what_was_voted_on_costs_its_votes():
    paid = votes(Y, usage=Usage(3, 2, 1, 0.5))
    assert CheckedLabel("s", paid).usage == PassRate("s", paid, never_solved=False).usage == Usage(3, 2, 1, 0.5)
    assert CheckedLabel("s", paid).verified_by == ""


def test_a_shipped_row_has_its_graders_other_answers_beside_it():
    row = {"grader": to_row(Grader("number", 0.1, "cm")), "accepted": ["crimson"]}
    assert from_row(Grader, shipped_grader(row)) == Grader("number", 0.1, "cm", accepted=("crimson",))
    assert from_row(Grader, shipped_grader({"grader": row["grader"]})).accepted is None


def test_a_grader_is_strict_unless_told_otherwise():
    assert Grader("list") == Grader("list", tolerance=0.0, unit="", is_ordered=False, accepted=None)
