"""The same image although it was cut, turned, mirrored or written on; other images of the same template are others."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageOps

from darkroom.pipelines.demo.images.material import font, photograph_image
from darkroom.pipelines.selection.duplicates import look_search, same_image as same_image_module
from darkroom.pipelines.selection.duplicates.local_features import Features
from darkroom.pipelines.selection.duplicates.look_search import near_looks
from darkroom.pipelines.selection.duplicates.looks import Look, PerceptualHash, look_of
from darkroom.pipelines.selection.duplicates.overlaid import ComparedPlaces
from darkroom.pipelines.selection.duplicates.same_image import ImageComparison, same_image
from darkroom.pipelines.vision.registration import refined
from tests.matrices import first_quickly
from tests.pipelines.selection.duplicates.documents import SEEN

NAMES = ("astronaut", "cat", "coffee")


def crop(image: Image.Image) -> Image.Image:
    return image.crop((image.width // 20, image.height // 11, image.width * 19 // 20, image.height))


def captioned(image: Image.Image) -> Image.Image:
    copy = image.copy()
    draw = ImageDraw.Draw(copy)
    draw.rectangle((10, 30, image.width * 3 // 4, 80), fill="black")
    draw.text((20, 36), "SAMPLE 2026", "white", font("DejaVuSans-Bold", 32))
    return copy


def bars(seed: int) -> Image.Image:
    """A chart of one template: only its numbers change."""
    chance, image = random.Random(seed), Image.new("RGB", (600, 400), "white")
    draw, letters = ImageDraw.Draw(image), font("DejaVuSans", 18)
    draw.text((40, 10), "Sales by branch, in thousands", "black", letters)
    draw.line((40, 40, 40, 370, 590, 370), "black", 2)
    for n in range(8):
        value = chance.randint(10, 95)
        draw.rectangle((60 + 65 * n, 370 - 3 * value, 105 + 65 * n, 369), "steelblue")
        draw.text((68 + 65 * n, 346 - 3 * value), str(value), "black", letters)
    return image


def soft(seed: int, rows: int, columns: int, levels: float) -> np.ndarray:
    coarse = np.random.default_rng(seed).normal(0, levels, (rows, columns)).astype(np.float32)
    return np.asarray(Image.fromarray(coarse).resize((480, 360), Image.Resampling.BICUBIC))


def smooth(seed: int) -> Image.Image:
    """Soft clouds under one light: no corner, no edge."""
    light = np.linspace(90, 180, 480)[None, :] + np.linspace(0, 30, 360)[:, None]
    levels = light + soft(seed, 6, 8, 12) + soft(seed + 100, 11, 15, 4)
    return Image.fromarray(np.clip(levels, 0, 255).astype(np.uint8)).convert("RGB")


def before_one_backdrop(seed: int) -> Image.Image:
    """The same soft backdrop, and in its middle another thing each time."""
    image, chance = smooth(0), random.Random(seed)
    draw = ImageDraw.Draw(image)
    for _ in range(12):
        x, y, size = chance.randint(180, 260), chance.randint(130, 200), chance.randint(12, 50)
        draw.rectangle((x, y, x + size, y + size), fill=tuple(chance.randint(20, 235) for _ in range(3)))
    return image


@pytest.fixture(scope="module")
def originals() -> list[Look]:
    return [look_of(photograph_image(name)) for name in NAMES]


@pytest.mark.parametrize(
    ("change", "turn"),
    [
        (crop, ""),
        (captioned, ""),
        (ImageOps.mirror, "mirrored"),
        (lambda image: image.rotate(-90, expand=True), "rotated 90"),
        (lambda image: crop(ImageOps.mirror(image)), "mirrored"),
        (lambda image: image.rotate(2, fillcolor=(255, 255, 255)), ""),
        (lambda image: captioned(crop(image)), ""),
    ],
)
def test_a_changed_photograph_is_the_same_image(originals, change, turn):
    changed = [look_of(change(photograph_image(name))) for name in NAMES]
    found = near_looks([*originals, *changed])
    assert [(one.index, one.of, one.turn) for one in found] == [(n + 3, n, turn) for n in range(3)]


@pytest.mark.parametrize("change", [crop, captioned, ImageOps.mirror, lambda image: crop(ImageOps.mirror(image))])
def test_a_changed_smooth_image_is_the_same_image(change):
    looks = [look_of(smooth(seed)) for seed in range(3)]
    found = near_looks([*looks, *(look_of(change(smooth(seed))) for seed in range(3))])
    assert [(one.index, one.of) for one in found] == [(3, 0), (4, 1), (5, 2)]


def test_smooth_images_under_one_light_are_other_images():
    images = [smooth(seed) for seed in range(6)]
    assert near_looks([look_of(image) for image in images]) == []
    assert near_looks([look_of(captioned(image)) for image in images]) == []


def test_gradients_show_too_little_to_be_one_image():
    slopes = [np.linspace(low, high, 400)[None, :].repeat(300, axis=0) for low, high in ((0, 200), (40, 160), (0, 255))]
    gradients = [Image.fromarray(levels.astype(np.uint8)) for levels in slopes]
    assert near_looks([look_of(image) for image in [*gradients, captioned(gradients[0])]]) == []


def test_things_before_one_backdrop_are_other_images_with_a_caption_too():
    images = [before_one_backdrop(seed) for seed in range(5)]
    assert near_looks([look_of(image) for image in images]) == []
    assert near_looks([look_of(images[0]), *(look_of(captioned(image)) for image in images[1:])]) == []


def test_things_elsewhere_in_one_sky_make_other_images():
    images = [smooth(0) for _ in range(4)]
    for image, (x, y) in zip(images, ((60, 60), (160, 90), (240, 200), (120, 260)), strict=True):
        ImageDraw.Draw(image).ellipse((x, y, x + 40, y + 40), fill="black")
    assert near_looks([look_of(image) for image in images]) == []


def test_charts_of_one_template_with_other_numbers_are_other_images():
    charts = [look_of(bars(seed)) for seed in range(6)]
    assert near_looks(charts) == []
    written_on = look_of(captioned(bars(2)))
    assert [(one.index, one.of) for one in near_looks([*charts, written_on])] == [(6, 2)]


def test_parts_of_one_photograph_that_share_a_fifth_are_other_images():
    image = photograph_image("coffee")
    parts = [image.crop((left, 0, left + 300, 400)) for left in (0, 250)]
    assert near_looks([look_of(part) for part in parts]) == []


def test_plain_images_are_no_duplicates():
    assert near_looks([look_of(Image.new("RGB", (60, 40), (n, n, n))) for n in (0, 90, 200)]) == []
    assert near_looks([look_of(Image.new("RGB", size, "white")) for size in ((1, 1), (1, 500), (80, 80))]) == []


def test_the_verdict_does_not_depend_on_the_order_of_the_two(originals):
    for original, image in ((originals[1], photograph_image("cat")), (look_of(smooth(0)), smooth(0))):
        other = look_of(captioned(crop(image)))
        assert same_image(original, other) == same_image(other, original) is not None
    assert same_image(originals[1], originals[2]) is same_image(originals[2], originals[1]) is None


def test_the_same_pairs_are_found_in_any_order_and_over_several_shelves(originals, monkeypatch):
    changed = [look_of(crop(photograph_image(name))) for name in NAMES]
    looks = [*originals, *changed]
    everything = {frozenset((one.index, one.of)) for one in near_looks(looks)}
    monkeypatch.setattr(look_search, "_BLOCK", 1)
    order = [4, 0, 5, 2, 3, 1]
    found = near_looks([looks[at] for at in order])
    assert {frozenset((order[one.index], order[one.of])) for one in found} == everything
    assert len(everything) == 3


def test_tables_that_differ_in_their_numbers_are_other_images():
    """At the size at which images are compared their lines and their blots of ink agree; the print does not."""
    tables = []
    for seed in range(3):
        chance, image = random.Random(seed), Image.new("RGB", (720, 480), "white")
        draw, letters = ImageDraw.Draw(image), font("DejaVuSans", 14)
        for row in range(9):
            for column in range(5):
                x, y = 60 + column * 120, 60 + row * 42
                draw.rectangle((x, y, x + 120, y + 42), outline="grey")
                draw.text((x + 10, y + 12), str(chance.randint(10, 99)), "black", letters)
        tables.append(image)
    looks = [look_of(image) for image in tables]
    assert near_looks(looks) == []
    assert [(one.index, one.of) for one in near_looks([*looks, look_of(crop(tables[1]))])] == [(3, 1)]


@pytest.mark.parametrize(
    "kind", first_quickly(["boxed form", "marked map", "lined form", "scanned form", "regions"], n_quick=2)
)
def test_forms_filled_in_otherwise_and_maps_with_other_marks_are_other_images(kind):
    images = [SEEN[kind][1](random.Random(seed)) for seed in range(4)]
    looks = [look_of(image) for image in images]
    assert near_looks(looks) == []
    changed = [
        change(images[at]) for at, change in enumerate((crop, captioned, lambda image: image.resize((500, 500))))
    ]
    same = [(one.index, one.of) for one in near_looks([*looks, *(look_of(image) for image in changed)])]
    assert same == [(4, 0), (5, 1), (6, 2)]


def test_a_caption_is_one_difference_with_specks_elsewhere():
    places = np.zeros((240, 320), np.bool_)
    compared = ComparedPlaces(~places, ~places, ~places, places * 1.0, places * 1.0, window=13)
    caption, fields = ~places, ~places
    caption[100:140, 40:280] = caption[200:208, 20:28] = False
    for top in (20, 100, 180):
        fields[top : top + 20, 40:120] = fields[top : top + 20, 200:280] = False
    one_dot, large = ~places, ~places
    one_dot[100:110, 40:50] = False
    large[20:220, 20:220] = False
    scattered = [replace(compared, agreeing=agreeing).is_scattered for agreeing in (caption, fields, one_dot, large)]
    assert scattered == [False, True, False, True]


def test_look_alikes_that_cannot_be_laid_over_each_other_cost_no_refinement(monkeypatch):
    """All corners of coloured blocks look alike: every pair is proposed, and most frames overlap by less than half."""
    n_refined, chance = [], random.Random(0)

    def counted(*arguments, **options):
        n_refined.append(1)
        return refined(*arguments, **options)

    monkeypatch.setattr(same_image_module, "refined", counted)
    blocks = [Image.frombytes("RGB", (16, 9), chance.randbytes(16 * 9 * 3)) for _ in range(24)]
    looks = [look_of(image.resize((640, 360), Image.Resampling.NEAREST)) for image in blocks]
    n_pairs = len(looks) * (len(looks) - 1) // 2
    assert [same_image(looks[a], looks[b]) for a in range(len(looks)) for b in range(a)] == [None] * n_pairs
    assert sum(n_refined) <= n_pairs / 15


def made_up(rng: np.random.Generator, n: int) -> list[Look]:
    """Looks of chance: a few places and hashes of a small choice, so that many are proposed."""
    places = rng.integers(0, 2**63, (30, 4), dtype=np.uint64)
    hashes = rng.integers(0, 2**63, (6, 8), dtype=np.uint64)

    def features() -> Features:
        chosen = rng.choice(len(places), int(rng.integers(0, 9)), replace=False)
        return Features(np.zeros((len(chosen), 4), np.float32), places[chosen])

    def hashed() -> PerceptualHash | None:
        own = hashes[rng.integers(len(hashes))] ^ (np.uint64(1) << rng.integers(0, 64, 8, dtype=np.uint64))
        return PerceptualHash(tuple(own.tolist())) if rng.random() < 0.7 else None

    return [Look(hashed(), rng.bytes(4), (features(), features())) for _ in range(n)]


def proposed(look: Look, earlier: Look) -> bool:
    """By the two alone, as the search proposes."""
    if look.hash and earlier.hash and min((own ^ earlier.hash.bits).bit_count() for own in look.hash.turns) <= 8:
        return True
    signatures = {bytes(own) for side in earlier.features for own in side.signatures}
    met = {n for side in look.features for n, own in enumerate(side.signatures) if bytes(own) in signatures}
    return len(met) >= look_search.MIN_SHARED


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("block", [4, 7, 128])
def test_the_search_proposes_what_shares_features_or_hashes(seed, block, monkeypatch, tmp_path):
    rng = np.random.default_rng(seed)
    looks = made_up(rng, 60)
    is_same = rng.random((60, 60)) < 0.2
    expected, gone = [], set()
    for row in range(60):
        earlier = [of for of in range(row) if of not in gone and proposed(looks[row], looks[of])]
        if any(is_same[row, of] for of in earlier):
            gone.add(row)
        expected.append(set(earlier))
    asked: list[set[int]] = [set() for _ in looks]

    def compare(row: int, of: int) -> ImageComparison | None:
        asked[row].add(of)
        return ImageComparison(1.0, 1.0, 1.0, 0.0) if is_same[row, of] else None

    monkeypatch.setattr(look_search, "_BLOCK", block)
    monkeypatch.setattr(look_search, "MOST_COMPARED", 256)
    found = near_looks(looks, compare=compare, folder=tmp_path)
    assert {one.index for one in found} == gone
    for row, of_row in enumerate(asked):
        assert of_row <= expected[row]
        assert row in gone or of_row == expected[row]


def of_chance(rng: np.random.Generator, n: int, own: np.ndarray | None = None) -> Look:
    """``n`` features of chance, or these ``own``, without a hash; its mirror image has others."""
    signatures = rng.integers(0, 2**63, (2, n, 4), dtype=np.uint64)
    sides = (signatures[0] if own is None else own, signatures[1])
    plain, mirrored = (Features(np.zeros((len(side), 4), np.float32), side) for side in sides)
    return Look(None, b"", (plain, mirrored))


def test_copies_that_share_a_third_of_their_features_nearly_are_proposed():
    """One bit in twelve differs, and two features in three are others."""
    rng = np.random.default_rng(2)
    looks = [of_chance(rng, 96) for _ in range(200)]
    for original in looks[:200]:
        bits = np.unpackbits(original.features[0].signatures.view(np.uint8), axis=1)
        changed = np.packbits(bits ^ (rng.random(bits.shape) < 1 / 12), axis=1).view(np.uint64)
        changed[32:] = rng.integers(0, 2**63, (64, 4), dtype=np.uint64)
        looks.append(of_chance(rng, 96, changed))
    compared: list[tuple[int, int]] = []
    near_looks(looks, compare=lambda row, of: compared.append((row, of)))
    assert {(200 + n, n) for n in range(200)} <= set(compared)
    assert len(compared) <= 210


def test_comparisons_do_not_grow_with_the_images_of_one_template(monkeypatch):
    """All share three features; each has five of its own."""
    rng = np.random.default_rng(3)
    monkeypatch.setattr(look_search, "COMMON", 16)
    monkeypatch.setattr(look_search, "_BLOCK", 8)
    template = rng.integers(0, 2**63, (3, 4), dtype=np.uint64)
    own = rng.integers(0, 2**63, (800, 5, 4), dtype=np.uint64)
    looks = [of_chance(rng, 8, np.concatenate([template, of])) for of in own]
    looks.append(looks[5])
    compared: list[tuple[int, int]] = []
    near_looks(looks, compare=lambda row, of: compared.append((row, of)))
    per_row = np.bincount([row for row, _ in compared], minlength=801)
    assert per_row.max() <= look_search.MOST_COMPARED
    assert (800, 5) in compared


def test_of_many_proposals_the_likeliest_are_compared(monkeypatch, originals):
    """Ten images of one hash; the last is the third's with one bit changed."""
    bits = [0, 7, 56, 448, 3584, 28672, 229376, 1835008, 14680064]
    none = Features(np.zeros((0, 4), np.float32), np.zeros((0, 4), np.uint64))
    looks = [Look(PerceptualHash((own,) * 8), b"", (none, none)) for own in [*bits, bits[2] ^ 1]]
    compared: list[tuple[int, int]] = []

    def compare(row: int, of: int) -> None:
        compared.append((row, of))

    monkeypatch.setattr(look_search, "_BLOCK", 1)
    assert near_looks(looks, compare=compare) == []
    of_last = [of for row, of in compared if row == 9]
    assert len(of_last) == look_search.MOST_COMPARED == 4
    assert of_last[0] == 2
    compared.clear()
    near_looks(looks, compare=compare, related=lambda row, of: of % 2)
    assert [of for row, of in compared if row == 9] == [1, 3, 5, 7], "the others take no place among the likeliest"


def test_an_image_is_likeliest_the_one_with_most_keys_in_common():
    """Each shares five features with the last; with one of them in full, with the others by a key each."""
    rng = np.random.default_rng(4)
    of_last = rng.integers(0, 2**63, (5, 4), dtype=np.uint64)
    looks = []
    for n in range(9):
        own = rng.integers(0, 2**63, (5, 4), dtype=np.uint64)
        own.view(np.uint32)[:, 0] = of_last.view(np.uint32)[:, 0]
        looks.append(of_chance(rng, 5, of_last if n == 6 else own))
    compared: list[tuple[int, int]] = []
    near_looks([*looks, of_chance(rng, 5, of_last)], compare=lambda row, of: compared.append((row, of)))
    assert next(of for row, of in compared if row == 9) == 6
