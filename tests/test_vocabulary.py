"""The vocabulary check sees prose and lets data be; limits hold for the whole, not for a file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts.vocabulary import RULES, check

CLEAN = '"""A module."""\n'


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "pipelines").mkdir()
    return tmp_path


def findings(repository: Path, **files: str) -> list[str]:
    for name, text in files.items():
        (repository / name.replace("__", "/").replace("_py", ".py").replace("_md", ".md")).write_text(text)
    subprocess.run(["git", "add", "-A"], cwd=repository, check=True)
    return [str(finding) for finding in check(repository, ["."])]


@pytest.mark.parametrize(
    "text",
    [
        '"""Reads a picture."""\n',
        f"{CLEAN}# the picture is kept\nX = 1\n",
        f'{CLEAN}\n\ndef read() -> None:\n    """Reads a picture."""\n',
        f'{CLEAN}\n\ndef read() -> None:\n    raise ValueError(f"{{1}}: the picture is damaged")\n',
        f'{CLEAN}OPTION = dict(help="how large a picture may be")\n',
    ],
)
def test_prose_of_a_module_is_read(repository: Path, text: str) -> None:
    (finding,) = findings(repository, pipelines__a_py=text)
    assert finding.startswith("pipelines/a.py:")
    assert finding.endswith("'picture': image")


@pytest.mark.parametrize(
    "text", [f'{CLEAN}SENTENCE = "I see the picture."\n', '"""The slot ``picture`` of a prompt: `picture`."""\n']
)
def test_data_and_code_are_not(repository: Path, text: str) -> None:
    assert findings(repository, pipelines__a_py=text.replace("``", "`")) == []


def test_a_page_is_read_outside_of_its_code_blocks(repository: Path) -> None:
    page = "A page.\n\n```\nthe picture\n```\n\nThe fault is `picture`.\n"
    assert findings(repository, page_md=page) == ["page.md:7: 'fault': error; a defect of code is a bug"]


def test_a_module_with_a_name_of_ours_is_found(repository: Path) -> None:
    (finding,) = findings(repository, pipelines__fading_py=CLEAN)
    assert finding == "pipelines/fading.py:1: a module named 'fading': name it by the field's term"


def test_vague_local_names_are_found_where_they_are_too_many(repository: Path) -> None:
    clear = "\n\ndef size(image: int) -> int:\n    return image\n"
    vague = "\n\ndef read(given: int) -> int:\n    found = given\n    return found\n"
    n_allowed = RULES["locals"]["per_100_functions"]
    assert findings(repository, pipelines__a_py=CLEAN + clear * 100 + vague * (n_allowed // 2)) == []
    names = findings(repository, pipelines__a_py=CLEAN + clear * 2 + vague)
    assert [name.rsplit(": ", 1)[1] for name in names] == ["local name 'found'", "local name 'given'"]


def test_classes_defined_twice_are_found_where_they_are_too_many(repository: Path) -> None:
    n_allowed = RULES["classes"]["defined_twice"]
    text = CLEAN + "".join(f'\n\nclass Report{n}:\n    """A class."""\n' for n in range(n_allowed + 1))
    assert findings(repository, pipelines__a_py=text) == []
    assert len(findings(repository, pipelines__b_py=text)) == 2 * (n_allowed + 1)
    fewer = text.replace(f"Report{n_allowed}", "Summary")
    assert findings(repository, pipelines__b_py=fewer) == []


def test_docstrings_that_begin_with_a_relative_are_found_where_they_are_too_many(repository: Path) -> None:
    plain = '\n\ndef size() -> None:\n    """Measure an image."""\n'
    relative = '\n\ndef size() -> None:\n    """What an image measures."""\n'
    n_allowed = RULES["docstrings"]["percent"]
    assert findings(repository, pipelines__a_py=CLEAN + plain * 100 + relative * n_allowed) == []
    (finding,) = findings(repository, pipelines__a_py=CLEAN + plain + relative)
    assert finding.endswith("a docstring begins with 'What': a verb or a noun")


def test_a_word_with_several_meanings_is_found_where_it_stands_too_often(repository: Path) -> None:
    n_allowed = RULES["uses"]["place"]
    assert findings(repository, pipelines__a_py=CLEAN + "# a place\n" * n_allowed) == []
    assert len(findings(repository, pipelines__a_py=CLEAN + "# places\n" * (n_allowed + 1))) == n_allowed + 1
