"""Tokens of images, as transformers' ``smart_resize`` has them for the sizes below."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from darkroom.pipelines.vision.visibility import QWEN2_5_VL, QWEN3_VL, resized, visual_tokens


@pytest.mark.parametrize(
    ("size", "seen", "tokens"),
    [
        ((28, 28), (56, 56), 4),
        ((448, 336), (448, 336), 192),
        ((384, 288), (392, 280), 140),
        ((9, 262), (28, 308), 11),
        ((1200, 500), (1204, 504), 774),
        ((3200, 1700), (1932, 1008), 2484),
        ((5000, 5000), (1400, 1400), 2500),
    ],
)
def test_qwen2_5_vl_cuts_squares_of_28_pixels(size, seen, tokens):
    assert (resized(*size, QWEN2_5_VL), visual_tokens(*size, QWEN2_5_VL)) == (seen, tokens)


@pytest.mark.parametrize(
    ("size", "seen", "tokens"),
    [
        ((28, 28), (64, 64), 4),
        ((448, 336), (448, 320), 140),
        ((384, 288), (384, 288), 108),
        ((3200, 1700), (1920, 1024), 1920),
    ],
)
def test_qwen3_vl_cuts_squares_of_32_pixels(size, seen, tokens):
    assert (resized(*size, QWEN3_VL), visual_tokens(*size, QWEN3_VL)) == (seen, tokens)


@given(st.integers(1, 9000), st.integers(1, 9000), st.sampled_from([QWEN2_5_VL, QWEN3_VL]))
def test_an_image_is_resized_to_whole_tokens(width, height, vision):
    wide, high = resized(width, height, vision)
    assert wide % vision.side == high % vision.side == 0
    assert visual_tokens(width, height, vision) >= 1


@given(st.integers(100, 9000), st.integers(100, 9000), st.sampled_from([QWEN2_5_VL, QWEN3_VL]))
def test_an_ordinary_image_stays_between_the_bounds(width, height, vision):
    wide, high = resized(width, height, vision)
    assert vision.min_pixels <= wide * high <= vision.max_pixels
