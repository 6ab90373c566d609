"""Which commit of a hub model is served, as the hub's cache tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.serving.models import hub_revision

COMMIT, OTHER = "a1" * 20, "b2" * 20


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    refs = tmp_path / "models--Qwen--Qwen3-VL" / "refs"
    (refs / "refs" / "pr").mkdir(parents=True)
    (refs / "main").write_text(COMMIT)
    (refs / "v1").write_text(f"{OTHER}\n")
    (refs / "refs" / "pr" / "1").write_text(OTHER)


@pytest.mark.parametrize(
    ("options", "revision"),
    [
        ((), COMMIT),
        (("--max-model-len", "auto"), COMMIT),
        (("--revision", "v1"), OTHER),
        (("--revision=v1",), OTHER),
        (("--revision", "refs/pr/1"), OTHER),
        (("--revision", "v9"), ""),
        (("--revision", "c3" * 20), "c3" * 20),
    ],
)
def test_the_revision_is_the_commit_that_was_asked_for(options: tuple[str, ...], revision: str) -> None:
    assert hub_revision("Qwen/Qwen3-VL", options) == revision


def test_a_model_that_is_not_in_the_cache_has_none() -> None:
    assert hub_revision("someone/else", ()) == ""
