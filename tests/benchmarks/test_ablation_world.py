"""The rows of the ablations' world."""

import re

import pytest

from benchmarks.ablations.models import DIGITS
from benchmarks.ablations.world import LEAST, PIECE, StreetSigns, named_region, shipped
from pipelines.records.geometry import Box

NUMBERS = re.compile(r"\d+, \d+, \d+, \d+")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    from train.examples.datasets import open_dataset

    return open_dataset(shipped(tmp_path_factory.mktemp("rows"), StreetSigns(1, seed=5), "crop"))


def test_every_sign_passes_the_crop_familys_checks_in_two_pieces(rows):
    assert len(rows) == sum(1 for _ in StreetSigns(1, seed=5).rows(0)) >= 4


def test_a_question_names_the_region_that_the_program_crops(rows):
    for row in rows.remove_columns("images"):
        assert NUMBERS.search(row["question"])[0] in row["rounds"][0]["code"]


def test_every_coordinate_has_three_digits_and_lies_in_the_piece():
    for row in StreetSigns(1, seed=5).rows(0):
        x1, y1, x2, y2 = map(int, NUMBERS.search(row.question)[0].split(", "))
        assert LEAST <= x1 < x2 <= PIECE[0]
        assert LEAST <= y1 < y2 <= PIECE[1]


def test_a_closeup_is_answered_at_once(tmp_path):
    from train.examples.datasets import open_dataset

    source = StreetSigns(1, seed=5, closeups=True)
    rows = open_dataset(shipped(tmp_path, source, "direct"))
    assert [row["family"] for row in rows] == ["direct"] * len(list(source.rows(0)))
    assert not any(row["rounds"] for row in rows)
    assert {row["answer"] for row in rows} <= {"red", "green", "blue", "brown", "grey"}


def test_other_walls_share_no_image():
    one, other = ({row.images[0] for row in StreetSigns(1, seed).rows(0)} for seed in (5, 6))
    assert not one & other


def test_coordinates_are_tokens_digit_by_digit(tmp_path, rows):
    from train.models.loading import load_processor
    from train.tiny import build

    texts = [row["question"] + row["rounds"][0]["code"] for row in rows.remove_columns("images")]
    build(tmp_path / "tiny", texts=texts, split=DIGITS)
    tokenizer = load_processor(tmp_path / "tiny").tokenizer
    assert [tokenizer.decode([token]) for token in tokenizer("214, 250")["input_ids"]] == [*"214", ", ", *"250"]


def test_the_region_is_read_from_the_question():
    assert named_region("What colour is the street sign in the region 214, 250, 381, 325?") == Box(214, 250, 381, 325)
    with pytest.raises(ValueError, match="no region in 'What colour'"):
        named_region("What colour")
