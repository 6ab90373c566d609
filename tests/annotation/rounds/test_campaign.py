from __future__ import annotations

from pathlib import Path

import pytest

from annotation import AnnotationError
from annotation.rounds.campaign import EXAMPLE, Campaign


def test_without_a_file_the_papers_rules_hold(tmp_path: Path) -> None:
    campaign = Campaign.load(tmp_path)
    assert (campaign.min_side, campaign.max_share, campaign.max_rework) == (2048, 0.05, 2)


def test_the_example_is_a_campaign(tmp_path: Path) -> None:
    (tmp_path / "campaign.yaml").write_text(EXAMPLE.read_text())
    assert Campaign.load(tmp_path).images[0].path == "images"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max_share: 5", "max_share: Input should be less than or equal to 1"),
        ("max_shares: 0.05", "max_shares: Extra inputs are not permitted"),
        ("images: [{path: x}]", "images.0.source: Field required"),
        ("name: 'a/b'", "name: String should match pattern"),
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
