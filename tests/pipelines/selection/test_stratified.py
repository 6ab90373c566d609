"""Exactly so many rows, balanced, and the same ones every time."""

from collections import Counter
from dataclasses import replace
from itertools import zip_longest

import pytest
from hypothesis import given, strategies as st

from darkroom.pipelines.records import TruthBox
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.selection.sampling import Candidate, Strata, difficulty, mixture, ordered

candidates = st.lists(
    st.builds(
        Candidate,
        st.uuids().map(str),
        st.sampled_from(["ocr", "colour", "count"]),
        st.sampled_from(["tiny", "small"]),
    ),
    unique_by=lambda candidate: candidate.row_id,
    max_size=40,
)


def select(rows, n):
    """The ids of the rows that are not left out."""
    strata = Strata()
    for place, row in enumerate(rows):
        strata.add(row, place)
    return {row.row_id for row in rows} - {rows[place].row_id for place in strata.left_out(n)}


@given(candidates, st.integers(0, 50))
def test_there_are_exactly_as_many_as_asked_for_or_all(rows, n):
    chosen = select(rows, n)
    assert len(chosen) == min(n, len(rows))
    assert chosen <= {row.row_id for row in rows}


@given(candidates, st.integers(0, 40), st.randoms())
def test_the_order_of_the_rows_decides_nothing(rows, n, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert select(rows, n) == select(shuffled, n)


@given(candidates, st.integers(0, 39))
def test_fewer_rows_are_among_more(rows, n):
    assert select(rows, n) <= select(rows, n + 1)


@given(candidates, st.integers(0, 40))
def test_the_first_in_order_are_selected(rows, n):
    assert set(list(ordered(rows))[:n]) == select(rows, n)


@given(candidates)
def test_strata_take_turns_in_the_order_of_their_names_and_rows_by_their_digests(rows):
    strata = {}
    for row in sorted(rows, key=lambda row: digest([0, row.row_id])):
        strata.setdefault(repr((row.category, row.difficulty)), []).append(row.row_id)
    turns = zip_longest(*(strata[name] for name in sorted(strata)))
    assert list(ordered(rows)) == [row_id for turn in turns for row_id in turn if row_id is not None]


def test_places_are_the_callers_own_and_left_out_as_they_were_added():
    strata = Strata()
    for place in (70, 20, 50):
        strata.add(Candidate(f"{place}"), place)
    assert sorted(strata.order()) == [20, 50, 70]
    assert list(strata.left_out(0)) == [70, 20, 50]
    assert [place for place in (70, 20, 50) if place != strata.order()[0]] == list(strata.left_out(1))


def test_strata_are_served_evenly_until_they_are_empty():
    rows = [Candidate(f"o{n}", "ocr") for n in range(90)] + [Candidate(f"c{n}", "count") for n in range(5)]
    chosen = select(rows, 30)
    assert Counter(row_id[0] for row_id in chosen) == {"o": 25, "c": 5}


def test_a_negative_number_is_an_error():
    with pytest.raises(ValueError, match="found -1"):
        select([], -1)


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.integers(1, 100_000), min_size=1), st.integers(0, 10_000))
def test_a_mixture_adds_up_to_the_row(wanted, n):
    quotas = mixture(wanted, n)
    assert sum(quotas.values()) == n
    assert all(abs(quotas[family] - n * share / sum(wanted.values())) < 1 for family, share in wanted.items())


def test_thymes_mixture_scaled():
    wanted = {"direct": 100_000, "real_world": 50_000, "crop": 28_000, "rotation": 14_000, "contrast": 10_000}
    assert mixture(wanted, 202) == {"direct": 100, "real_world": 50, "crop": 28, "rotation": 14, "contrast": 10}


@pytest.mark.parametrize(
    ("wanted", "n", "expected"),
    [
        ({"crop": 0}, 10, {"crop": 0}),
        ({}, 10, {}),
        ({"b": 1, "a": 1}, 1, {"b": 0, "a": 1}),  # of equal remainders the first name
        ({"b": 1, "a": 1, "c": 1}, 5, {"b": 2, "a": 2, "c": 1}),
        ({"a": 3, "b": 1}, 2, {"a": 2, "b": 0}),
        ({"a": 1}, 0, {"a": 0}),
        ({"a": 1, "b": 0}, 7, {"a": 7, "b": 0}),
    ],
)
def test_remainders_go_to_the_largest(wanted, n, expected):
    assert mixture(wanted, n) == expected


@pytest.mark.parametrize(
    ("side", "size"), [(9, "tiny"), (10, "small"), (31, "small"), (32, "large"), (100, "large"), (0, "tiny")]
)
def test_difficulty_is_how_small_the_target_is(make_case, side, size):
    sample = make_case().sample
    of = replace(sample.images[0], width=200, height=500)
    first, second = TruthBox("x", 10, 10, 10 + side, 20 if side == 10 else 10 + side), TruthBox("y", 0, 0, 99, 99)
    truth = replace(sample.truth, boxes=(first, second))
    assert difficulty(replace(sample, images=(of,), truth=truth)) == size
    another = replace(first, image=1)
    shown = (replace(of, width=9, height=9), of)
    assert difficulty(replace(sample, images=shown, truth=replace(truth, boxes=(another,)))) == size


def test_without_an_image_or_a_target_there_is_no_difficulty(make_case):
    sample = make_case().sample
    assert difficulty(replace(sample, images=())) == "none"
    assert difficulty(replace(sample, truth=replace(sample.truth, boxes=()))) == "none"
