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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3.5 1,000 1.2.3 4.", ("3.5", "1,000", "1.2.3", "4")),
        ("5! x! (2)!", ("5", "!", "x", "(", "2", ")", "!")),
        ("don't don\u2019t 'tis", ("don't", "don't", "tis")),
        ("a1b", ("a", "1", "b")),
        ("fill __ in", ("fill", "__", "in")),
        ("\u4e00\u4e8c", ("\u4e00", "\u4e8c")),
        ("\U00020000\U0003ffff", ("\U00020000", "\U0003ffff")),
        ("stra\u00dfe", ("strasse",)),
        ("\u2460", ("1",)),
        ("a\u2014b", ("a", "-", "b")),
        ("a,b;c:d.e?f\u2026", ("a", "b", "c", "d", "e", "f")),
        ("1+2=3%", ("1", "+", "2", "=", "3", "%")),
    ],
)
def test_words_are_numbers_words_and_signs(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(
    ("n_words", "runs"), [(0, []), (1, [(0, 1)]), (2, [(0, 2)]), (3, [(0, 3)]), (4, [(0, 3), (1, 4)])]
)
def test_runs_are_of_three_words_or_of_all(n_words, runs):
    text = tuple("abcd"[:n_words])
    assert n_grams(text, 3) == [text[begin:end] for begin, end in runs]


def test_numbers_are_words_that_begin_with_a_digit():
    assert numbers(words("3 cars, 1.5 m, v2, none")) == ("3", "1.5", "2")


def test_there_are_as_few_bands_as_miss_one_pair_in_a_thousand():
    assert (text_search.HASHES_PER_BAND, text_search.N_BANDS) == (5, 25)
    chance = [(1 - 0.8**n) ** (128 // n) for n in (5, 6)]
    assert chance[0] <= 1e-3 < chance[1]


def _of_words(*chosen: int) -> str:
    return " ".join(f"{'abcdefghijklmnopqrstuvwxyz'[n]}x" for n in chosen)


def test_texts_at_the_threshold_are_near():
    at = (_of_words(*range(11)), _of_words(*range(10), 12))
    assert are_near(*at), "eight runs of ten"
    assert not are_near(_of_words(*range(10)), _of_words(*range(9), 12)), "seven of nine"
    assert not are_near("", "")
    assert not are_near("3 a", "4 a")


def test_a_text_is_a_duplicate_of_the_most_similar_one_and_of_equal_ones_of_the_first():
    whole, nearer, near = (_of_words(*range(*part)) for part in ((0, 22), (0, 20), (3, 22)))
    for texts, of in (([near, nearer, whole], 1), ([nearer, near, whole], 0)):
        assert [(one.index, one.of, one.kind) for one in near_texts(texts)] == [(2, of, "near_text")]
        assert near_texts(texts)[0].distance == pytest.approx(0.1)
    whole, begin, end = (_of_words(*range(*part)) for part in ((0, 24), (0, 21), (3, 24)))
    for texts in ([begin, end, whole], [end, begin, whole]):
        assert [(one.index, one.of) for one in near_texts(texts)] == [(2, 0)]
    far = _of_words(*range(25, 3, -1))
    assert [(one.index, one.of, one.distance) for one in near_texts([far, whole, far, whole])] == [
        (2, 0, 0.0),
        (3, 1, 0.0),
    ]


def test_owners_meet_by_their_texts_and_not_with_themselves():
    texts = TextBands(["a b c d", "a b c d", "e f g h", "e f g h", "x y z w", "x y z w"])
    assert texts.owners_that_meet(np.array([3, 3, 1, 2, 5, -1])).tolist() == [1, 2]
    assert texts.owners_that_meet(np.array([0, 4, -1, -1, 7, 7])).tolist() == [0, 4]
    assert texts.owners_that_meet(np.full(6, -1)).tolist() == []
    assert TextBands([]).owners_that_meet(np.array([], np.int64)).tolist() == []
    assert [texts.text(n) for n in (0, 5)] == ["a b c d", "x y z w"]
    assert len(texts) == 6
