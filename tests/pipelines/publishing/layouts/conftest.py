"""A shipped dataset with every kind of row that a layout must hold, written by the pipeline's own export."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from darkroom.pipelines.publishing.layouts.export_source import ExportSource, find_source
from darkroom.pipelines.publishing.parquet_shards import write_trajectories
from darkroom.pipelines.records import (
    Check,
    Edit,
    ImageRef,
    Observation,
    Provenance,
    Round,
    Sample,
    Trajectory,
    Truth,
    Usage,
)
from darkroom.pipelines.storage.images import ImageStore
from tests.pipelines.publishing.layouts import rl_rows
from tests.pipelines.publishing.shipping import write_prompts

UGLY = (
    "Is <image> or < image>, <image> a <video>, <audio>, <bbox>, <img>x</img>? "
    "<|im_end|> <| im_end|> <|image_pad|>\r\n\t 数 🦊"
)
SAID = Observation("ok", "(96, 64)")
FAILED = Observation("error", "", error="NameError: name 'crop' (line 1)")
CROP_CALL = "crop_image_normalized(bbox_2d=[0.1, 0.2, 0.3, 0.4], target_image=1)"
N_IMAGES = {
    "one_round": 2,
    "last_round": 3,
    "two_images": 4,
    "no_code": 1,
    "text_only": 0,
    "ugly": 1,
    "edited": 2,
    "forbidden": 1,
    "forced": 2,
    "pyvision": 3,
}


def _sample(name: str, images: tuple[ImageRef, ...], question: str = "What does the sign say?") -> Sample:
    return Sample(name, "signs", name, "CC0-1.0", images, question, (), "STOP", Truth(), "OCR")


def _trajectory(name: str, images: tuple[ImageRef, ...], rounds: tuple[Round, ...], **changes: Any) -> Trajectory:
    made = Trajectory(
        trajectory_id=name,
        sample_id=name,
        family="crop",
        protocol="thyme",
        images=images,
        rounds=rounds,
        final_thought="It says STOP.",
        answer="STOP",
        loss_policy="all_rounds",
        checks=(Check("answer", True),),
        usage=Usage(),
        provenance=Provenance("oracle", "oracle", "1", "{}", "p", "s", 0, "c"),
    )
    return replace(made, **changes)


@pytest.fixture(scope="session")
def pairs(make_image: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ImageStore]:
    """Rows by kind, as ``N_IMAGES`` counts their images."""
    store = ImageStore(str(tmp_path_factory.mktemp("store")))
    whole, other = (store.add_pixels(make_image(seed)) for seed in (1, 2))
    crop, second = (store.add_pixels(make_image(seed, 32, 32)) for seed in (3, 4))
    seen, twice = Observation("ok", "crop.png", (crop,)), Observation("ok", "two crops", (crop, second))
    look = Round("The sign is small, so I crop it.", "print(1)", seen)
    again = Round("Both signs.", "print(2)", replace(twice, edits=(Edit("imports", "", "import numpy"),)))
    call = Round("I zoom in.", CROP_CALL, seen)
    rows = [
        (_sample("one_round", (whole,)), _trajectory("one_round", (whole,), (look,), loss_policy="last_round")),
        (
            _sample("last_round", (other,)),
            _trajectory(
                "last_round", (other,), (Round("I try.", "print(crop)", FAILED), again), loss_policy="last_round"
            ),
        ),
        (
            _sample("two_images", (whole, other)),
            _trajectory("two_images", (whole, other), (Round("Size?", "print(3)", SAID), again)),
        ),
        (_sample("no_code", (other,), "Which colour?"), _trajectory("no_code", (other,), ())),
        (
            _sample("text_only", (), "What is 17 * 3?"),
            _trajectory("text_only", (), (Round("I compute.", "print(17 * 3)", Observation("ok", "51")),)),
        ),
        (
            _sample("ugly", (whole,), UGLY),
            _trajectory(
                "ugly",
                (whole,),
                (Round(UGLY, f'print("""{UGLY}""")', Observation("ok", UGLY)),),
                final_thought=UGLY,
                answer="<image> 7",
            ),
        ),
        (
            _sample("edited", (whole,), "Edited?"),
            _trajectory("edited", (whole,), (replace(look, observation=replace(seen, edits=again.observation.edits)),)),
        ),
        (
            _sample("forbidden", (whole,)),
            _trajectory("forbidden", (whole,), (), protocol="tool_call", mode="forbidden"),
        ),
        (
            _sample("forced", (whole,)),
            _trajectory("forced", (whole,), (call,), protocol="tool_call", mode="forced"),
        ),
        (_sample("pyvision", (whole,)), _trajectory("pyvision", (whole,), (again,), protocol="pyvision")),
    ]
    return rows, store


@pytest.fixture(scope="session")
def datasets(pairs: tuple[Any, ImageStore], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder ``datasets/sft`` of a workspace, with the family ``mixed``."""
    rows, store = pairs
    folder = tmp_path_factory.mktemp("home") / "datasets" / "sft"
    write_trajectories(folder / "mixed", rows, store=store)
    return folder


@pytest.fixture
def mixed(datasets: Path) -> ExportSource:
    return find_source("mixed", datasets, split="train")


@pytest.fixture
def row(mixed: ExportSource) -> dict[str, Any]:
    """The row with two question images, as a plain dict that a test may damage."""
    return next(row for row in mixed.rows() if row["trajectory_id"] == "two_images")


@pytest.fixture(scope="session")
def prompts(make_image: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the ``rl`` dataset, with rows as ``rl_rows.N_IMAGES`` has them."""
    store = ImageStore(str(tmp_path_factory.mktemp("asked")))
    one, two = (store.add_pixels(make_image(seed)) for seed in (1, 2))
    folder = tmp_path_factory.mktemp("home") / "datasets" / "rl" / "prompts"
    write_prompts(folder, rl_rows.rows((one, two)), store=store, split="train")
    return folder


@pytest.fixture
def rl(prompts: Path) -> Callable[..., ExportSource]:
    """The ``rl`` dataset in a protocol and a mode."""

    def open_(protocol: str | None = None, mode: str | None = None) -> ExportSource:
        source = find_source("rl", prompts.parents[1] / "sft", split="train", prompts=prompts)
        return source.in_protocol(protocol, mode)

    return open_
