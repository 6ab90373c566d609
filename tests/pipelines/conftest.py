"""What tests of the row's own modules share: images, their bytes, a store, and a rollout to be judged."""

from __future__ import annotations

import shutil
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image

from darkroom.pipelines.records import (
    ImageRef,
    Observation,
    Provenance,
    Round,
    Sample,
    Trajectory,
    Truth,
    TruthBox,
    Usage,
)
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.case import Case
from tests import image_files
from tests.conftest import textured


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(str(tmp_path / "images"))


@pytest.fixture(scope="session")
def make_image() -> Callable[..., Image.Image]:
    """``textured`` noise by width, height and mode."""
    return lambda seed=0, width=96, height=64, mode="RGB": textured(seed, (width, height)).convert(mode)


@pytest.fixture(scope="session")
def encoded() -> Callable[..., bytes]:
    """An image as the bytes of a file."""
    return image_files.encoded


@pytest.fixture(scope="session")
def png_bomb() -> Callable[[int, int], bytes]:
    """A PNG whose header promises ``width`` x ``height`` pixels and which holds none."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    def make(width: int, height: int) -> bytes:
        header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
        data = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
        return b"\x89PNG\r\n\x1a\n" + data

    return make


@pytest.fixture(scope="session")
def provenance() -> Provenance:
    return Provenance("openai", "model", "main", "{}", "0" * 64, "1" * 64, 7, "0.1.0")


REGION = (180, 100, 280, 170)


class Drawn(NamedTuple):
    """An image and a crop of it, and a folder that a store keeps them in."""

    folder: Path
    whole: ImageRef
    crop: Image.Image
    part: ImageRef


@pytest.fixture(scope="session")
def _drawn(tmp_path_factory: pytest.TempPathFactory, make_image: Callable[..., Image.Image]) -> Drawn:
    """Drawn and written once: hundreds of tests judge a rollout about them."""
    folder = tmp_path_factory.mktemp("drawn")
    store, original = ImageStore(str(folder)), make_image(3, 640, 480)
    crop = original.crop(REGION)
    return Drawn(folder, store.add_pixels(original), crop, store.add_pixels(crop))


@pytest.fixture
def make_case(store: ImageStore, _drawn: Drawn, provenance: Provenance) -> Callable[..., Case]:
    """A rollout that cropped the sign at (200, 120, 260, 150) of a 640x480 image and read it.

    ``crop`` is the image that the last round shows (None: none); ``code``, ``thought``, ``comment`` and so on replace
    what the rollout said.
    """
    shutil.copytree(_drawn.folder, store.url, dirs_exist_ok=True)
    whole = _drawn.whole

    def make(
        *,
        crop: Image.Image | None = _drawn.crop,
        code: str = f"image.crop({REGION}).save(path)",
        thought: str = "The sign is small, so I look closer.",
        final_thought: str = "It says STOP.",
        answer: str = "STOP",
        hint: dict[str, Any] | None = None,
        question: str = "What does the sign say?",
        rounds: tuple[Round, ...] | None = None,
        observation: Observation | None = None,
        **sample: Any,
    ) -> Case:
        shown = () if crop is None else (_drawn.part if crop is _drawn.crop else store.add_pixels(crop),)
        seen = observation or Observation("ok", "", images=shown)
        asked = Sample(
            sample_id="s" * 64,
            source="signs",
            source_row="signs/1",
            license="CC0-1.0",
            images=(whole,),
            question=question,
            choices=(),
            answer="STOP",
            truth=Truth(boxes=(TruthBox("sign", 200, 120, 260, 150),)),
            category="OCR",
        )
        trajectory = Trajectory(
            trajectory_id="t" * 64,
            sample_id=asked.sample_id,
            family="crop",
            protocol="thyme",
            images=(whole,),
            rounds=(Round(thought, code, seen),) if rounds is None else rounds,
            final_thought=final_thought,
            answer=answer,
            loss_policy="last_round",
            checks=(),
            usage=Usage(),
            provenance=provenance,
        )
        told = {"region": "180, 100, 280, 170"} if hint is None else hint
        return Case(replace(asked, **sample), trajectory, told, store)

    return make
