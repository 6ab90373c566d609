"""Every `dg launch` of the docs names a job or assets of the graph, their partitions, and settings that they take."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import dagster as dg
import pytest
import yaml

from darkroom.assets.definitions import definitions

PAGES = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))


def lines() -> list[tuple[str, str]]:
    """Page and arguments of each line."""
    calls = [(page, re.findall(r"^\.venv/bin/dg launch (.+?)(?: +#.*)?$", page.read_text(), re.M)) for page in PAGES]
    return [(page.name, line) for page, found in calls for line in found]


def settings(page: str, name: str) -> dict[str, object]:
    """The file of this name on a page: a block whose first line is its name."""
    block = re.search(rf"^```yaml\n# {re.escape(name)}\n(.+?)^```", (PAGES[0].parent / page).read_text(), re.M | re.S)
    assert block is not None, f"{page} shows no {name}"
    return dict(yaml.safe_load(block[1]))


@pytest.fixture(scope="module")
def repository() -> dg.RepositoryDefinition:
    return definitions().get_repository_def()


def test_the_docs_launch_jobs_and_assets() -> None:
    assert {shlex.split(line)[0] for _, line in lines()} == {"--job", "--assets"}


@pytest.mark.parametrize(("page", "line"), lines())
def test_a_line_fits_the_graph(repository: dg.RepositoryDefinition, page: str, line: str) -> None:
    words = shlex.split(line)
    options = dict(zip(words[::2], words[1::2], strict=True))
    assert set(options) <= {"--job", "--assets", "--partition", "-c"}
    if "--job" in options:
        job = repository.get_job(options["--job"])
    else:
        chosen = dg.AssetSelection.from_string(options["--assets"]).resolve(repository.asset_graph)
        assert chosen, options["--assets"]
        job = repository.get_implicit_global_asset_job_def().get_subset(asset_selection=chosen)
    assert (job.partitions_def is not None) == ("--partition" in options)
    if "-c" in options:
        assert dg.validate_run_config(job, settings(page, options["-c"]))
