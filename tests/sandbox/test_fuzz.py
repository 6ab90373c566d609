"""A fixed portion of what `make fuzz` runs without an end: random code, files and replies."""

from collections.abc import Iterator

import pytest
from PIL import Image

from darkroom.sandbox import Observation
from darkroom.sandbox.calls import ShownImage, Status
from tests.sandbox.fuzz import Bench, difference, fuzz, open_bench
from tests.sandbox.plain_python import PlainRound, pixels_of

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def bench(full_tier: None) -> Iterator[Bench]:
    with open_bench() as bench:
        yield bench


@pytest.mark.parametrize(("part", "n_cases"), [("code", 24), ("files", 24), ("replies", 16)])
def test_a_portion_of_the_fuzzer_finds_nothing(bench: Bench, part: str, n_cases: int) -> None:
    bench.counts.clear()
    assert [finding for _, finding in fuzz(bench, part, range(n_cases), seed=23) if finding is not None] == []
    assert len(bench.counts) > 1  # the cases are not all of one kind


@pytest.mark.parametrize(
    ("status", "text", "n_images", "found"),
    [
        ("ok", "T7.0\n<b>\n", 1, None),
        ("ok", "T7.0\n", 1, "different"),
        ("error", "T7.0\n<b>\n", 0, "different"),
        ("ok", "T8.0\n<b>\n", 1, "foreign"),
        ("timeout", "T7.0\n<b>\n", 1, "hung"),
        ("killed", "", 0, "lost"),
    ],
)
def test_the_fuzzer_sees_what_is_not_as_in_plain_python(
    status: Status, text: str, n_images: int, found: str | None
) -> None:
    image = Image.new("RGB", (3, 2), "red")
    plain = PlainRound("T7.0\n<b>\n", None, {pixels_of(image)})
    observation = Observation(status, text, (ShownImage(image, "a.png"),) * n_images, None, 0.1, (), ())
    finding = difference(observation, plain, "T7.")
    assert (finding and finding[0]) == found
