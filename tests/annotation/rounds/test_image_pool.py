from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from darkroom.annotation import AnnotationError
from darkroom.annotation.rounds.campaign import Campaign, ImageFolder
from darkroom.annotation.rounds.image_pool import POOL, left_out, materialize_pool
from darkroom.pipelines.records import PoolImage
from darkroom.pipelines.storage.workspace import Workspace
from tests.conftest import textured
from tests.matrices import first_quickly


@pytest.fixture
def folder(workspace: Workspace) -> Path:
    (workspace.annotation / "images").mkdir(parents=True)
    return workspace.annotation


def image(folder: Path, name: str, seed: int, size: tuple[int, int] = (320, 200), **more: object) -> Path:
    path = folder / "images" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    textured(seed, size).save(path, **more)
    return path


def campaign(**more: object) -> Campaign:
    images = (ImageFolder(path="images", source="ours", license="CC0-1.0"),)
    return Campaign.model_validate({"images": images, "min_side": 300} | more)


def build(workspace: Workspace, folder: Path, **more: object) -> tuple[list[str], dict[str, str]]:
    """The pool's rows, and why the others are not in it."""
    report = materialize_pool(workspace, campaign(**more), folder)
    rows = [item.source_row for item in workspace.tables.read(POOL, PoolImage)]
    rejects = {one.source_row: one.reason for one in workspace.tables.read_rejects(POOL)}
    assert report.n_in == len(rows) + len(rejects)
    return rows, rejects


def test_large_sound_images_are_taken_in(workspace: Workspace, folder: Path) -> None:
    image(folder, "a.png", 1)
    image(folder, "below/b.JPG", 2)
    (folder / "images" / "notes.txt").write_text("no image")
    assert build(workspace, folder) == (["a.png", "below/b.JPG"], {})
    [first, _] = workspace.tables.read(POOL, PoolImage)
    assert (first.source, first.license, first.image.width) == ("ours", "CC0-1.0", 320)


def test_the_longer_side_needs_more_than_the_limit(workspace: Workspace, folder: Path) -> None:
    image(folder, "exact.png", 1, (300, 200))
    image(folder, "tall.png", 2, (200, 301))
    assert build(workspace, folder) == (["tall.png"], {"exact.png": "too_small_image"})


def test_what_does_not_decode_is_quarantined(workspace: Workspace, folder: Path) -> None:
    whole = image(folder, "a.jpg", 1).read_bytes()
    (folder / "images" / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (folder / "images" / "empty.jpg").write_bytes(b"")
    (folder / "images" / "text.png").write_text("hello")
    rows, rejects = build(workspace, folder)
    assert rows == ["a.jpg"]
    assert rejects == {"cut.jpg": "truncated_image", "empty.jpg": "empty_image", "text.png": "unreadable_image"}


@pytest.mark.parametrize("size", first_quickly([(20_001, 10_000), (40_000, 20_000)]))
def test_an_image_over_the_limit_is_named_first_with_its_size_and_the_limit(
    workspace: Workspace, folder: Path, size: tuple[int, int]
) -> None:
    image(folder, "a.png", 1)
    image(folder, "b.png", 2, (20, 20))
    Image.new("1", size).save(folder / "images" / "z.png")
    build(workspace, folder)
    first, second = left_out(workspace)
    assert (first.source_row, first.reason, second.source_row) == ("z.png", "too_large_image", "b.png")
    assert f"{size[0] * size[1]:,} pixels, the limit is 200,000,000; scale it down first" in first.evidence


def test_twins_are_left_out(workspace: Workspace, folder: Path) -> None:
    path = image(folder, "a.png", 1)
    (folder / "images" / "b.png").write_bytes(path.read_bytes())
    Image.open(path).resize((640, 400)).save(folder / "images" / "c.png")
    assert build(workspace, folder) == (["a.png"], {"b.png": "duplicate", "c.png": "near_duplicate"})


def test_exif_is_applied_and_stripped(workspace: Workspace, folder: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    image(folder, "turned.jpg", 1, (320, 200), exif=exif)
    build(workspace, folder)
    [item] = workspace.tables.read(POOL, PoolImage)
    assert (item.image.width, item.image.height) == (200, 320)
    assert not Image.open(io.BytesIO(workspace.images.read(item.image))).getexif()


def test_a_benchmarks_images_are_left_out(workspace: Workspace, folder: Path) -> None:
    path = image(folder, "a.png", 1)
    image(folder, "b.png", 2)
    held = workspace.home / "held"
    held.mkdir()
    (held / "x.png").write_bytes(path.read_bytes())
    workspace.benchmarks.write_text(f"held: {{kind: folder, path: {held}}}\n")
    assert build(workspace, folder) == (["b.png"], {"a.png": "contaminated"})


def test_a_larger_choice_keeps_the_smaller_one(workspace: Workspace, folder: Path) -> None:
    for n in range(6):
        image(folder, f"{n}.png", n)
    two, left = build(workspace, folder, n_images=2)
    four, _ = build(workspace, folder, n_images=4)
    assert (len(two), len(four), set(left.values())) == (2, 4, {"not_chosen"})
    assert set(two) < set(four)
    other, _ = build(workspace, folder, n_images=4, seed=1)
    assert set(other) != set(four)


def test_nothing_is_done_again_until_a_file_changes(workspace: Workspace, folder: Path) -> None:
    image(folder, "a.png", 1)
    first = materialize_pool(workspace, campaign(), folder)
    assert (first.reused, materialize_pool(workspace, campaign(), folder).reused) == (False, True)
    image(folder, "b.png", 2)
    assert not materialize_pool(workspace, campaign(), folder).reused


def test_patterns_and_absolute_paths_are_found(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    textured(3, (320, 200)).save(tmp_path / "far.png")
    image(folder, "a.png", 1)
    image(folder, "b.jpg", 2)
    images = [
        {"path": "images/*.jpg", "source": "near", "license": "x"},
        {"path": str(tmp_path / "f*.png"), "source": "far", "license": "y"},
    ]
    assert build(workspace, folder, images=images)[0] == ["b.jpg", "far.png"]


def test_a_place_without_images_is_named(workspace: Workspace, folder: Path) -> None:
    with pytest.raises(AnnotationError, match=r"no image at .*nowhere"):
        materialize_pool(workspace, campaign(images=[{"path": "nowhere", "source": "s", "license": "l"}]), folder)
