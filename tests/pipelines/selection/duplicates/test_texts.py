"""Duplicates among texts: spelling makes no difference, numbers and signs do."""

from __future__ import annotations

import tracemalloc
from collections import defaultdict
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from darkroom.pipelines.selection.duplicates import texts as text_search
from darkroom.pipelines.selection.duplicates.texts import (
    TextBands,
    are_near,
    n_grams,
    near_in,
    near_texts,
    normalised,
    numbers,
    words,
)

LONG = "What is the colour of the small car that is parked to the left of the red house near the bridge?"
TEXTS = st.lists(st.text("abc 12.,\u200b", max_size=20), max_size=15)


@pytest.mark.parametrize("texts", [["", ""], ["?!", " "], ["\u200b", "\u200d\ufeff"]])
def test_texts_without_words_duplicate_nothing(texts):
    assert near_texts(texts) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is it?", "what  is IT"),
        ("３ cars", "3 cars"),
        ("ca\u200brs\ufeff", "cars"),
        ("cafe\u0301", "café"),
        ("a − b", "a – b"),
        ("“Stop”", '"stop"'),
        ("图中有几只猫？", "图中有几只猫"),
    ],
)
def test_spellings_of_one_text_are_one(one, other):
    assert normalised(one) == normalised(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3 + 5", "3 * 5"),
        ("3.5", "35"),
        ("-2", "2"),
        ("(2 + 3) * 4", "2 + (3 * 4)"),
        ("5!", "5"),
        ("图中有几只猫", "图中有几只狗"),
    ],
)
def test_what_means_something_else_stays_apart(one, other):
    assert near_texts([one, other]) == []


def test_a_slightly_changed_question_is_near_and_says_how_near():
    found = near_texts([LONG, LONG.replace("near the bridge", "near that bridge")])
    assert [(one.index, one.of) for one in found] == [(1, 0)]
    assert found[0].distance == pytest.approx(1 - 17 / 21)


def test_problems_that_differ_in_a_number_are_different():
    texts = [f"{LONG} {LONG.replace('small', 'big')} There are {n} of them." for n in ("7", "8", "many", "few")]
    assert [(one.index, one.of) for one in near_texts(texts)] == [(3, 2)]


@given(TEXTS)
@settings(max_examples=60)
def test_every_near_duplicate_is_as_near_as_it_says(texts):
    found = near_texts(texts)
    stays = set(range(len(texts))) - {one.index for one in found}
    assert found == near_texts(texts)
    assert all(one.of in stays and one.of < one.index and one.distance <= 0.2 + 1e-9 for one in found)


@given(TEXTS)
def test_texts_of_the_same_words_are_near(texts):
    keys = [normalised(text) for text in texts]
    repeated = {index for index, key in enumerate(keys) if key and key in keys[:index]}
    assert repeated <= {one.index for one in near_texts(texts)}


def _by_datasketch(texts: list[str]) -> list[tuple[int, int, float]]:
    """All in memory, text by text: what the search on disk must find."""
    from datasketch import MinHash, MinHashLSH

    rows = text_search.HASHES_PER_BAND
    found, staying = [], {}
    indexes = defaultdict(lambda: MinHashLSH(num_perm=128, params=(128 // rows, rows)))
    for index, text in enumerate(texts):
        of_text = words(text)
        if not of_text:
            continue
        grams = frozenset(map(" ".join, n_grams(of_text, 3)))
        signature = MinHash(128)
        signature.update_batch([gram.encode() for gram in grams])
        lsh = indexes[numbers(of_text)]
        similar = ((len(grams & staying[at]) / len(grams | staying[at]), at) for at in lsh.query(signature))
        nearest = min(((1 - share, at) for share, at in similar if share >= text_search.THRESHOLD), default=None)
        if nearest is None:
            lsh.insert(index, signature)
            staying[index] = grams
        else:
            found.append((index, nearest[1], nearest[0]))
    return found


_FEW_WORDS = st.lists(st.sampled_from([*"abcde", "3", "?"]), max_size=12).map(" ".join)


@given(st.lists(_FEW_WORDS, max_size=24), st.sampled_from([1, 3, 7, 4096]))
@settings(max_examples=30, deadline=None)
def test_the_search_on_disk_finds_what_one_in_memory_does(texts, block):
    with mock.patch.object(text_search, "BLOCK", block):
        found = near_texts(texts)
    assert [(one.index, one.of, one.distance) for one in found] == _by_datasketch(texts)


@given(st.lists(st.tuples(st.integers(0, 2), _FEW_WORDS), max_size=30))
@settings(max_examples=40, deadline=None)
def test_texts_of_other_groups_are_not_near(rows):
    groups, texts = np.array([group for group, _ in rows], np.int64), [text for _, text in rows]
    found = sorted((one.index, one.of) for one in near_in(TextBands(texts), groups=groups))
    apart = []
    for group in range(3):
        of_group = np.flatnonzero(groups == group).tolist()
        twins = near_texts([texts[at] for at in of_group])
        apart += [(of_group[one.index], of_group[one.of]) for one in twins]
    assert found == sorted(apart)


@given(_FEW_WORDS, _FEW_WORDS)
@settings(deadline=None)
def test_two_texts_are_near_whenever_the_search_says_so(text, other):
    if near_texts([text, other]):
        assert are_near(text, other)
    grams, others = (set(map(" ".join, n_grams(words(each), 3))) for each in (text, other))
    share = len(grams & others) / max(1, len(grams | others))
    assert are_near(text, other) == (share >= 0.8 and numbers(words(text)) == numbers(words(other)))


@pytest.mark.e2e
@given(st.lists(st.tuples(st.integers(0, 4), _FEW_WORDS), max_size=30))
@settings(max_examples=40, deadline=None)
def test_whose_texts_are_near_anothers_meets_it(rows):
    owners, texts = np.array([owner for owner, _ in rows], np.int64), [text for _, text in rows]
    with mock.patch.object(text_search, "BLOCK", 7):
        meeting = set(TextBands(texts).owners_that_meet(owners).tolist())
    for owner, text in rows:
        for other, beside in rows:
            if owner != other and (text == beside or near_texts([text, beside])):
                assert owner in meeting


@pytest.mark.e2e
@pytest.mark.soak
def test_what_is_held_of_a_text_does_not_depend_on_its_length(tmp_path):
    """Twenty times the words: what stays in memory grows by less than the texts themselves."""

    def peak(length: int) -> int:
        texts = (" ".join(f"{word}{n}" for word in range(length)) for n in range(3_000))
        tracemalloc.start()
        assert near_texts(texts, folder=tmp_path) == []
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    near_texts(["a b c", "a b c"])  # imports
    with mock.patch.object(text_search, "BLOCK", 32):
        assert peak(200) - peak(10) < 3_000 * 190 * 4 / 2
