"""No image crosses a split, every family has its share of validation rows, and what is published stays where it is."""

import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from darkroom.pipelines.records import ImageRef, Sample, Truth, VideoRef
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.selection.sampling import ALL_FOR_TRAINING, Split, Splits, grouped

IMAGES = st.lists(st.sampled_from("abcdefghij"), max_size=3)
PAIRS = 40
"""Of samples that belong together: with half of the groups held out, chance would part twenty of them."""
FAMILIES = st.lists(st.lists(st.integers(0, 59), max_size=60), max_size=4)
"""Of each family, the samples of its rows by number; three samples in a row share an image."""
SHARES = st.sampled_from([0.05, 0.1, 0.2])


def _sample(n: int, images: list[str], parent: str | None = None) -> Sample:
    refs = tuple(ImageRef(image, 10, 10, "RGB", "PNG", parent) for image in images)
    return Sample(f"sample {n}", "s", str(n), "", refs, "?", (), "!", Truth(), "")


def _trios(n_samples: int = 60) -> list[Sample]:
    return [_sample(n, [f"image {n // 3}"]) for n in range(n_samples)]


def _ids(families: list[list[int]]) -> list[list[str]]:
    return [[f"sample {n}" for n in family] for family in families]


def _published(splits: Splits, samples: list[Sample], families: list[list[int]]) -> list[tuple[Split, Sample]]:
    return [(splits.of(samples[n].sample_id), samples[n]) for family in families for n in family]


def _all(splits: Splits, samples: list[Sample]) -> list[Split]:
    return [splits.of(sample.sample_id) for sample in samples]


@given(st.lists(IMAGES, max_size=12), st.floats(0, 1))
def test_samples_that_share_an_image_are_in_one_split(shown, share):
    samples = [_sample(n, images) for n, images in enumerate(shown)]
    families = [[sample.sample_id for sample in samples]] * 2
    splits = grouped(samples, validation_share=share, families=families)
    for one in samples:
        for other in samples:
            if {image.sha256 for image in one.images} & {image.sha256 for image in other.images}:
                assert splits.of(one.sample_id) == splits.of(other.sample_id)


@given(FAMILIES, SHARES, st.randoms())
def test_the_order_of_the_samples_and_rows_decides_nothing(families, share, random):
    samples = _trios()
    splits = grouped(samples, validation_share=share, families=_ids(families))
    shuffled = random.sample(samples, len(samples))
    rows = [random.sample(family, len(family)) for family in families]
    again = grouped(shuffled, validation_share=share, families=_ids(random.sample(rows, len(rows))))
    assert _all(again, samples) == _all(splits, samples)


def test_an_image_stays_with_what_it_was_made_of():
    made = [_sample(n, [f"part {n}"], parent=f"whole {n}") for n in range(PAIRS)]
    originals = [_sample(PAIRS + n, [f"whole {n}"]) for n in range(PAIRS)]
    splits = grouped([*made, *originals], validation_share=0.5)
    assert _all(splits, made) == _all(splits, originals)


def test_parts_of_one_film_stay_together():
    parts = [VideoRef(f"part {n}", "mp4", 10, 10, 9, 5.0, f"film {n // 2}", "ingest: cut") for n in range(2 * PAIRS)]
    samples = [replace(_sample(n, []), videos=(part,)) for n, part in enumerate(parts)]
    splits = grouped(samples, validation_share=0.5)
    assert _all(splits, samples[::2]) == _all(splits, samples[1::2])
    assert set(_all(splits, samples)) == {"train", "validation"}


def test_samples_without_images_are_on_their_own():
    samples = [_sample(n, []) for n in range(PAIRS)]
    assert set(_all(grouped(samples, validation_share=0.5), samples)) == {"train", "validation"}


def test_a_groups_smallest_digest_decides():
    samples = [_sample(0, ["c", "b"]), _sample(1, ["d", "c"]), _sample(2, ["e"])]
    share = (int(digest(["split", "b"])[:8], 16) % 10_000) / 10_000
    for held_out, split in ((share + 1e-9, "validation"), (share - 1e-9, "train")):
        assert _all(grouped(samples, validation_share=held_out, same={"e": "d"}), samples) == [split] * 3


def test_a_sample_that_was_not_grouped_is_an_error():
    with pytest.raises(KeyError, match="sample 7"):
        grouped([_sample(0, ["a"])], validation_share=0.5).of("sample 7")


def test_the_share_is_about_what_was_asked_for():
    samples = [_sample(n, [f"image {n}"]) for n in range(2000)]
    splits = grouped(samples, validation_share=0.1)
    assert 140 < _all(splits, samples).count("validation") < 260
    assert set(_all(grouped(samples, validation_share=0.0), samples)) == {"train"}


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_outside_is_an_error(share):
    with pytest.raises(ValueError, match=r"0\.\.1"):
        grouped([], validation_share=share)


