"""What tests of the row's own modules share: pictures, their bytes, a store, and a rollout to be judged."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import settings
from PIL import Image

from pipelines.cases import Case
from pipelines.images import ImageStore
from pipelines.records import Observation, Provenance, Round, Sample, Trajectory, Truth, TruthBox, Usage

settings.register_profile("unhurried", deadline=None)  # a busy machine is no failure
settings.load_profile("unhurried")


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(str(tmp_path / "images"))


@pytest.fixture(scope="session")
def picture() -> Callable[..., Image.Image]:
    """Smooth noise: every region of it looks different, and it survives JPEG and resampling."""

    def make(seed: int = 0, width: int = 96, height: int = 64, mode: str = "RGB") -> Image.Image:
        noise = np.random.default_rng(seed).integers(0, 255, (height // 8, width // 8, 3), dtype=np.uint8)
        return Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC).convert(mode)

    return make


@pytest.fixture(scope="session")
def encoded() -> Callable[..., bytes]:
    """An image as the bytes of a file."""

    def encode(image: Image.Image, format: str = "PNG", **options: Any) -> bytes:
        buffer = io.BytesIO()
        image.save(buffer, format, **options)
        return buffer.getvalue()

    return encode


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


@pytest.fixture
def make_case(store: ImageStore, picture: Callable[..., Image.Image], provenance: Provenance) -> Callable[..., Case]:
    """A rollout that cropped the sign at (200, 120, 260, 150) of a 640x480 picture and read it.

    ``crop`` is the picture that the last round shows (None: none); ``code``, ``thought``, ``comment`` and so on replace
    what the rollout said.
    """
    original = picture(3, 640, 480)
    region = (180, 100, 280, 170)
    right = original.crop(region)

    def make(
        *,
        crop: Image.Image | None = right,
        code: str = f"image.crop({region}).save(path)",
        thought: str = "The sign is small, so I look closer.",
        final_thought: str = "It says STOP.",
        answer: str = "STOP",
        hint: dict[str, Any] | None = None,
        question: str = "What does the sign say?",
        rounds: tuple[Round, ...] | None = None,
        observation: Observation | None = None,
        **sample: Any,
    ) -> Case:
        whole = store.add_pixels(original)
        shown = () if crop is None else (store.add_pixels(crop),)
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


@pytest.fixture(scope="session")
def clip() -> Callable[..., bytes]:
    """A video in which every frame looks different: ``n_frames`` cut-outs of smooth noise, at 8 frames a second."""

    def make(
        seed: int = 0,
        *,
        n_frames: int = 24,
        size: tuple[int, int] = (160, 120),
        format: str = "mp4",
        codec: str = "mpeg4",
    ) -> bytes:
        noise = np.random.default_rng(seed).integers(0, 255, (40, 60, 3), dtype=np.uint8)
        ground = Image.fromarray(noise).resize((size[0] * 3, size[1] * 3), Image.Resampling.BICUBIC)
        buffer = io.BytesIO()
        with av.open(buffer, "w", format=format) as container:
            stream = container.add_stream(codec, rate=8, options={"qmin": "4", "qmax": "4"})
            stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
            stream.codec_context.thread_count = 1
            for number in range(n_frames):
                x, y = number * size[0] * 2 // n_frames, number * size[1] * 2 // n_frames
                frame = np.asarray(ground.crop((x, y, x + size[0], y + size[1])))
                container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
            container.mux(stream.encode())
        return buffer.getvalue()

    return make
