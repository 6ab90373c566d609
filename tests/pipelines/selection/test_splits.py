"""No image crosses a split."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from darkroom.pipelines.records import ImageRef, Sample, Truth, VideoRef
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.selection.sampling import grouped

IMAGES = st.lists(st.sampled_from("abcdefghij"), max_size=3)


def _sample(n: int, images: list[str], parent: str | None = None) -> Sample:
    refs = tuple(ImageRef(image, 10, 10, "RGB", "PNG", parent) for image in images)
    return Sample(f"sample {n}", "s", str(n), "", refs, "?", (), "!", Truth(), "")


@given(st.lists(IMAGES, max_size=12), st.floats(0, 1))
def test_samples_that_share_an_image_are_in_one_split(shown, share):
    samples = [_sample(n, images) for n, images in enumerate(shown)]
    splits = grouped(samples, validation_share=share)
    for one in samples:
        for other in samples:
            if {image.sha256 for image in one.images} & {image.sha256 for image in other.images}:
                assert splits.of(one.sample_id) == splits.of(other.sample_id)


@given(st.lists(IMAGES, max_size=12), st.randoms())
def test_the_order_of_the_samples_decides_nothing(shown, random):
    samples = [_sample(n, images) for n, images in enumerate(shown)]
    shuffled = list(samples)
    random.shuffle(shuffled)
    assert grouped(samples).fingerprint == grouped(shuffled).fingerprint


def test_an_image_stays_with_what_it_was_made_of():
    made, original = _sample(0, ["b"], parent="a"), _sample(1, ["a"])
    splits = grouped([made, original])
    assert splits.bucket("sample 0") == splits.bucket("sample 1")


def test_parts_of_one_film_stay_together():
    parts = [
        VideoRef(name, "mp4", 10, 10, 9, 5.0, film, "ingest: cut")
        for name, film in (("a", "f"), ("b", "f"), ("c", "g"))
    ]
    splits = grouped([replace(_sample(n, []), videos=(part,)) for n, part in enumerate(parts)])
    first, second, other = (splits.bucket(f"sample {n}") for n in range(3))
    assert first == second != other


def test_samples_without_images_are_on_their_own():
    splits = grouped([_sample(n, []) for n in range(9)])
    assert len({splits.bucket(f"sample {n}") for n in range(9)}) == 9


def test_a_groups_smallest_digest_decides():
    splits = grouped([_sample(0, ["c", "b"]), _sample(1, ["d", "c"]), _sample(2, ["e"])], same={"e": "d"})
    bucket = int(digest(["split", "b"])[:8], 16) % 10_000
    assert {splits.bucket(f"sample {n}") for n in range(3)} == {bucket}


def test_a_sample_that_was_not_grouped_is_an_error():
    with pytest.raises(KeyError, match="sample 7"):
        grouped([_sample(0, ["a"])], validation_share=0.5).of("sample 7")


def test_the_share_is_about_what_was_asked_for():
    samples = [_sample(n, [f"image {n}"]) for n in range(2000)]
    splits = grouped(samples, validation_share=0.1)
    assert 140 < sum(splits.of(sample.sample_id) == "validation" for sample in samples) < 260
    assert {replace(splits, validation_share=0.0).of(sample.sample_id) for sample in samples} == {"train"}


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_outside_is_an_error(share):
    with pytest.raises(ValueError, match=r"0\.\.1"):
        grouped([], validation_share=share)
