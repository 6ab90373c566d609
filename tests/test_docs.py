"""The documentation is checked against the code: commands, modules, settings, length, and what runs before a commit."""

from __future__ import annotations

import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from darkroom.assets.cli import app
from darkroom.pipelines.inspection.explain import meanings
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.verification.checks.check import Flaw
from scripts import benchmarks_page, llms_page, method_terms, reference_pages, settings_page

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
LONG = {"README.md": 900}
MAX_WORDS = 1500
GENERATED = {"settings.md"}


def identifier(page: Path) -> str:
    return page.name


@pytest.mark.parametrize("page", PAGES, ids=identifier)
def test_a_page_is_short_enough_to_be_read(page: Path) -> None:
    if page.name not in GENERATED:
        assert len(page.read_text().split()) <= LONG.get(page.name, MAX_WORDS)


@cache
def _commands() -> dict[str, Any]:
    return typer.main.get_command(app).commands  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("page", PAGES, ids=identifier)
def test_every_command_of_a_page_exists(page: Path) -> None:
    commands = _commands()
    lines = [line.strip() for line in page.read_text().splitlines()]
    calls = [re.match(r"(?:\$ )?(?:\.venv/bin/)?darkroom ([a-z-]+) ?([a-z-]*)", line) for line in lines]
    for name, rest in [call.groups() for call in calls if call]:
        assert name in commands, name
        inner = getattr(commands[name], "commands", {})
        assert not inner or not rest or rest in inner, f"{name} {rest}"


@pytest.mark.parametrize("page", PAGES, ids=identifier)
def test_every_module_that_a_page_runs_exists(page: Path) -> None:
    for module in re.findall(r"-m ((?:darkroom|measurements|scripts|tests)\.[a-z_.]+[a-z_])", page.read_text()):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module


@pytest.mark.parametrize("page", PAGES, ids=identifier)
def test_every_source_file_that_a_page_names_exists(page: Path) -> None:
    packages = "sandbox|pipelines|annotation|train|assets|tests|scripts|measurements|examples|docs"
    pattern = rf"`((?:{packages})/[\w./]*(?:/|\.[a-z]+))`"
    missing = [path for path in re.findall(pattern, page.read_text()) if not (ROOT / path.rstrip("/")).exists()]
    assert missing == []


def test_the_settings_page_is_what_the_models_say() -> None:
    assert settings_page.PAGE.read_text() == settings_page.page(), "run: python -m scripts.settings_page"


@pytest.mark.parametrize("name", reference_pages.PAGES)
def test_a_reference_page_is_what_the_code_says(name: str) -> None:
    written = (reference_pages.DOCS / name).read_text(encoding="utf-8")
    assert written == reference_pages.PAGES[name](), "run: python -m scripts.reference_pages"


def test_every_reason_and_flaw_has_its_meaning() -> None:
    assert {name for group in meanings("reject_reasons").values() for name in group} == set(map(str, Reason))
    assert {name for group in meanings("flaws").values() for name in group} == set(map(str, Flaw))


def test_the_page_of_terms_is_what_the_methods_say() -> None:
    assert method_terms.PAGE.read_text() == method_terms.page(), "run: python -m scripts.method_terms"


def test_the_page_of_benchmarks_is_what_their_files_say() -> None:
    assert benchmarks_page.PAGE.read_text() == benchmarks_page.page(), "run: python -m scripts.benchmarks_page"


def test_llms_txt_is_what_navigation_and_pages_say() -> None:
    assert llms_page.PAGE.read_text() == llms_page.page(), "run: python -m scripts.llms_page"


def test_llms_txt_links_to_every_page_of_the_site() -> None:
    links = re.findall(r"^- \[[^\]]+\]\(([a-z0-9_]+)\.html\)", llms_page.PAGE.read_text(), re.MULTILINE)
    assert sorted(links) == sorted(page.stem for page in PAGES if page.name != "README.md")


def test_every_page_is_in_the_sites_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    assert {page.name for page in PAGES} - {"README.md"} == set(re.findall(r": ([a-z0-9_]+\.md)", navigation))


def test_every_page_that_a_file_names_is_there() -> None:
    """Messages, comments and scripts name pages; CHANGELOG.md may name pages of earlier versions."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    named: dict[str, str] = {}
    for name in listed.split("\0"):
        path = ROOT / name
        if name != "CHANGELOG.md" and path.is_file() and path.suffix not in {".png", ".jpg", ".xz", ".parquet"}:
            text = path.read_text(encoding="utf-8", errors="replace")
            named |= dict.fromkeys(re.findall(r"\bdocs/([a-z_]+\.md)\b", text), name)
    assert {page: name for page, name in named.items() if not (ROOT / "docs" / page).exists()} == {}


def test_before_a_commit_runs_what_lint_runs() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^lint: checks types ##", makefile, re.MULTILINE)
    rules = re.findall(r"^(?:checks|types):.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    lint = [line.strip().replace("$(BIN)", ".venv/bin") for rule in rules for line in rule.splitlines()]
    lint = [line.replace("VIRTUAL_ENV=$(CURDIR)/$(VENV)", "env VIRTUAL_ENV=.venv") for line in lint]
    assert sorted(hook["entry"] for hook in hooks) == sorted(lint)


def test_every_package_ships_its_types() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert packages["packages"] == ["darkroom"]
    assert all((package / "py.typed").exists() for package in (ROOT / "darkroom").iterdir())
