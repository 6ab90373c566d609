"""Methods of the user's own, and the page that adds one (docs/methods.md)."""

import asyncio
import re
from pathlib import Path

import pytest
import yaml

from darkroom.pipelines.records.digest import digest_bytes
from darkroom.train.rl.methods import METHODS, Judges, method_errors, named_method, settings_of
from darkroom.train.rl.rollouts.scoring import scored
from darkroom.train.rl.settings import added_names
from darkroom.train.runs import JudgeDown, TrainError
from tests.train.outcomes import outcome
from tests.train.test_print_config import printed

PAGE = (Path(__file__).parents[4] / "docs" / "methods.md").read_text()
SHORT = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DARKROOM_METHODS", str(tmp_path))
    (tmp_path / "short.py").write_text(SHORT)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_the_method_of_the_page_pays_what_it_says():
    method = named_method("short", {"per_token": "0.002"})
    scores = asyncio.run(method.score([outcome("red"), outcome("blue")], Judges()))
    assert [score.reward for score in scores] == [pytest.approx(1 - 0.02), pytest.approx(-0.02)]


@pytest.mark.usefixtures("folder")
def test_it_is_listed_and_printed_like_any_other():
    assert "of your own short." in added_names()
    with pytest.raises(TrainError, match=r"known: thyme, .*figr_released, short$"):
        named_method("long")
    shown = yaml.safe_load(printed("--method", "short", "--set", "method.per_token=0.002").stdout)
    assert (shown["max_rounds"], shown["set"]) == (2, ["method.per_token=0.002"])


def test_its_file_is_part_of_the_checkpoints_inputs(folder):
    before = settings_of("short").record
    assert before["method_file"] == digest_bytes(SHORT.encode())
    (folder / "short.py").write_text(SHORT.replace("correct - cost", "correct - 2 * cost"))
    assert settings_of("short").record != before
    (score,) = asyncio.run(named_method("short").score([outcome("red")], Judges()))
    assert score.reward == pytest.approx(1 - 0.02)  # the edited file, not the one of before
    assert "method_file" not in settings_of("thyme").record


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("method = 3", r"broken\.py: expected a module-level `method = …`, a dataclass .* found 3"),
        ("", r"broken\.py: expected .* found None"),
        ("x = 1 / 0", r"broken\.py, line 1, cannot be imported: ZeroDivisionError: division by zero"),
        ("def (:", r"broken\.py cannot be imported: SyntaxError"),
        ("import nothing_of_this_name", r"broken\.py, line 1, cannot be imported: ModuleNotFoundError"),
        (SHORT.replace('"thyme"', '"rhyme"'), r"broken\.py: unknown protocol 'rhyme'; known: "),
        (SHORT.replace("    says:", "    said:"), r"broken\.py: ShortMethod lacks says"),
        (SHORT.replace("MethodDefaults(learning_rate=1e-6, generations=8, max_rounds=2)", "{}"), "terms are Method"),
        (SHORT.replace("score_one", "score_two"), r"broken\.py: ShortMethod has neither score_one nor score"),
        (
            SHORT.replace("learning_rate=1e-6", "learning_rat=1e-6"),
            r"broken\.py, line \d+, cannot be imported: ValidationError",
        ),
    ],
)
def test_a_file_that_defines_no_method_is_one_line(folder, text, message):
    (folder / "broken.py").write_text(text)
    with pytest.raises(TrainError, match=message) as raised:
        named_method("broken")
    assert "\n" not in str(raised.value)
    assert named_method("short").says  # the others go on to work


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("correct - cost", "correct / 0", r"short\.py, line \d+, ShortMethod failed: ZeroDivisionError: "),
        ("return RolloutScore(", "RolloutScore(", r"short\.py ShortMethod failed: TypeError: .* found None$"),
    ],
)
def test_a_method_that_fails_is_one_line_with_its_file(folder, old, new, message):
    assert old in SHORT
    (folder / "short.py").write_text(SHORT.replace(old, new))
    with pytest.raises(TrainError, match=message) as raised:
        asyncio.run(scored([outcome("red"), outcome("blue")], named_method("short"), Judges(), size=2))
    assert "\n" not in str(raised.value)


@pytest.mark.usefixtures("folder")
def test_errors_of_bundled_methods_and_of_judges_are_as_they_are():
    with pytest.raises(KeyError), method_errors(named_method("thyme")):
        raise KeyError
    with pytest.raises(JudgeDown), method_errors(named_method("short")):
        raise JudgeDown("judge", "gone")


@pytest.mark.parametrize(("name", "message"), [("figr", r"figr\.py: there is a method 'figr'"), ("Big", "lower case")])
def test_a_name_that_cannot_be_is_one_line(folder, name, message):
    (folder / f"{name}.py").write_text(SHORT)
    with pytest.raises(TrainError, match=message):
        named_method("thyme")


def test_a_name_in_two_folders_is_one_line(folder, tmp_path_factory, monkeypatch):
    second = tmp_path_factory.mktemp("second")
    (second / "short.py").write_text(SHORT)
    monkeypatch.setenv("DARKROOM_METHODS", f"{folder}:{second}")
    with pytest.raises(TrainError, match="there is a method 'short' already"):
        named_method("short")


def test_a_missing_folder_is_one_line(monkeypatch):
    monkeypatch.setenv("DARKROOM_METHODS", "/nonexistent")
    result = printed("--method", "thyme")
    assert result.exit_code == 1
    assert result.stderr == "error: DARKROOM_METHODS names /nonexistent, which is not a folder\n"


def test_a_field_of_a_type_that_cannot_be_read_is_one_line(folder):
    (folder / "odd.py").write_text(
        SHORT.replace("per_token: float = 0.001", "per_token: re.Match = 1").replace(
            "from dataclasses", "import re\nfrom dataclasses"
        )
    )
    with pytest.raises(TrainError, match="odd has a field of a type that --set cannot read"):
        named_method("odd", {"per_token": "1"})


def test_the_page_names_every_method():
    assert [name for name in METHODS if name not in PAGE and "_" in name and "_released" not in name] == []
