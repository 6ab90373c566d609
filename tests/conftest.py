"""What tests of several packages need: a workspace of their own, and a small source with real pixels."""

from __future__ import annotations

import gc
import hashlib
import io
import json
import shutil
import signal
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import typer.testing
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from PIL import Image, ImageDraw

from darkroom.pipelines.records import Truth, TruthBox
from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.storage.ledger import Ledger
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.vision.legibility import OcrReader, TextLine
from tests.image_files import encoded
from tests.object_store import ObjectStore, object_store_server

# a busy machine is no failure, and everybody tries the same examples: `--hypothesis-profile explore` looks for others,
# and `make soak` tries ten times as many
settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("thorough", deadline=None, derandomize=True, max_examples=400)
settings.register_profile("explore", deadline=None)
settings.load_profile("repeatable")
# hypothesis also takes constants from the modules that are loaded, and those are others in each worker of pytest-xdist
_loaded_constants = providers._get_local_constants
providers._get_local_constants = lambda: (
    providers.Constants() if settings.default and settings.default.derandomize else _loaded_constants()
)
# a runner makes the commands of a program anew for each call, which takes longer than most calls
typer.testing._get_command = cache(typer.testing._get_command)


_read, _lines = OcrReader.read, dict[tuple[OcrReader, tuple[int, int], bytes, bool], list[TextLine]]()


def _read_once(reader: OcrReader, image: Image.Image, *, is_line: bool = False) -> list[TextLine]:
    key = (reader, image.size, hashlib.sha256(image.convert("RGB").tobytes()).digest(), is_line)
    if key not in _lines:
        _lines[key] = _read(reader, image, is_line=is_line)
    return list(_lines[key])


# most of the time of a family's checks, and most families are about the same few images
OcrReader.read = _read_once  # type: ignore[method-assign]

# a script's background job ignores interrupts, and so would every program that the tests start and interrupt
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

LONGEST = (
    "tests/e2e/test_demo",
    "tests/sandbox/",
    "tests/e2e/annotation/",
    "tests/e2e/test_annotation_",
    "tests/e2e/test_readme_commands.py",
    "tests/e2e/test_cancelled_training.py",
    "tests/train/finetuning/test_phases.py",
    "tests/e2e/test_sharded.py",
    "tests/e2e/test_transformers_serve.py",
    "tests/e2e/test_ui.py",
    "tests/e2e/",
    "tests/train/test_",
    "tests/train/",
    "tests/test_families_page.py",
    "tests/pipelines/demo/",
    "tests/assets/clusters/",
    "tests/examples/",
    "tests/pipelines/generation/recipes/",
)
"""Beginnings of paths, by how long one file below them takes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first, so that no worker is left with it at the end."""
    items.sort(key=lambda item: next((n for n, start in enumerate(LONGEST) if item.nodeid.startswith(start)), 99))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """No garbage collection goes through all that is imported: with torch that is half of a short training's time."""
    gc.disable()
    collected = yield
    gc.collect()
    gc.freeze()
    gc.enable()
    return collected


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``-n`` alone: without workers the tests run one after the other, and xdist need not be there."""
    from tests.workers import BySharedState

    return BySharedState(config, log)


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Homes of tests without a folder of their own: most of them make none."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(n) for n in count())


@pytest.fixture(autouse=True)
def _own_environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, _homes: Iterator[Path]) -> None:
    """No test reads or writes the developer's data, asks the developer's endpoint, or looks for a hub."""
    has_folder = "tmp_path" in request.fixturenames
    home = request.getfixturevalue("tmp_path") / "home" if has_folder else next(_homes)
    monkeypatch.setenv("DARKROOM_HOME", str(home))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    own = ("DARKROOM_METHODS", "DARKROOM_RECIPES", "DARKROOM_RUN_ON")
    for variable in ("DAGSTER_HOME", "DARKROOM_IMAGES", "DARKROOM_LEDGER", "DARKROOM_POLICY", *own):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`datasets` asks no hub, and has a cache of its own."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()


@pytest.fixture(scope="session")
def _object_store_server() -> Iterator[ObjectStore]:
    with object_store_server() as server:
        yield server


@pytest.fixture
def object_store(_object_store_server: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """A server of an object store that the test's processes are let into: S3, unless the tests run on another one."""
    for name, value in _object_store_server.environment.items():
        monkeypatch.setenv(name, value)
    return _object_store_server