@given(FAMILIES, SHARES)
def test_a_family_falls_short_only_where_another_would_lose_its_last_group_in_train(families, share):
    samples = _trios()
    splits = grouped(samples, validation_share=share, families=_ids(families))
    in_train = [{n // 3 for n in family if splits.of(f"sample {n}") == "train"} for family in families]
    for family, left in zip(families, in_train, strict=True):
        n_held_out = sum(splits.of(f"sample {n}") == "validation" for n in family)
        if share * len(family) >= 1 and n_held_out < share * len(family) - 1e-9:
            assert all({group} in in_train for group in left)


@given(st.lists(st.integers(0, 59), min_size=1, max_size=60), SHARES)
def test_a_family_gets_no_more_than_it_lacks_and_keeps_a_group_to_train_on(family, share):
    samples, sizes = _trios(), Counter(n // 3 for n in family)
    by_digest, splits = (grouped(samples, validation_share=share, families=some) for some in ([], _ids([family])))
    before, held_out = (
        {group for group in sizes if of.of(f"sample {3 * group}") == "validation"} for of in (by_digest, splits)
    )
    assert before <= held_out
    if added := held_out - before:
        n_needed = math.ceil(share * len(family) - 1e-9)
        n_more = sum(sizes[group] for group in held_out) - n_needed
        assert sum(sizes[group] for group in before) < n_needed
        assert n_more < 2 * min(sizes[group] for group in added), "without any of them it would fall short"
        assert (n_left := len(sizes.keys() - held_out)) > 0
        assert n_more >= 0 or n_left == 1


def test_groups_of_one_row_give_exactly_the_share():
    samples = [_sample(n, [f"image {n}"]) for n in range(200)]
    families = [range(20), range(20, 41), range(41, 200)]
    splits = grouped(samples, validation_share=0.05, families=_ids([list(family) for family in families]))
    by_digest = grouped(samples, validation_share=0.05)
    for family, n_needed in zip(families, (1, 2, 8), strict=True):
        n, n_before = (sum(of.of(f"sample {n}") == "validation" for n in family) for of in (splits, by_digest))
        assert n == max(n_needed, n_before)


def test_a_group_serves_all_families_that_have_it():
    samples = [_sample(n, [f"image {n}"]) for n in range(60)]
    families = [[sample.sample_id for sample in samples[first:]] for first in range(3)]
    splits, alone = (grouped(samples, validation_share=0.1, families=some) for some in (families, families[:1]))
    assert abs(_all(splits, samples).count("validation") - _all(alone, samples).count("validation")) <= 1


def test_of_two_groups_the_smaller_is_held_out_and_a_single_one_is_not():
    samples = [_sample(n, ["large" if n < 27 else "small"]) for n in range(30)]
    assert not _all(grouped(samples, validation_share=0.05), samples).count("validation"), "neither by its digest"
    splits = grouped(samples, validation_share=0.05, families=[[sample.sample_id for sample in samples]])
    assert _all(splits, samples) == ["train"] * 27 + ["validation"] * 3
    alone = grouped(samples[:27], validation_share=0.05, families=[[sample.sample_id for sample in samples[:27]]])
    assert set(_all(alone, samples[:27])) == {"train"}


@given(FAMILIES, FAMILIES, SHARES, st.integers(0, 40))
def test_what_is_published_stays_in_its_split_when_rows_are_added(families, later, share, n_before):
    """Of the groups that are there; one that later samples join to another may move, and then to train."""
    samples = _trios(120)
    families = [[n for n in family if n < n_before] for family in families]
    splits = grouped(samples[:n_before], validation_share=share, families=_ids(families))
    published = _published(splits, samples, families)
    rows = [[*family, *(2 * n for n in more)] for family, more in zip([*families, []], [*later, []], strict=False)]
    again = grouped(samples, validation_share=share, families=_ids(rows), published=published)
    assert [(again.of(sample.sample_id), sample) for _, sample in published] == published


@given(FAMILIES, FAMILIES, SHARES, st.integers(0, 4))
def test_an_interrupted_publication_ends_as_one_that_was_not(families, later, share, n_published):
    """Of some families the new rows are published, of the others the earlier ones."""
    samples = _trios()
    earlier = grouped(samples, validation_share=share, families=_ids(families))
    before = _published(earlier, samples, families)
    splits = grouped(samples, validation_share=share, families=_ids([*families, *later]), published=before)
    rows = _published(splits, samples, [*later, *families][:n_published])
    again = grouped(samples, validation_share=share, families=_ids([*families, *later]), published=[*before, *rows])
    assert _all(again, samples) == _all(splits, samples)


def test_published_groups_that_a_new_row_joins_are_for_training():
    samples = [_sample(0, ["a"]), _sample(1, ["b"]), _sample(2, ["a", "b"]), _sample(3, ["c"])]
    published: list[tuple[Split, Sample]] = [("train", samples[0]), ("validation", samples[1])]
    for share in (0.01, 0.99):
        splits = grouped(samples, validation_share=share, published=[*published, ("validation", samples[3])])
        assert _all(splits, samples) == ["train", "train", "train", "validation"]


def test_an_image_that_was_published_under_another_question_stays_in_its_split():
    asked_anew, asked_before = replace(_sample(1, ["a"]), sample_id="new"), _sample(0, ["a"])
    for split in ("train", "validation"):
        splits = grouped([asked_anew], validation_share=0.5, published=[(split, asked_before)])
        assert splits.of("new") == split


def test_all_and_none_can_be_held_out_and_without_samples_all_are_for_training():
    samples = _trios(9)
    assert set(_all(grouped(samples, validation_share=1), samples)) == {"validation"}
    assert set(_all(grouped(samples, validation_share=0), samples)) == {"train"}
    assert grouped([], validation_share=0.5).of("any") == ALL_FOR_TRAINING.of("any") == "train"


def test_a_family_of_less_than_one_row_due_gets_none_and_of_one_it_gets_one():
    samples = [_sample(n, [f"image {n}"]) for n in range(20)]
    held_out = [n for n in range(20) if grouped(samples, validation_share=0.05).of(f"sample {n}") == "validation"]
    others = [n for n in range(20) if n not in held_out]
    for n_rows, n_due in ((9, 0), (10, 1), (11, 2)):
        of = grouped(samples, validation_share=0.1, families=[[f"sample {n}" for n in others[:n_rows]]])
        by_digest = grouped(samples, validation_share=0.1)
        n, n_before = (sum(one.of(f"sample {n}") == "validation" for n in others[:n_rows]) for one in (of, by_digest))
        assert n == max(n_due, n_before)
