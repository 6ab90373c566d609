"""One canonical form for everything that is keyed by content."""

from __future__ import annotations

import math

import pytest

from darkroom.pipelines.records.digest import canonical, digest, digest_bytes, digest_files, key64, seed_from


def test_the_order_of_keys_does_not_matter():
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})


def test_the_order_of_a_list_matters():
    assert digest([1, 2]) != digest([2, 1])


def test_a_number_and_its_text_differ():
    assert digest(1) != digest("1")


def test_tuples_and_lists_are_one():
    assert digest((1, (2,))) == digest([1, [2]])


@pytest.mark.parametrize("value", [math.nan, math.inf, [1, {"a": -math.inf}]])
def test_numbers_without_one_spelling_are_refused(value):
    with pytest.raises(ValueError, match="JSON compliant"):
        digest(value)


def test_what_json_cannot_hold_is_refused():
    with pytest.raises(TypeError):
        digest({"image": b"bytes"})


def test_a_lone_surrogate_has_a_digest():
    assert digest("\ud800") != digest("?")


def test_files_are_digested_by_name_and_content(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("1")
    two.write_text("2")
    both = digest_files([one, two], tmp_path)
    assert digest_files([two, one], tmp_path) == both
    two.write_text("3")
    assert digest_files([one, two], tmp_path) != both


def test_moving_a_folder_keeps_its_digest(tmp_path):
    for root in (tmp_path / "here", tmp_path / "there"):
        (root / "inner").mkdir(parents=True)
        (root / "inner" / "file").write_text("same")
    digests = {digest_files(root.rglob("file"), root) for root in (tmp_path / "here", tmp_path / "there")}
    assert len(digests) == 1


def test_a_seed_fits_31_bits_and_follows_every_part():
    seeds = {seed_from("crop", n) for n in range(100)}
    assert len(seeds) == 100
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert seed_from("crop", 1) == seed_from("crop", 1)


def test_the_canonical_form_is_pinned():
    """Every key of the ledger hangs on it: a change makes people pay again."""
    assert digest({"ä": [1, None]}) == "e71e35c7b158dda62711ce246147a911522b7ce555535b122c235e90055cf699"


def test_bytes_seeds_and_keys_are_pinned():
    """Shards, splits and near-duplicates hang on them."""
    assert digest_bytes(b"x") == "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    assert seed_from("crop", 1) == 1901777316
    assert key64("sign") == 3441532373910546824
    assert key64("\ud800") != key64("?")


def test_the_canonical_form_has_sorted_keys_no_spaces_and_letters_as_they_are():
    assert canonical({"b": [1.5, None], "a": "ä"}) == '{"a":"ä","b":[1.5,null]}'


def test_a_name_of_a_file_is_relative_to_its_root_and_counts(tmp_path):
    (tmp_path / "one").write_text("1")
    before = digest_files([tmp_path / "one"], tmp_path)
    assert before == digest([["one", digest_bytes(b"1")]])
    (tmp_path / "one").rename(tmp_path / "two")
    assert digest_files([tmp_path / "two"], tmp_path) != before