@pytest.fixture
def s3(object_store: ObjectStore) -> ObjectStore:
    """That server, for what is about S3 alone."""
    if object_store.protocol != "s3":
        pytest.skip("about S3")
    return object_store


@pytest.fixture
def ledger_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.sqlite'}"


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    with Ledger(ledger_url) as opened:
        yield opened


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.from_environment({"DARKROOM_HOME": str(tmp_path / "home")}) as opened:
        yield opened


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def textured(seed: int, size: tuple[int, int] = (640, 480)) -> Image.Image:
    """Smooth noise: every region of it looks different, and it survives JPEG and resampling."""
    noise = np.random.default_rng(seed).integers(0, 255, (size[1] // 8, size[0] // 8, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC)


@cache
def signed(seed: int, text: str, box: tuple[int, int, int, int]) -> bytes:
    """A textured image with ``text`` on a small sign, as JPEG bytes."""
    image = textured(seed)
    draw = ImageDraw.Draw(image)
    draw.rectangle((box[0], box[1], box[2] - 1, box[3] - 1), fill=(250, 250, 250))
    draw.text((box[0] + 4, box[1] + 4), text, fill=(0, 0, 0))
    return encoded(image, "JPEG", quality=92)


@dataclass(frozen=True)
class SmallSource:
    """``n_rows`` images with a sign; row 1 has no box, and the last row's image is damaged."""

    n_rows: int = 6
    name: str = "small"
    n_shards: int = 1
    fingerprint: str = "small"
    extra: tuple[SourceRow | BadRow, ...] = field(default=())

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        for n in range(self.n_rows):
            yield self._row(n)
        yield from self.extra

    def write(self, folder: Path) -> None:
        """As a user has it: images beside ``questions.jsonl``."""
        folder.mkdir()
        lines = []
        for n, row in enumerate(self.rows(0)):
            (folder / f"{n}.jpg").write_bytes(row.images[0])
            boxes = [list(box.box) for box in row.truth.boxes]
            lines.append({"image": f"{n}.jpg", "question": row.question, "answer": row.answer, "boxes": boxes})
            lines[-1]["license"] = row.license
        (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)))

    def _row(self, n: int) -> SourceRow:
        box = (40 + 60 * n, 60 + 30 * n, 88 + 60 * n, 84 + 30 * n)
        image = signed(n, f"S{n}X", box)
        boxes = () if n == 1 else (TruthBox("sign", *box),)
        damaged = n == self.n_rows - 1
        return SourceRow(
            row=f"row/{n}",
            images=(image[: len(image) // 2] if damaged else image,),
            question=f"What does sign number {n} say?",
            answer=f"S{n}X",
            truth=Truth(boxes=boxes),
            category="OCR",
            license="CC0-1.0",
        )


@dataclass(frozen=True)
class Unlocated(SmallSource):
    """The small source, whose small signs need a closer look, without their places."""

    def _row(self, n: int) -> SourceRow:
        return replace(super()._row(n), truth=Truth())


@pytest.fixture
def small_source() -> SmallSource:
    return SmallSource()


@pytest.fixture(scope="session")
def crop_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the small source became the dataset ``crop``: made once, never changed, copied by ``shipped``."""
    from tests.pipelines.publishing.shipping import ship  # the sandbox's tests need nothing of what it imports

    home = tmp_path_factory.mktemp("crop_home")
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as opened:
        ship(opened, SmallSource())
    return home


@pytest.fixture
def shipped(crop_home: Path, workspace: Workspace) -> Path:
    """The folder of the dataset ``crop`` in the test's own workspace, which holds all that led to it."""
    shutil.copytree(crop_home, workspace.home)
    return workspace.dataset("sft", "crop")


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
