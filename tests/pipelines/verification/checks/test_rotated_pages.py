"""Rotations of documents: pages of print, scans and screenshots that are upright again pass, however framed."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter

from darkroom.pipelines.demo.images.material import font, photograph_image
from darkroom.pipelines.records import Observation, Truth
from darkroom.pipelines.verification.checks.check import Flaw
from darkroom.pipelines.verification.checks.image_operations import angle_undone, upright
from tests.matrices import first_quickly

SIZE = (620, 880)
WORDS = "the measured values of each sample were compared with those that had been recorded before in every run"
BICUBIC = Image.Resampling.BICUBIC


def prose(n_words: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [draw.choice(WORDS.split()) for _ in range(n_words)]


def set_text(draw: ImageDraw.ImageDraw, words: list[str], left: int, top: int, right: int, bottom: int, **look) -> None:
    face = font(look.pop("face", "DejaVuSerif"), 13)
    x, y = left, top
    for word in words:
        width = face.getlength(word + " ")
        if x + width > right:
            x, y = left, y + 20
        if y > bottom:
            return
        draw.text((x, y), word, font=face, **look)
        x += width


def article(seed: int = 0) -> Image.Image:
    page = Image.new("RGB", SIZE, "white")
    draw = ImageDraw.Draw(page)
    draw.text((60, 50), "3  Results of the second series", fill="black", font=font("DejaVuSerif-Bold", 20))
    set_text(draw, prose(600, seed), 60, 100, 560, 800, fill="black")
    return page


def columns() -> Image.Image:
    page = Image.new("RGB", SIZE, "white")
    draw = ImageDraw.Draw(page)
    set_text(draw, prose(300, 1), 50, 60, 300, 810, fill="black")
    set_text(draw, prose(130, 2), 325, 60, 575, 400, fill="black")
    for row in range(9):
        draw.line((325, 440 + 40 * row, 575, 440 + 40 * row), fill="black")
        draw.text((335, 450 + 40 * row), f"run {row}   {row * 7919 % 997}   {row * 31337 % 83}", fill="black")
    return page


def scan() -> Image.Image:
    noise = np.random.default_rng(0).normal(0, 9, (SIZE[1], SIZE[0], 1))
    page = article(3).filter(ImageFilter.GaussianBlur(0.7)).rotate(0.4, BICUBIC, fillcolor="white")
    levels = np.asarray(page, np.float32) * (0.82, 0.8, 0.74) + 20 + noise
    return Image.fromarray(np.clip(levels, 0, 255).astype(np.uint8))


def letter() -> Image.Image:
    page = Image.new("RGB", SIZE, (250, 249, 246))
    draw = ImageDraw.Draw(page)
    draw.text((60, 60), "Municipal Archive\n12 Harbour Street", fill="black", font=font("DejaVuSans-Bold", 17))
    set_text(draw, prose(110, 4), 60, 220, 560, 420, fill="black", face="DejaVuSans")
    draw.text((60, 500), "With kind regards,\nA. Lindqvist", fill="black", font=font("DejaVuSans", 14))
    return page


def screenshot() -> Image.Image:
    page = Image.new("RGB", (880, 560), (30, 31, 38))
    draw, pick = ImageDraw.Draw(page), random.Random(5)
    draw.rectangle((0, 0, 880, 34), fill=(58, 60, 70))
    draw.rectangle((0, 34, 170, 560), fill=(42, 44, 52))
    for row in range(24):
        draw.text(
            (14, 50 + 20 * row), f"{pick.choice(WORDS.split())}.py", fill=(170, 172, 180), font=font("DejaVuSans", 11)
        )
        line = " " * 3 * pick.randrange(4) + f"{pick.choice(WORDS.split())}_{row} = {pick.choice(WORDS.split())}({row})"
        draw.text((190, 50 + 20 * row), line, fill=(206, 170, 120), font=font("DejaVuSansMono", 12))
    return page


def plotted() -> Image.Image:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    canvas = FigureCanvasAgg(Figure(figsize=(6.2, 8.8), dpi=100))
    for row in range(34):
        line = " ".join(prose(11, 100 + row))
        canvas.figure.text(0.08, 0.94 - 0.026 * row, line, fontsize=9, family="serif")
    canvas.draw()
    return Image.frombuffer("RGBA", canvas.get_width_height(), bytes(canvas.buffer_rgba())).convert("RGB")


PAGES = {page.__name__: cache(page) for page in (article, columns, scan, letter, screenshot, plotted)}


def same_canvas(given: Image.Image, back: int, size: tuple[int, int]) -> Image.Image:
    return given.rotate(back, BICUBIC)


def cut_to_the_old_size(given: Image.Image, back: int, size: tuple[int, int]) -> Image.Image:
    whole = given.rotate(back, BICUBIC, expand=True)
    left, top = (whole.width - size[0]) // 2, (whole.height - size[1]) // 2
    return whole.crop((left, top, left + size[0], top + size[1]))


def padded(given: Image.Image, back: int, size: tuple[int, int]) -> Image.Image:
    whole = given.rotate(back, BICUBIC, expand=True, fillcolor="white")
    canvas = Image.new("RGB", (whole.width + 400, whole.height + 300), "black")
    canvas.paste(whole, (200, 150))
    return canvas


FRAMES = {frame.__name__: frame for frame in (same_canvas, cut_to_the_old_size, padded)}


@pytest.fixture
def rotated(store, make_case):
    def make(page: Image.Image, frame, *, angle: int, back: int, canvas: bool, fill: str = "black"):
        given = page.rotate(angle, BICUBIC, expand=canvas, fillcolor=fill)
        shown = store.add_pixels(frame(given, back, page.size))
        case = make_case(
            observation=Observation("ok", "", images=(shown,)),
            hint={"angle": angle, "correction": 360 - angle},
            images=(store.add_pixels(page),),
            truth=Truth(),
        )
        return replace(case, trajectory=replace(case.trajectory, images=(store.add_pixels(given),)))

    return make


@pytest.mark.parametrize("page", first_quickly(PAGES, n_quick=2))
@pytest.mark.parametrize(
    ("frame", "canvas"), [("same_canvas", False), ("cut_to_the_old_size", True), ("padded", False)]
)
def test_an_upright_page_passes_whatever_its_canvas_holds_besides(rotated, page, frame, canvas):
    case = rotated(PAGES[page](), FRAMES[frame], angle=139, back=221, canvas=canvas)
    assert [check.detail for check in (upright(case), angle_undone(case)) if not check.passed] == []


@pytest.mark.parametrize("page", ["article", "screenshot"])
def test_half_a_turn_is_undone_and_measured_like_any_other(rotated, page):
    case = rotated(PAGES[page](), same_canvas, angle=180, back=180, canvas=True)
    assert upright(case).passed
    assert angle_undone(case).passed


@pytest.mark.parametrize("page", first_quickly(["article", "letter"]))
@pytest.mark.parametrize("off", [180, 6])
def test_a_page_that_still_leans_or_stands_on_its_head_fails(rotated, page, off):
    """Half a turn as the sum of turn and correction is what Thyme's table 11 rules out."""
    case = rotated(PAGES[page](), same_canvas, angle=139, back=221 + off, canvas=False)
    assert (upright(case).reason, angle_undone(case).reason) == (Flaw.NOT_UPRIGHT, Flaw.WRONG_ANGLE)


@pytest.mark.parametrize("other", first_quickly([columns(), photograph_image("page"), photograph_image("coffee")]))
def test_another_page_is_not_this_one(rotated, other):
    case = rotated(article(), lambda given, back, size: other, angle=139, back=221, canvas=False)
    assert upright(case).reason == Flaw.NOT_UPRIGHT
