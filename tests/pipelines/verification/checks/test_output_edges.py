"""What code printed, drew and wrote, and how far it is from a release: at each bound."""

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageDraw

from darkroom.pipelines.records import Observation, Round, Truth
from darkroom.pipelines.verification.checks import Flaw, drawing_needed, figure_rendered, output_supports_answer
from darkroom.pipelines.verification.checks.output import (
    MAX_DIFFERENCE,
    agrees_with_label,
    observation_difference,
    replays_as_released,
)


def printed(make_case, text: str, code: str = "compute()"):
    return make_case(rounds=(Round("I compute.", code, Observation("ok", text)),))


@pytest.mark.parametrize(("n_after", "found"), [(29, True), (30, False)])
def test_the_last_thirty_lines_are_read(make_case, n_after, found):
    assert output_supports_answer(printed(make_case, "STOP\n" + "a\n" * n_after)).passed is found


@pytest.mark.parametrize(("n_after", "found"), [(39, True), (40, False)])
def test_forty_different_candidates_are_compared(make_case, n_after, found):
    numbers = " ".join(f"{n + 100}" for n in range(n_after - 1))
    lines = f"STOP\n{numbers}"
    assert output_supports_answer(printed(make_case, lines)).passed is found
    assert output_supports_answer(printed(make_case, f"STOP\n{numbers}\n{numbers}")).passed is found


@pytest.mark.parametrize(("n_before", "found"), [(395, True), (397, False)])
def test_four_hundred_characters_of_a_line_are_read(make_case, n_before, found):
    assert output_supports_answer(printed(make_case, "x" * n_before + ":STOP")).passed is found


@pytest.mark.parametrize(
    ("line", "found"), [("a: STOP", True), ("a = STOP", True), ("STOP: a", False), ("a: b: STOP", True)]
)
def test_what_stands_behind_the_last_mark_of_a_line_is_read(make_case, line, found):
    verdict = output_supports_answer(printed(make_case, line))
    assert verdict.passed is found
    assert verdict.detail == ("printed 'STOP'" if found else "no program printed 'STOP'")


@pytest.mark.parametrize(
    ("text", "needed"), [("STOP1".rjust(9), True), ("v1=STOP", False), ("v1: STOP ", False), ("STOP", True)]
)
def test_a_text_with_a_number_is_no_answer_that_was_written_into_the_drawing(make_case, text, needed):
    verdict = drawing_needed(printed(make_case, "", f"plt.title({text!r})"))
    assert verdict.passed is needed


@pytest.mark.parametrize(("n_chars", "needed"), [(80, False), (81, True)])
def test_texts_of_up_to_eighty_characters_are_values(make_case, n_chars, needed):
    text = "1" * (n_chars - 5) + ":STOP"
    assert drawing_needed(printed(make_case, "", f"plt.title({text!r})")).passed is needed


@pytest.mark.parametrize(("n_before", "needed"), [(39, False), (40, True)])
def test_forty_texts_of_a_program_are_read(make_case, n_before, needed):
    code = "\n".join([*(f"t = 'text {n}'" for n in range(n_before)), "t = 'v1: STOP'"])
    assert drawing_needed(printed(make_case, "", code)).passed is needed


