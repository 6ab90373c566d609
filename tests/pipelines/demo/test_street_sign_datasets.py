"""What the demo's tiny model is trained on, and asked."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from darkroom.pipelines.demo import street_sign_datasets
from darkroom.pipelines.demo.street_sign_datasets import StreetSigns, named_region


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The datasets of one wall each."""
    folder = tmp_path_factory.mktemp("home")
    sources = {"train": StreetSigns(1, 1000, views=3), "held_out": StreetSigns(1, 6000)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DARKROOM_HOME", str(folder))
        patch.setattr(street_sign_datasets, "DATASETS", sources)
        street_sign_datasets.main()
    return folder


def rows(home: Path, name: str) -> list[dict]:
    (file,) = (home / "datasets" / "street_signs" / name).glob("*.parquet")
    return pq.read_table(file, columns=["source_row", "question", "answer", "rounds"]).to_pylist()


def test_every_sign_passes_the_checks_in_every_view(home: Path) -> None:
    assert len(rows(home, "train")) == sum(1 for _ in StreetSigns(1, 1000, views=3).rows(0)) >= 6


def test_the_code_crops_the_region_of_the_question(home: Path) -> None:
    for row in rows(home, "train"):
        (turn,) = row["rounds"]
        assert f"image.crop({tuple(named_region(row['question']))})" in turn["code"]
        assert turn["observation"]["images"]


def test_held_out_questions_are_about_other_walls(home: Path) -> None:
    walls = [{row["source_row"].rsplit("/", 2)[0] for row in rows(home, name)} for name in ("train", "held_out")]
    assert not walls[0] & walls[1]


def test_the_datasets_of_the_family_do_not_have_them(home: Path) -> None:
    assert not (home / "datasets" / "sft").exists()
