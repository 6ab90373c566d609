"""Images that no browser shows as they are: people see a view, and records stay in the original's pixels."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from PIL import Image

from darkroom.annotation._plugin.darkroom_studio.content import (
    LARGEST_SHOWN,
    find_errors,
    share_of,
    shown_size,
    to_corners,
)
from darkroom.annotation.rounds import image_pool
from darkroom.annotation.rounds.accepted_source import as_shown, read_shown, to_sample
from darkroom.annotation.rounds.campaign import Campaign, ImageFolder, terms_of
from darkroom.annotation.rounds.image_pool import POOL, left_out, materialize_pool
from darkroom.annotation.rounds.next_tasks import record_task, results, to_percent
from darkroom.annotation.rounds.submissions import Record, RecordState, read_submission
from darkroom.annotation.rounds.tables import ACCEPTED, annotated
from darkroom.pipelines.records import Annotated, PoolImage
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.storage import media_validation
from darkroom.pipelines.storage.workspace import Workspace
from tests.annotation.desk import ANN, box, record
from tests.image_files import encoded

SIZE = (10_000, 6_400)
"""64 million pixels; a few kilobytes as a PNG of one colour."""
TARGET = Box(7_001, 3_003, 7_049, 3_038)
TERMS = terms_of(Campaign(), "annotate")
SIDES = st.tuples(st.integers(1, 60_000), st.integers(1, 60_000)).filter(
    lambda size: size[0] * size[1] <= media_validation.LARGEST_PIXELS
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the pool of one large image: a dark target on white."""
    home = tmp_path_factory.mktemp("large")
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        folder = workspace.annotation / "images"
        folder.mkdir(parents=True)
        image = Image.new("L", SIZE, 255)
        image.paste(0, TARGET)
        image.save(folder / "wide.png")
        assert (folder / "wide.png").stat().st_size < 200_000
        rules = Campaign(images=(ImageFolder(path="images", source="ours", license="CC0-1.0"),))
        materialize_pool(workspace, rules, workspace.annotation)
    return home


@pytest.fixture
def item(workspace: Workspace, home: Path) -> PoolImage:
    shutil.copytree(home, workspace.home)
    [found] = workspace.tables.read(POOL, PoolImage)
    return found


def test_a_view_is_stored_beside_the_original(workspace: Workspace, item: PoolImage) -> None:
    assert (item.image.width, item.image.height) == SIZE
    assert item.view is not None
    assert item.view.parent == item.image.sha256
    assert (item.view.width, item.view.height) == shown_size(*SIZE) == (8838, 5656)
    assert workspace.images.open(item.view).size == shown_size(*SIZE)
    task = record_task(item, RecordState(item.image.sha256), round="annotate", terms=TERMS)
    assert task["data"]["image"].endswith(item.view.sha256)
    assert (task["data"]["gate"]["width"], task["data"]["gate"]["height"]) == SIZE
    assert "10,000 × 6,400 pixels.** You see it reduced to 8,838 × 5,656." in task["data"]["rules"]
    assert "3,200,000 pixels" in task["data"]["rules"], "5 % of the original"


def test_a_box_that_was_drawn_on_the_view_is_the_target_in_the_original(workspace: Workspace, item: PoolImage) -> None:
    """From the view's pixels to the submission, the record, the sample and the crop, pixel by pixel."""
    assert item.view is not None
    dark = workspace.images.open(item.view).point(lambda value: 255 * (value < 200)).getbbox()
    assert dark is not None
    drawn = box(**share(dark, item.view.width, item.view.height), original_width=item.view.width)
    raw = {"id": 1, "completed_by": ANN, "result": [{**drawn, "original_height": item.view.height}, *record()[1:]]}
    gate = TERMS.gate("annotate", SIZE)
    assert find_errors(raw["result"], gate) == []
    submission = read_submission(raw, gate)
    (found,) = submission.fields.boxes
    assert max(abs(a - b) for a, b in zip(found, TARGET, strict=True)) <= 2, (found, TARGET)
    state = RecordState(item.image.sha256, fields=submission.fields)
    row = annotated(Record(item, [], state), pre_annotated=False)
    sample = to_sample(row, campaign="wide")
    assert sample.images == (item.image,)
    assert sample.truth.boxes[0].box == found
    crop = workspace.images.open(sample.images[0]).crop(found)
    assert crop.histogram()[0] >= 0.95 * TARGET.area
    checked = [entry for entry in results(submission.fields, item) if entry["from_name"] == "box"]
    assert (checked[0]["original_width"], checked[0]["original_height"]) == (item.view.width, item.view.height)
    assert to_corners(checked[0]["value"], *SIZE) == found, "what a checker sees and sends again is the same box"
    workspace.tables.write(ACCEPTED, Annotated, [row], [], inputs="", facts={})
    [trained] = read_shown(workspace, ACCEPTED)
    assert trained.image == item.view, "the sandbox opens it"
    [target] = trained.boxes
    assert max(abs(a - b) for a, b in zip(target.box, dark, strict=True)) <= 2, "the target in the view's pixels"
    assert as_shown(row, None) is row


