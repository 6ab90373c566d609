"""Which frames an image shows, on images as matplotlib and PIL make them."""

from __future__ import annotations

import io
from collections.abc import Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from darkroom.pipelines.storage.media_validation import thumbnails
from darkroom.pipelines.vision.frames import SIDE, match_frames
from darkroom.sandbox._guest.video import VideoReader

mpl.use("agg")
ASPECT = 4 / 3


@pytest.fixture(scope="module")
def data(clip) -> bytes:
    return clip()


@pytest.fixture(scope="module")
def frames(data) -> list[np.ndarray]:
    reader = VideoReader(io.BytesIO(data))
    return [reader[number].asnumpy() for number in range(len(reader))]


@pytest.fixture(scope="module")
def film(data):
    return thumbnails(data, side=SIDE)


def drawn() -> Image.Image:
    figure = plt.gcf()
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3].copy()
    plt.close("all")
    return Image.fromarray(pixels)


def numbers(image: Image.Image, film) -> list[int]:
    found = match_frames(image, film, aspect=ASPECT)
    assert all(len(frame.numbers) == 1 for frame in found)
    return sorted(frame.numbers[0] for frame in found)


def side_by_side(frames: Sequence[np.ndarray]) -> np.ndarray:
    return np.hstack(list(frames))


@pytest.mark.parametrize("axes_drawn", [True, False])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 3), (2, 4)])
def test_frames_in_the_axes_of_a_figure_are_found(frames, film, rows, columns, axes_drawn):
    shown = list(range(0, 24, 3))[: rows * columns]
    _, axes = plt.subplots(rows, columns, figsize=(3 * columns, 2.6 * rows), squeeze=False)
    for axis, number in zip(axes.flat, shown, strict=True):
        axis.imshow(frames[number])
        axis.set_title(f"frame {number}")
        axis.axis("on" if axes_drawn else "off")
    assert numbers(drawn(), film) == shown


@pytest.mark.parametrize("scale", [0.5, 1, 3])
def test_a_frame_alone_is_found_at_any_size(frames, film, scale):
    image = Image.fromarray(frames[7])
    assert numbers(image.resize((round(160 * scale), round(120 * scale))), film) == [7]


def test_a_sheet_is_as_many_frames_as_it_holds(frames, film):
    sheet = np.vstack([side_by_side(frames[row : row + 3]) for row in (0, 8, 16)])
    assert numbers(Image.fromarray(sheet), film) == [0, 1, 2, 8, 9, 10, 16, 17, 18]
    plt.imshow(sheet)
    assert numbers(drawn(), film) == [0, 1, 2, 8, 9, 10, 16, 17, 18]


def test_a_cut_out_and_a_plot_show_no_frame(frames, film):
    assert numbers(Image.fromarray(frames[7][20:60, 30:60]), film) == []
    plt.plot([1, 3, 2])
    assert numbers(drawn(), film) == []


def test_a_frame_of_another_video_is_none_of_this_one(clip, film):
    other = VideoReader(io.BytesIO(clip(5)))
    assert numbers(Image.fromarray(other[7].asnumpy()), film) == []


@pytest.mark.parametrize("size", [(1, 1), (3, 400), (400, 3), (30, 30)])
def test_odd_images_show_nothing(film, size):
    assert numbers(Image.new("RGB", size, (9, 9, 9)), film) == []
