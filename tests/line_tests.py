"""The quick tests by the lines that they execute, measured once (for tests/mutants.py)."""

import ast
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Container
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from coverage import CoverageData

from tests.forked_tests import OPTIONS

PIPELINES = ("records", "verification", "selection", "rl")
ROOMS = (*(f"pipelines/{room}" for room in PIPELINES), "annotation/rounds", "train/rl")
UNREACHED = {"adapters", "e2e", "soak", "sandbox"}
"""Folders of tests: not run by ``make test``, or of a package that the rooms are above."""
SETTINGS = "[run]\nrelative_files = true\ninclude ="
SECONDS = 120


def lines(node: ast.AST) -> set[int]:
    return {*range(node.lineno, node.end_lineno + 1)}


def statement(code: str, line: int) -> set[int]:
    """Lines of the statement around a line, without those inside it; none for what runs when the module is imported."""
    functions = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    bodies = (part for function in functions for part in function.body)
    parts = [node for body in bodies for node in ast.walk(body) if isinstance(node, ast.stmt) and line in lines(node)]
    if not parts:
        return set()
    around = max(parts, key=lambda node: node.lineno)
    inner = [lines(node) for node in ast.walk(around) if isinstance(node, ast.stmt) and node is not around]
    return {line} | lines(around).difference(*inner)


class LineTests:
    """Tests by the lines they execute, and their seconds, kept from one measurement to the next."""

    def __init__(self, python: str, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        known = json.loads(file.read_text()) if (file := folder / "digests.json").exists() else {}
        paths = [path for top in (*ROOMS, "tests") for path in Path(top).rglob("*.py") if not UNREACHED & {*path.parts}]
        now = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
        new = {path for path, digest in now.items() if known.get(path) != digest}
        files = {path for path in new if path.rpartition("/")[2].startswith("test_")}
        if known and (rooms := [path for path in new if not path.startswith("tests/")]):
            files |= {test.partition("::")[0] for path in rooms for test in self.of(path)} & {*now}
            self._data().purge_files(rooms)
        if files:
            self._measure(python, sorted(files))
            (folder / "digests.json").write_text(json.dumps(now))

    def _measure(self, python: str, files: list[str]) -> None:
        (settings := self.folder / "settings").write_text("\n".join((SETTINGS, *(f"    {room}/*" for room in ROOMS))))
        coverage = ("--cov", "--cov-append", "--cov-context=test", "--cov-report=", f"--cov-config={settings}")
        command = (python, "-m", "pytest", *OPTIONS, "-n", "2", "-vv", "--durations=0", *coverage, *files)
        environment = {**os.environ, "COVERAGE_FILE": str(self.folder / "coverage")}
        with (self.folder / "output").open("a") as output:
            subprocess.run(command, env=environment, stdout=output)

    def _data(self) -> CoverageData:
        data = CoverageData(str(self.folder / "coverage"))
        data.read()
        return data

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Seconds of each test that passed when it was measured last."""
        output = (self.folder / "output").read_text()
        phases = re.findall(r"^([\d.]+)s (call|setup) +(.*?) *$", output, re.MULTILINE)
        times = {(test, phase): float(seconds) for seconds, phase, test in phases}
        passed = {*re.findall(r"^\[gw\d+\] \[ *\d+%\] PASSED (.*?) *$", output, re.MULTILINE)}
        files = {file for file in {test.partition("::")[0] for test in passed} if Path(file).exists()}
        tests = (test for test in passed if test.partition("::")[0] in files)
        return {test: times.get((test, "call"), 0) + times.get((test, "setup"), 0) for test in tests}

    def of(self, file: str, lines: Container[int] | None = None) -> set[str]:
        """Tests that execute one of the lines, or any line of the file."""
        executed = self._data().contexts_by_lineno(file)
        contexts = {test for line in executed if lines is None or line in lines for test in executed[line]}
        return {context.rpartition("|")[0] for context in contexts} & {*self.seconds}

    def stages(self, file: str, line: int, code: str, module: str) -> list[list[str]]:
        """Tests that a change of the line concerns, those that tell soonest first, at most ``SECONDS`` in each part."""
        mirror, tests = f"tests/{file.rpartition('/')[0]}", self.of(file, statement(code, line) or None)
        files = {test.partition("::")[0] for test in self.seconds}
        naming = {path for path in files if re.search(rf"{module}\b", Path(path).read_text())}
        mirrored = {path for path in files if path.rpartition("/")[0] == mirror}
        in_mirror = {test for test in self.seconds if test.partition("::")[0] in mirrored}
        near = {test for test in self.seconds if test.partition("::")[0] in mirrored | naming}
        stages = (self._in_time(part) for part in (tests & in_mirror, tests - in_mirror, near - tests))
        return [part for part in stages if part]

    def _in_time(self, tests: set[str]) -> list[str]:
        ordered = sorted(tests, key=lambda test: (self.seconds[test], test))
        total = accumulate(self.seconds[test] for test in ordered)
        return [test for test, seconds in zip(ordered, total, strict=True) if seconds <= SECONDS]
