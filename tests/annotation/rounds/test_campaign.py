from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from darkroom.annotation import AnnotationError
from darkroom.annotation.rounds.campaign import EXAMPLE, Campaign
from darkroom.annotation.rounds.image_pool import list_files
from darkroom.pipelines.storage.workspace import Workspace
from tests.command_lines import ANNOTATE as app


def test_without_a_file_the_papers_rules_hold(tmp_path: Path) -> None:
    campaign = Campaign.load(tmp_path)
    assert (campaign.min_side, campaign.max_share, campaign.max_rework) == (2048, 0.05, 2)


def test_the_example_is_a_campaign(tmp_path: Path) -> None:
    (tmp_path / "campaign.yaml").write_text(EXAMPLE.read_text())
    assert Campaign.load(tmp_path).images[0].path == "images"


def test_a_new_campaign_has_a_seed_of_its_own(tmp_path: Path) -> None:
    """Without one, whoever sees an image's digest could compute which checks have a planted error."""
    seeds = []
    for _ in range(3):
        Campaign.write(EXAMPLE, tmp_path / "campaign.yaml")
        seeds.append(Campaign.load(tmp_path).seed)
    assert len({0, *seeds}) == 4


@pytest.mark.e2e
def test_a_campaign_to_try_out_has_20_images_that_it_accepts(workspace: Workspace) -> None:
    said = CliRunner().invoke(app, ["init", "--example"])
    assert (said.exit_code, "and 20 images" in said.output) == (0, True), said.output
    campaign = Campaign.load(workspace.annotation)
    files = list(list_files(campaign, workspace.annotation))
    sizes = [Image.open(io.BytesIO(file.path.read_bytes())).size for file in files]
    assert len(sizes) == 20
    assert all(max(size) > campaign.min_side for size in sizes)
    again = CliRunner().invoke(app, ["init", "--example"])
    assert (again.exit_code, "exists already" in again.output) == (2, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max_share: 5", "max_share: Input should be less than or equal to 1"),
        ("max_shares: 0.05", "max_shares: Extra inputs are not permitted"),
        ("images: [{path: x}]", "images.0.source: Field required"),
        ("name: 'a/b'", "name: String should match pattern"),
        ("language: xx", "there is no guide in 'xx'; choose from en, de, es, zh"),
        ("name: [", "is not YAML"),
        ("- 1", "Input should be a valid dictionary"),
    ],
)
def test_what_is_wrong_is_named(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "campaign.yaml").write_text(text)
    with pytest.raises(AnnotationError) as caught:
        Campaign.load(tmp_path)
    assert said in str(caught.value)
    assert "campaign.yaml" in str(caught.value)
