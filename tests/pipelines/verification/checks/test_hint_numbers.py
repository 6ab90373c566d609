"""Secret numbers, what follows from them, and where code reads a file's name."""

import pytest

from darkroom.pipelines.verification.checks.hint import (
    comments,
    numbers_in,
    reads_file_name,
    secret_numbers,
    solution_stays_hidden,
    spelled,
)


@pytest.mark.parametrize(
    ("hint", "secret"),
    [
        ({"angle": 90}, {90, 270}), ({"angle": 12.5}, {12.5, 347.5}), ({"angle": 355}, {355}),
        ({"angle": 360}, {360}), ({"angle": 359}, {359}),
        ({"n": 9}, {351}), ({"n": 10}, {10, 350}), ({"n": 0.5}, {0.5, 359.5}), ({"n": 0}, set()),
        ({"n": True}, set()), ({"n": None}, set()),
        ({"pair": "20, 30"}, {20, 30}), ({"solution": "first 20"}, set()), ({"sizes": "640 x 480"}, set()),
        ({"text": "[400; 500]"}, {400, 500}),
        # a box: its sides, its width and height, its corners as fractions of the image that have more than one digit
        (
            {"region": "64, 48, 96, 120"},
            {64, 48, 96, 120, 32, 72, 0.15, 0.25},
        ),
    ],
)  # fmt: skip
def test_numbers_of_a_hint_and_what_follows_are_secret(make_case, hint, secret):
    assert sorted(secret_numbers(make_case(hint=hint))) == sorted(secret)


def test_a_fraction_is_secret_rounded_to_two_to_five_digits(make_case):
    secret = secret_numbers(make_case(hint={"region": "100, 0, 640, 480"}))
    assert {0.16, 0.156, 0.1562, 0.15625} <= secret
    assert not {0.2, 0.0, 1.0} & secret


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,200 and 3.5 x4", {1200, 1, 200, 3.5, 4}), ("1.2.3", {1.2}), ("180.0", {180}), ("a12b", {12}),
        ("12,34", {12, 34}),
        ("1,2345", {1, 2345}), ("none", set()),
    ],
)  # fmt: skip
def test_numerals_are_read_with_and_without_their_commas(text, numbers):
    assert numbers_in(text) == numbers


@pytest.mark.parametrize(
    ("number", "is_spelled"), [(9, False), (10, True), (9999, True), (10_000, False), (10.5, False)]
)
def test_numbers_from_ten_to_ten_thousand_are_spelled(number, is_spelled):
    assert (spelled(number) is not None) is is_spelled


@pytest.mark.parametrize(
    ("code", "reads"),
    [
        ("n = int(image_path[:3])", True), ("n = float(image_path)", True), ("n = int(image_path_2)", True),
        ("n = int(video_path)", True),
        ("p = image_path\nn = int(p)", True), ("r = q\nq = p\np = image_path\nn = int(r)", True),
        ("a = b = image_path\nn = int(a)", True),
        ("n = str(image_path)", False), ("n = int('3')", False), ("n = int(image_paths)", False), ("x = (", False),
        ("i = Image.open(image_path)\nn = int(i.width)", False), ("i = cv2.imread(image_path)\nn = int(i)", False),
        ("v = VideoReader(video_path)\nn = int(v)", False), ("p = image_path\nn = int(q)", False),
    ],
)  # fmt: skip
def test_a_path_that_becomes_a_number_is_read(code, reads):
    assert reads_file_name(code) is reads


@pytest.mark.parametrize(
    ("code", "texts"),
    [
        ("# a\nx = 1  # b", "# a\n# b"), ("'''doc'''\nx = 'no'", "'''doc'''"),
        ("def f():\n    'doc'\n    return 'x'", "'doc'"),
        ("x = (  # c", "# c"), ("x = 1\n'alone'", "'alone'"), ("print('no')", ""), ("", ""),
    ],
)  # fmt: skip
def test_comments_are_also_texts_that_stand_alone(code, texts):
    assert comments(code) == texts


def test_a_name_of_code_is_read_in_words(make_case):
    assert not solution_stays_hidden(make_case(code="expected_answer = 42")).passed
