"""The rows of the ablations' world."""

import json
import os
import re
from itertools import islice

import pytest

from darkroom.pipelines.demo.street_sign_datasets import LEAST, PIECE, StreetSigns
from darkroom.pipelines.generation.recipes.operation_aware import PROMPTS
from darkroom.pipelines.records.geometry import Box
from darkroom.train.tiny import DIGIT_SPLIT
from measurements.ablations.world.datasets import ROWS, WRITERS, rows_below, shipped
from measurements.ablations.world.films import CONTEXTS, FIRST, N_FRAMES, SHOWN, Films
from measurements.ablations.world.looks import Closeups, Looks, named_regions
from measurements.ablations.world.needed_looks import SignsOfWalls
from measurements.ablations.world.sums import Sums

pytestmark = pytest.mark.soak  # half a minute of CPU, for experiments that run there

NUMBERS = re.compile(r"\d+, \d+, \d+, \d+")
SHARES = re.compile(r"(?:0\.\d{3}, ){3}0\.\d{3}")


def rows_of(folder, source, writer):
    """The rows of a writer, without their images."""
    from darkroom.train.examples.datasets import open_dataset

    return list(open_dataset(shipped(folder, source, WRITERS[writer])).remove_columns("images"))


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return rows_of(tmp_path_factory.mktemp("rows"), StreetSigns(1, seed=5), "crop")


@pytest.fixture(scope="module")
def looks(tmp_path_factory):
    return rows_of(tmp_path_factory.mktemp("looks"), Looks(3, seed=5), "operation_aware")


@pytest.fixture(scope="module")
def look_questions(tmp_path_factory):
    from darkroom.train.rl.rollouts.prompts import open_prompts

    folder = tmp_path_factory.mktemp("questions")
    return list(open_prompts(shipped(folder, Looks(1, seed=5), WRITERS["look_questions"])).remove_columns("images"))


def test_every_sign_passes_the_crop_familys_checks_in_two_pieces(rows):
    assert len(rows) == sum(1 for _ in StreetSigns(1, seed=5).rows(0)) >= 4


def test_a_question_names_the_region_that_the_program_crops(rows):
    for row in rows:
        assert NUMBERS.search(row["question"])[0] in row["rounds"][0]["code"]


def test_every_coordinate_has_three_digits_and_lies_in_the_piece():
    for row in StreetSigns(1, seed=5).rows(0):
        x1, y1, x2, y2 = map(int, NUMBERS.search(row.question)[0].split(", "))
        assert LEAST <= x1 < x2 <= PIECE[0]
        assert LEAST <= y1 < y2 <= PIECE[1]


def test_a_closeup_is_answered_at_once(tmp_path):
    source = Closeups(1, seed=5)
    rows = rows_of(tmp_path, source, "direct")
    assert [row["family"] for row in rows] == ["direct"] * len(list(source.rows(0)))
    assert not any(row["rounds"] for row in rows)
    assert {row["answer"] for row in rows} <= {"red", "green", "blue", "brown", "grey"}


def test_signs_seen_from_afar_are_zoomed_in_on_and_those_seen_from_near_are_not(looks):
    calls = {category: [row["rounds"] for row in looks if row["category"] == category] for category in ("far", "near")}
    assert len(calls["far"]) == len(calls["near"]) >= 6
    assert all(len(rounds) == 1 for rounds in calls["far"])
    assert not any(calls["near"])


def test_a_zoom_has_the_numbers_of_its_question(looks):
    for row in (row for row in looks if row["rounds"]):
        assert f"[{SHARES.search(row['question'])[0]}]" in row["rounds"][0]["code"]


def test_rows_of_looks_have_all_modes_and_obey_them(looks):
    modes = {bool(rounds): {row["mode"] for row in looks if bool(row["rounds"]) == bool(rounds)} for rounds in (0, 1)}
    assert modes == {True: {"forced", "free"}, False: {"forbidden", "free"}}


def test_the_familys_option_is_as_it_was_afterwards(monkeypatch, tmp_path):
    monkeypatch.setenv(PROMPTS, "neutral")
    rows_of(tmp_path, Looks(1, seed=5), "operation_aware")
    assert os.environ[PROMPTS] == "neutral"


def test_a_look_is_suitable_where_a_sign_is_seen_from_afar(look_questions):
    assert {row["category"]: row["suitable"] for row in look_questions} == {"far": True, "near": False}
    assert {row["sample_id"] for row in look_questions if row["suitable"]}.isdisjoint(
        row["sample_id"] for row in look_questions if not row["suitable"]
    )


def test_shares_of_an_image_have_three_digits_that_json_keeps():
    for row in Looks(2, seed=5).rows(0):
        shares = SHARES.search(row.question)[0]
        assert json.dumps(json.loads(f"[{shares}]")) == f"[{shares}]"


