import pyarrow.parquet as pq
import pytest

from darkroom.pipelines.publishing.dataset_reader import DatasetError
from darkroom.pipelines.publishing.features import check_columns
from darkroom.pipelines.publishing.parquet_shards import prompt_row
from darkroom.pipelines.records import Grader, ImageRef, RLRow, Sample, Truth, TruthBox
from darkroom.pipelines.rl.candidates import asks_visual_search
from darkroom.pipelines.sources.catalog import Catalog, public_sources
from darkroom.pipelines.sources.source_config import SourceConfig
from darkroom.pipelines.storage.workspace import Workspace
from tests.pipelines.publishing.shipping import write_prompts

IMAGE = ImageRef("i", 1000, 1000, "RGB", "PNG")


def sample(*boxes: TruthBox, images: tuple[ImageRef, ...] = (IMAGE,)) -> Sample:
    return Sample("s", "somewhere", "0", "", images, "What is it?", (), "a", Truth(boxes=boxes), "")


SMALL, LARGE = TruthBox("sign", 0, 0, 100, 100), TruthBox("wall", 0, 0, 900, 900)


@pytest.mark.parametrize(
    ("asked", "stated", "expected"),
    [
        (sample(SMALL), None, True),
        (sample(SMALL), False, True),  # what is known of the row goes before what is said of its source
        (sample(LARGE), True, False),
        (sample(LARGE, SMALL), None, True),
        (sample(), True, True),
        (sample(), False, False),
        (sample(), None, None),
        (sample(images=()), True, False),
    ],
)
def test_a_question_is_visual_search_by_its_boxes_else_as_its_source_states(
    asked: Sample, stated: bool | None, expected: bool | None
) -> None:
    assert asks_visual_search(asked, stated) is expected


def test_a_source_states_it_and_rows_have_it(workspace: Workspace) -> None:
    catalog = Catalog(workspace.sources)
    catalog.add("signs", SourceConfig(kind="jsonl", path="/a", visual_search=True))
    catalog.add("walls", SourceConfig(kind="jsonl", path="/a"))
    stated = catalog.visual_search()
    assert stated == {"signs": True}
    assert public_sources()["visual_probe"].visual_search is True
    row = RLRow(sample(images=()), Grader("text"), "public", "unknown", None, None, None)
    assert prompt_row(row, workspace.images, stated)["visual_search"] is False


def test_a_dataset_from_before_the_column_is_still_one(workspace: Workspace) -> None:
    folder = workspace.home / "rl"
    write_prompts(folder, [], store=workspace.images, split="train")
    (file,) = folder.glob("*.parquet")
    table = pq.read_table(file)
    assert "visual_search" in table.column_names
    pq.write_table(table.drop_columns(["visual_search"]), file)
    check_columns(file, "prompts")
    pq.write_table(table.drop_columns(["visual_search", "grader"]), file)
    with pytest.raises(DatasetError, match=r"missing \['grader'\]"):
        check_columns(file, "prompts")
