"""Packages of extras: what needs one that is not installed says so; everything else does without."""

from __future__ import annotations

from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import pytest

from darkroom.pipelines.sources.catalog import EMBEDDED, EMBEDDED_RL, Catalog
from darkroom.pipelines.storage.media_validation import probe_video
from darkroom.sandbox.errors import ExtraMissing


@pytest.fixture
def without_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str) -> ModuleSpec | None:
        return None if name in ("av", "skimage", "sklearn", "reasoning_gym") else find_spec(name)

    monkeypatch.setattr("darkroom.sandbox.errors.find_spec", found)


@pytest.mark.usefixtures("without_extras")
@pytest.mark.parametrize("name", [EMBEDDED, EMBEDDED_RL])
def test_an_embedded_source_names_the_extra_that_it_is_made_of(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        ExtraMissing, match=r"^the embedded source needs an extra: pip install .darkroom-toolkit\[demo\]"
    ):
        Catalog(tmp_path).open(name)


@pytest.mark.usefixtures("without_extras")
def test_a_catalog_is_read_without_the_embedded_sources(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    sources = {source for source, _ in catalog.partitions().values()} | {*catalog.uses()}
    assert {EMBEDDED, EMBEDDED_RL}.isdisjoint(sources)


@pytest.mark.usefixtures("without_extras")
def test_a_video_names_the_extra_that_reads_it() -> None:
    with pytest.raises(ExtraMissing, match=r"^reading videos needs an extra: pip install .darkroom-toolkit\[video\]"):
        probe_video(b"\x00" * 100)


def test_the_embedded_sources_are_there_with_their_extra(tmp_path: Path) -> None:
    assert {EMBEDDED, EMBEDDED_RL} <= {source for source, _ in Catalog(tmp_path).partitions().values()}