@pytest.fixture(scope="module")
def needed_looks(tmp_path_factory):
    return rows_of(tmp_path_factory.mktemp("needed"), SignsOfWalls(4, seed=5), "needed_looks")


def test_every_region_that_is_asked_about_is_looked_at_and_sometimes_one_again(needed_looks):
    more = []
    for row in needed_looks:
        regions, codes = NUMBERS.findall(row["question"]), [turn["code"] for turn in row["rounds"]]
        assert all(region in code for region, code in zip(regions, codes, strict=False))
        more.append(len(codes) - len(regions))
        assert more[-1] == 0 or regions[0] in codes[-1]
    assert set(more) == {0, 1}


def test_two_looks_answer_with_the_colours_in_their_order(needed_looks):
    colours = {
        NUMBERS.search(row["question"])[0]: row["answer"] for row in needed_looks if row["category"] == "one_look"
    }
    both = [row for row in needed_looks if row["category"] == "two_looks"]
    assert both
    for row in both:
        regions = NUMBERS.findall(row["question"])
        assert len(regions) == 2
        assert row["answer"] == " and ".join(colours[region] for region in regions)


def test_code_computes_every_sum(tmp_path):
    rows = rows_of(tmp_path, Sums(3, seed=5), "math_code")
    assert len(rows) == 3
    for row in rows:
        first, second = map(int, re.findall(r"\d+", row["question"]))
        assert f"{first} + {second}" in row["rounds"][0]["code"]
        assert row["rounds"][0]["observation"]["text"].strip() == row["answer"] == str(first + second)


def test_code_shows_the_frame_that_the_question_names(tmp_path):
    rows = rows_of(tmp_path, Films(2, seed=5), "agentic_video")
    assert len(rows) == 2
    for row in rows:
        (asked,) = re.findall(r"frame (\d+)", row["question"])
        assert FIRST <= int(asked) < N_FRAMES
        assert [f"[{number}]" in turn["code"] for number, turn in zip((0, asked), row["rounds"], strict=True)] == [
            True
        ] * 2


def test_no_two_films_ask_about_the_same_frame():
    questions = [row.question for row in islice(Films(60, seed=5).rows(0), 12)]
    assert len(set(questions)) == len(questions)


def test_one_of_the_frames_in_a_context_shows_the_sign(tmp_path):
    source = Films(4, seed=5)
    moments = {row.question: json.loads(row.truth.details)["moments"][0] for row in source.rows(0)}
    rows = rows_of(tmp_path, source, "frames_in_context")
    assert rows
    for row in rows:
        numbers = [int(ref["made_by"].removeprefix("frame ")) for ref in row["image_refs"]]
        first = moments[row["question"]]["first"]
        assert any(first <= number < first + SHOWN for number in numbers)
        assert (len(numbers) in CONTEXTS, row["mode"], row["rounds"]) == (True, "forbidden", [])


def test_a_dataset_lies_where_its_kind_does(tmp_path):
    assert rows_below(tmp_path, "train") == tmp_path / "train/datasets/sft/crop"
    assert rows_below(tmp_path, "held_out_looks") == tmp_path / "held_out_looks/datasets/rl/prompts"
    assert {rows.writer for rows in ROWS.values()} == set(WRITERS)


def test_other_walls_share_no_image():
    one, other = ({row.images[0] for row in StreetSigns(1, seed).rows(0)} for seed in (5, 6))
    assert not one & other


def test_coordinates_are_tokens_digit_by_digit(tmp_path, rows):
    from darkroom.train.models.loading import load_processor
    from darkroom.train.tiny import build

    texts = [row["question"] + row["rounds"][0]["code"] for row in rows]
    build(tmp_path / "tiny", texts=texts, split=DIGIT_SPLIT)
    tokenizer = load_processor(tmp_path / "tiny").tokenizer
    assert [tokenizer.decode([token]) for token in tokenizer("214, 250")["input_ids"]] == [*"214", ", ", *"250"]
    assert [tokenizer.decode([token]) for token in tokenizer("[0.214")["input_ids"]][-3:] == [*"214"]


def test_the_region_is_read_from_the_question():
    pixels = "What colour is the street sign in the region 214, 250, 381, 325?"
    assert named_regions(pixels) == [Box(214, 250, 381, 325)]
    shares = "What colour is the street sign in the region 0.250, 0.125, 0.751, 0.881?"
    assert named_regions(shares, (400, 800)) == [Box(100, 100, 300, 705)]
    both = "What colours are the street signs in the regions 247, 134, 327, 167 and 864, 105, 930, 135?"
    assert named_regions(both) == [Box(247, 134, 327, 167), Box(864, 105, 930, 135)]
    with pytest.raises(ValueError, match="no region in 'What colour'"):
        named_regions("What colour")
