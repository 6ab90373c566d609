"""Images stay decoded within a limit, and whoever changes one changes a copy."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from PIL import Image

from darkroom.pipelines.storage.images import DecodedImages

SIDE = 100


class Decoder:
    """Gives a grey image whose level is the first byte; counts."""

    def __init__(self) -> None:
        self.n_calls = 0
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def __call__(self, data: bytes) -> Image.Image:
        self.n_calls += 1
        assert self.may_go_on.wait(60)
        return Image.new("L", (SIDE, SIDE), data[0])


def test_an_image_is_decoded_once_and_a_change_to_it_is_the_callers():
    decoded, decoder = DecodedImages(SIDE * SIDE), Decoder()
    decoded.get("a", b"\x07", decoder).putpixel((0, 0), 200)
    assert decoded.get("a", b"\x07", decoder).getpixel((0, 0)) == 7
    assert decoder.n_calls == 1


def test_the_one_that_was_not_asked_for_longest_goes_first():
    decoded, decoder = DecodedImages(2 * SIDE * SIDE), Decoder()
    for name in "abacab":
        decoded.get(name, name.encode(), decoder)
    assert decoder.n_calls == 4  # b went when c came


def test_what_is_larger_than_the_limit_is_not_kept():
    decoded, decoder = DecodedImages(SIDE * SIDE - 1), Decoder()
    assert [decoded.get("a", b"\x07", decoder).getpixel((0, 0)) for _ in range(2)] == [7, 7]
    assert decoder.n_calls == 2


def test_who_asks_while_it_is_being_decoded_waits_for_it():
    decoded, decoder = DecodedImages(2 * SIDE * SIDE), Decoder()
    decoder.may_go_on.clear()
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(decoded.get, "a", b"\x07", decoder) for _ in range(4)]
        decoder.may_go_on.set()
        assert {each.result().getpixel((0, 0)) for each in asked} == {7}
    assert decoder.n_calls == 1


def test_one_that_cannot_be_decoded_is_tried_again():
    decoded, decoder = DecodedImages(SIDE * SIDE), Decoder()

    def broken(data: bytes) -> Image.Image:
        raise OSError("cut off")

    with pytest.raises(OSError, match="cut off"):
        decoded.get("a", b"\x07", broken)
    assert decoded.get("a", b"\x07", decoder).getpixel((0, 0)) == 7