def share(corners: tuple[int, int, int, int], width: int, height: int) -> dict[str, float]:
    value = to_percent(corners, width, height)
    return {name: value[name] for name in ("x", "y", "width", "height")}


def test_the_limit_of_a_box_is_a_share_of_the_original() -> None:
    gate = TERMS.gate("annotate", SIZE)
    width, height = shown_size(*SIZE)
    frame = {"original_width": width, "original_height": height}
    assert find_errors([box(width=25, height=20, **frame), *record()[1:]], gate) == []
    assert "6.00 % of the image" in find_errors([box(width=30, height=20, **frame), *record()[1:]], gate)[0]
    foreign = find_errors([box(original_width=width + 1, original_height=height), *record()[1:]], gate)
    assert foreign == [f"Box 1 was drawn on {width + 1}x{height} pixels; the image has {width}x{height}."]


@given(SIDES)
def test_a_view_fits_a_browser_and_has_the_originals_proportions(size: tuple[int, int]) -> None:
    shown = shown_size(*size)
    assert min(shown) >= 1
    assert shown[0] * shown[1] <= LARGEST_SHOWN
    if size[0] * size[1] <= LARGEST_SHOWN:
        assert shown == size
    else:
        assert max(shown) <= 32_767
        assert shown[0] <= size[0]
        assert shown[1] <= size[1]
        assert abs(shown[0] * size[1] - shown[1] * size[0]) <= max(size) * 2


@given(SIDES, st.data())
def test_a_box_of_the_original_goes_through_the_view_and_back(size: tuple[int, int], data: st.DataObject) -> None:
    x1, y1 = (data.draw(st.integers(0, side - 1)) for side in size)
    x2, y2 = data.draw(st.integers(x1 + 1, size[0])), data.draw(st.integers(y1 + 1, size[1]))
    assert to_corners(to_percent((x1, y1, x2, y2), *size), *size) == (x1, y1, x2, y2)


@given(SIDES.filter(lambda size: size[0] * size[1] > LARGEST_SHOWN), st.data())
def test_what_is_drawn_on_the_view_covers_the_same_pixels_of_the_original(
    size: tuple[int, int], data: st.DataObject
) -> None:
    shown = shown_size(*size)
    x1, y1 = (data.draw(st.integers(0, side - 1)) for side in shown)
    x2, y2 = data.draw(st.integers(x1 + 1, shown[0])), data.draw(st.integers(y1 + 1, shown[1]))
    value = to_percent((x1, y1, x2, y2), *shown)
    found = to_corners(value, *size)
    exact = (x1 * size[0] / shown[0], y1 * size[1] / shown[1], x2 * size[0] / shown[0], y2 * size[1] / shown[1])
    assert all(abs(a - b) < 1.1 for a, b in zip(found, exact, strict=True))
    assert share_of(value) == pytest.approx((x2 - x1) * (y2 - y1) / (shown[0] * shown[1]))


def test_what_people_see_of_an_ordinary_image_is_the_image() -> None:
    assert LARGEST_SHOWN == media_validation.MAX_PIXELS, "what is larger has a view"
    assert shown_size(8_000, 6_250) == (8_000, 6_250)
    assert shown_size(8_000, 6_251) != (8_000, 6_251)


def test_a_file_over_the_limit_is_not_even_read(
    workspace: Workspace, item: PoolImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_pool, "MAX_FILE_BYTES", 100)
    rules = Campaign(images=(ImageFolder(path="images", source="ours", license="CC0-1.0"),), seed=1)
    materialize_pool(workspace, rules, workspace.annotation)
    [rejected] = left_out(workspace)
    assert rejected.reason == "too_large_image"
    assert "bytes, the limit is 100; scale it down first" in rejected.evidence


def test_other_sources_keep_their_limit(workspace: Workspace) -> None:
    with pytest.raises(RowError, match="the limit is 50,000,000"):
        workspace.images.ingest(encoded(Image.new("1", SIZE)))


def test_pillow_opens_the_largest_image_and_keeps_its_own_limit_for_others() -> None:
    data = encoded(Image.new("1", (20_000, 10_000)))
    assert media_validation.decode(data).size == (20_000, 10_000)
    with pytest.raises(Image.DecompressionBombError):
        Image.open(io.BytesIO(data))
