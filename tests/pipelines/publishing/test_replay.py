"""Replay: what the rows say is what their programs give; whatever was changed is found, and where."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from darkroom.pipelines.publishing.dataset_reader import count_rows, find_datasets, read_rows
from darkroom.pipelines.publishing.replay import Difference, in_sandbox, replay, replay_row
from darkroom.pipelines.storage.tables import TableMissing
from tests.image_files import encoded
from tests.pipelines.publishing.shipping import edit_rows


@pytest.fixture
def folder(shipped: Path) -> Path:
    return shipped


def differences(folder: Path, *, limit: int | None = None) -> list[list[Difference]]:
    """Of each row."""
    return [replay_row(row, execute=in_sandbox) for row in read_rows([folder], limit=limit)]


def test_every_program_gives_again_what_its_row_says(folder: Path) -> None:
    found = replay([folder])
    assert (found.n_rows, found.n_same, found.n_programs) == (4, 4, 4)
    assert found.rate == 1.0


def test_the_limit_is_for_each_dataset(folder: Path) -> None:
    assert replay([folder, folder], limit=1).n_rows == 2


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("text", {"text": "/somewhere/else.png\n"}),
        ("status", {"status": "timeout"}),
        ("error", {"error": "ValueError: never raised"}),
        ("images", {"images": []}),
    ],
)
def test_what_differs_is_named_with_its_row_and_round(folder: Path, what: str, change: dict[str, object]) -> None:
    ids = [row["trajectory_id"] for row in read_rows([folder])]

    def spoil(row) -> None:
        if row["trajectory_id"] == ids[2]:
            row["rounds"][0]["observation"].update(change)

    edit_rows(folder, spoil)
    assert [[(one.what, one.round) for one in of_row] for of_row in differences(folder)] == [[], [], [(what, 1)], []]
    found = replay([folder])
    assert (found.n_same, found.rate) == (3, 0.75)


def test_one_pixel_that_is_one_level_off_is_a_difference(folder: Path) -> None:
    def spoil(row) -> None:
        place = row["rounds"][0]["observation"]["images"][0]
        pixels = np.array(Image.open(io.BytesIO(row["images"][place]["bytes"])))
        pixels[0, 0, 0] ^= 1
        row["images"][place]["bytes"] = encoded(Image.fromarray(pixels))

    edit_rows(folder, spoil)
    ((difference,),) = differences(folder, limit=1)
    assert (difference.what, difference.round) == ("pixels", 1)
    assert "up to 1 of 255" in difference.replayed


def test_another_seed_shows_in_what_the_program_prints(folder: Path) -> None:
    edit_rows(folder, lambda row: row["provenance"].update(seed=row["provenance"]["seed"] ^ 1))
    assert any(one.what == "text" for of_row in differences(folder) for one in of_row)  # names are random


def test_state_lives_across_the_rounds_of_a_row(folder: Path) -> None:
    def longer(row) -> None:
        first = row["rounds"][0]
        seen = {"status": "ok", "text": "kept\n", "images": [], "error": None, "edits": []}
        row["rounds"] = [
            {**first, "code": f"{first['code']}\nkept = 'kept'"},
            {"thought": "", "code": "print(kept)", "observation": seen},
        ]

    edit_rows(folder, longer)
    found = replay([folder], limit=1)
    assert (found.n_programs, found.n_same) == (2, 1)


def test_a_protocols_setup_runs_first(folder: Path) -> None:
    def with_a_tool(row) -> None:
        seen = {"status": "ok", "text": "image 2: 64x48 pixels\n", "images": [1], "error": None, "edits": []}
        image = Image.open(io.BytesIO(row["images"][0]["bytes"]))
        row["protocol"] = "tool_call"
        row["images"][1]["bytes"] = encoded(image.crop((0, 0, 64, 48)))
        code = "crop_image_normalized(bbox_2d=[0, 0, 0.1, 0.1], target_image=1)"
        row["rounds"] = [{"thought": "", "code": code, "observation": seen}]

    edit_rows(folder, with_a_tool)
    assert differences(folder, limit=1) == [[]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda row: row["images"][0].update(bytes=b"no image"), "cannot be decoded"),
        (lambda row: row.update(protocol="shouting"), "no protocol 'shouting'"),
    ],
)
def test_a_session_that_cannot_begin_is_a_difference_and_the_rest_goes_on(folder: Path, change, said: str) -> None:
    ids = [row["trajectory_id"] for row in read_rows([folder])]
    edit_rows(folder, lambda row: change(row) if row["trajectory_id"] == ids[0] else None)
    (difference,), *rest = differences(folder)
    assert (difference.what, difference.round) == ("session", 0)
    assert said in difference.replayed
    assert rest == [[], [], []]


def test_rows_without_programs_are_the_same(folder: Path) -> None:
    edit_rows(folder, lambda row: row.update(rounds=[]))
    found = replay([folder])
    assert (found.rate, found.n_programs) == (1.0, 0)


def test_a_dataset_is_named_by_family_by_all_or_by_folder(folder: Path) -> None:
    root = folder.parent
    assert find_datasets("crop", root) == find_datasets("all", root) == [folder]
    assert find_datasets(str(folder), root / "elsewhere") == [folder]
    assert find_datasets(str(root), root / "elsewhere") == [folder]
    assert count_rows([folder], limit=3) == 3


def test_a_name_that_means_no_dataset_is_told_what_there_is(folder: Path) -> None:
    with pytest.raises(TableMissing, match="there are: crop"):
        find_datasets("rotation", folder.parent)


def test_code_that_opens_the_image_by_the_question_s_name_runs_again(folder: Path) -> None:
    def rename(row) -> None:
        row["question"] += "\nUser Image Path: hr_bench_4k/179.jpg"
        row["rounds"][0]["code"] = 'image_path = "hr_bench_4k/179.jpg"\n' + row["rounds"][0]["code"]

    edit_rows(folder, rename)
    assert differences(folder) == [[], [], [], []]
