"""The static scan refuses what the papers refuse, and takes nothing else for danger."""

import ast

import pytest

from darkroom.sandbox._guest.scan import Blocked, refuse_dangerous_calls
from tests.sandbox.attacks import ATTACKS

HARMLESS = [
    "import re\nre.compile('os.remove(')",
    "# os.remove('x'); shutil.rmtree('/')",
    "print('subprocess.run is not called')",
    "values = [1]\nvalues.remove(1)\nname = 'a'.replace('a', 'b')",
    "import sys\nsys.stdout.write('x')",
    "eval('1 + 1')\nexec('x = 1')",
    "from pathlib import Path\nPath('a.png').stem.replace('a', 'b')",
    "import os\nos.makedirs('x', exist_ok=True)\nos.path.exists('x')",
    "class Box:\n    def move(self): pass\nBox().move()",
]


@pytest.mark.parametrize("code", HARMLESS)
def test_harmless_code_passes(code: str) -> None:
    refuse_dangerous_calls([*ast.walk(ast.parse(code))], "strict")


@pytest.mark.parametrize(
    "case", [case for case in ATTACKS if case["expected"] == "blocked"], ids=lambda case: case["name"]
)
def test_a_plain_attack_is_refused_and_named(case: dict) -> None:
    with pytest.raises(Blocked, match="is not allowed"):
        refuse_dangerous_calls([*ast.walk(ast.parse(case["code"]))], "strict")


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import os as o\no.unlink('x')", "os.unlink"),
        ("from shutil import rmtree as clean\nclean('x')", "shutil.rmtree"),
        ("import pathlib\npathlib.Path('x').unlink()", "pathlib.Path.unlink"),
        ("from pathlib import Path as P\nP('x').rename('y')", "pathlib.Path.rename"),
        ("import subprocess\nsubprocess.run(['ls'])", "subprocess.run"),
        ("import os\nos.system('ls')", "os.system"),
    ],
)
def test_a_dangerous_call_is_found_behind_its_alias(code: str, name: str) -> None:
    with pytest.raises(Blocked, match=rf"^{name} is not allowed.*\(line \d\)$"):
        refuse_dangerous_calls([*ast.walk(ast.parse(code))], "strict")


def test_own_files_allows_files_and_still_refuses_programs() -> None:
    refuse_dangerous_calls([*ast.walk(ast.parse("import os\nos.remove('x')"))], "own_files")
    with pytest.raises(Blocked):
        refuse_dangerous_calls([*ast.walk(ast.parse("import os\nos.system('x')"))], "own_files")
    refuse_dangerous_calls([*ast.walk(ast.parse("import os\nos.system('x')"))], "off")