def drawn(side: int, reach: float = 1.0) -> Image.Image:
    image = Image.new("RGB", (side, side), "white")
    start, end = round(side * (0.5 - reach / 2)), round(side * (0.5 + reach / 2))
    ImageDraw.Draw(image).line((start, side // 2, end, side // 2), fill="black", width=2)
    return image


@pytest.mark.parametrize(
    ("side", "reach", "is_drawing"), [(64, 1.0, True), (63, 1.0, False), (200, 0.25, True), (200, 0.15, False)]
)
def test_a_drawing_has_64_pixels_and_reaches_across_a_quarter(make_case, side, reach, is_drawing):
    found = figure_rendered(make_case(crop=drawn(side, reach)))
    assert (found.passed, found.reason) == ((True, "") if is_drawing else (False, Flaw.FIGURE_BLANK))


@pytest.mark.parametrize(("contrast", "is_drawing"), [(31, False), (32, False), (33, True)])
def test_a_line_is_more_than_32_levels_darker(make_case, contrast, is_drawing):
    image = Image.new("L", (200, 200), 200)
    ImageDraw.Draw(image).line((0, 100, 199, 100), fill=200 - contrast, width=2)
    assert figure_rendered(make_case(crop=image)).passed is is_drawing


def plain(level: int, size=(8, 6)) -> Image.Image:
    return Image.new("RGB", size, (level,) * 3)


def difference(images, released, *, text="", before="", error=None, **more) -> str:
    return observation_difference("thyme", Observation("ok", text, error=error), images, before, released, **more)


def test_images_are_compared_by_number_size_and_pixels():
    assert difference([plain(9)], [plain(9)]) == ""
    assert difference([], [plain(9)]) == "0 images, released 1"
    assert difference([], [plain(9)], error="NameError") == "0 images (NameError), released 1"
    assert difference([plain(9, (8, 7))], [plain(9)]) == "an image of 8x7, released 8x6"
    assert MAX_DIFFERENCE == 8.0
    assert difference([plain(18)], [plain(10)]) == ""
    assert difference([plain(19)], [plain(10)]) == "an image of other pixels, by 9 of 255 on average"
    assert difference([plain(10)], [plain(19)]) != ""
    assert difference([plain(255)], [plain(0)]) == "an image of other pixels, by 255 of 255 on average"
    assert difference([plain(12)], [plain(10)], max_difference=1.9) != ""
    assert difference([plain(10), plain(30)], [plain(10), plain(10)]) != ""


def test_text_is_compared_of_rounds_without_images_only():
    assert difference([plain(9)], [plain(9)], text="7", before="8") == ""
    assert difference([], [], text="7", before="8").endswith("released '8'")
    assert np.asarray(plain(9)).std() == 0


def released(make_case, texts, printed, *, has_label=True, shown=(), n_images=None, **changes):
    """Rounds that printed, of a release that says they printed ``texts``; the first round showed images."""
    numbers = n_images or [0] * len(texts)
    observations = [{"text": text, "n_images": n} for text, n in zip(texts, numbers, strict=True)]
    record = {"n_question_images": 1, "observations": observations, "has_label": has_label}
    rounds = [Round("", "f()", Observation("ok", text)) for text in printed]
    if shown:
        rounds[0] = replace(rounds[0], observation=Observation("ok", "", images=tuple(shown)))
    details = json.dumps({"released": record})
    return make_case(rounds=tuple(rounds), truth=Truth(details=details), **changes)


@pytest.mark.parametrize(
    ("texts", "printed", "score", "detail"),
    [
        (["1", "2", "3"], ["1", "2", "3"], 1.0, "3 rounds"), ([], [], 1.0, "0 rounds"),
        (["1", "2", "3"], ["1", "5", "3"], 0.6667, "round 2: printed '5', released '2'"),
        (["1", "2"], ["4", "5"], 0.0, "round 1: printed '4', released '1'; round 2: printed '5', released '2'"),
        (["1", "2"], ["1"], 0.0, "1 rounds; the release has 2"),
        (["1"], ["1", "2"], 0.0, "2 rounds; the release has 1"),
    ],
)  # fmt: skip
def test_every_round_prints_what_its_release_says(make_case, texts, printed, score, detail):
    found = replays_as_released(released(make_case, texts, printed))
    assert (found.passed, found.score, found.detail) == (score == 1.0, score, detail)


def test_a_rounds_images_are_those_that_follow_the_questions_and_earlier_rounds(make_case, make_image, store):
    first, second, third = (store.add_pixels(make_image(seed, 64, 48)) for seed in (1, 2, 3))
    for shown, passes in (
        ((second, third), True),
        ((third, second), False),
        ((second,), False),
        ((first, second), False),
    ):
        case = released(make_case, ["", "1"], ["", "1"], shown=shown, n_images=[2, 0])
        case = replace(case, sample=replace(case.sample, images=(first, second, third)))
        assert replays_as_released(case).passed is passes
        assert replays_as_released(case).score == (1.0 if passes else 0.5)


def test_without_a_release_nothing_is_replayed_and_no_label_compared(make_case):
    found = replays_as_released(make_case())
    assert (found.passed, found.score) == (False, 0.0)
    assert agrees_with_label(make_case()).detail.startswith("not compared")


@pytest.mark.parametrize(
    ("has_label", "answer", "passes"), [(True, "STOP", True), (True, "GO", False), (False, "GO", True)]
)
def test_an_answer_agrees_with_the_label_that_a_release_has(make_case, has_label, answer, passes):
    case = released(make_case, [], [], has_label=has_label)
    found = agrees_with_label(replace(case, trajectory=replace(case.trajectory, answer=answer)))
    assert found.passed is passes
    assert found.detail.startswith("not compared") is not has_label
