"""Mutation testing: change one random place of the code, and see whether a test fails (``make mutants N=100 SEED=0``).

Cosmic Ray's operators change a copy of the checkout. Once, all quick tests run with coverage, which tells the tests of
each line (``data/mutants``; later only those run that a change concerns). A mutant meets the tests that execute its
statement (all of its module's, where that runs at import), those of the mirrored folder and the shortest first, for at
most ``SECONDS``. If none fails, or none executes it in pytest's own process: the tests in the mirrored folder and those
that name the module. A mutant that cannot be imported is drawn again; a test that fails on the unchanged code, too,
kills none. Read the survivors: some changes do nothing, and some only end-to-end tests notice, which are not run.
"""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
from difflib import unified_diff
from itertools import count
from pathlib import Path
from shutil import copytree, ignore_patterns

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.number_replacer import NumberReplacer
from cosmic_ray.plugins import get_operator, operator_names

from tests.forked_tests import COLLECTION, UNIMPORTABLE
from tests.line_tests import ROOMS, UNREACHED, LineTests, statement

OPERATORS = [get_operator(name)() for name in operator_names() if not get_operator(name).arguments()]


def drawn(root: Path, rng: random.Random):
    """Random places, each changed by one of its operators: the file, its line, its new text, the function or class."""
    places: dict[tuple, list] = {}
    for path in sorted(path for room in ROOMS for path in (root / room).rglob("*.py")):
        nodes = list(ast_nodes(get_ast(path.read_text())))
        for operator in OPERATORS:
            spans = (span for node in nodes for span in operator.mutation_positions(node))
            for occurrence, (start, end) in enumerate(spans):
                places.setdefault((path, start, end), []).append((operator, occurrence))
    for place in rng.sample(list(places), len(places)):
        path, (line, column), _ = place
        before = path.read_text().splitlines()[:line]
        operator, occurrence = rng.choice(places[place])
        is_size = isinstance(operator, NumberReplacer) and re.match(r"\d[\d_]+\b(?!\.)", before[-1][column:])
        if not is_size and not before[-1].startswith("@"):  # no 301 for 300, no dataclass that is not frozen
            names = re.findall(r"^(?:(?:async )?def |class )?(\w+)", "\n".join(before), re.MULTILINE)
            yield path, line, mutate_code(path.read_text(), operator, occurrence), names[-1]


def near(root: Path, path: str, module: str) -> list[str]:
    """Test files in the mirrored folder, and those that name the module."""
    files = [file for file in (root / "tests").rglob("test_*.py") if not UNREACHED & {*file.parts}]
    mirror = root / "tests" / Path(path).parent
    return [
        str(file.relative_to(root))
        for file in files
        if file.parent == mirror or re.search(rf"{module}\b", file.read_text())
    ]


class Forks:
    """Runs tests in forks of one process, on a copy of the checkout."""

    def __init__(self, python: str, root: Path, folder: str):
        environment = {**os.environ, "PYTHONPATH": str(root), "DARKROOM_HOME": f"{folder}/home"}
        command = (python, "-m", "tests.forked_tests", folder)
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=root, env=environment, stdin=pipe, stdout=pipe, text=True)
        self.times, self.sound, self.unsound = count(1), set(), []

    def first_failed(self, path: Path, text: str, module: str, tests: list[str]) -> str | None:
        """The first test that fails where the file has this text."""
        path.write_text(text)
        os.utime(path, (n := next(self.times), n))  # a time of its own, or Python might take another text's bytecode
        print(json.dumps((module, tests, self.unsound)), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def fate(self, path: Path, mutant: str, module: str, tests: list[str]) -> str:
        code = path.read_text()
        while failed := self.first_failed(path, mutant, module, tests):
            if failed == UNIMPORTABLE or failed in self.sound:
                break
            unchanged = self.first_failed(path, code, module, tests[:1] if failed == COLLECTION else [failed])
            if unchanged != failed:
                self.sound.add(failed)
                break
            assert failed != COLLECTION, "the unchanged code's tests cannot be collected"
            self.unsound.append(failed)
        path.write_text(code)
        return "survived" if not failed else failed if failed == UNIMPORTABLE else f"killed by {failed}"


def main(python: str, wanted: int, seed: int) -> None:
    """Prints each mutant's fate, and a survivor's difference."""
    line_tests, n_survived, n_killed = LineTests(python, Path("data/mutants").absolute()), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        root = copytree(Path.cwd(), Path(folder) / "copy", symlinks=True, ignore=ignore_patterns(".*", "data", "site"))
        forks = Forks(python, root, folder)
        for path, line, mutant, name in drawn(root, random.Random(seed)):
            code, relative = path.read_text(), path.relative_to(root)
            module = ".".join(("darkroom", *relative.with_suffix("").parts)).removesuffix(".__init__")
            of_line = line_tests.of(str(relative), statement(code, line))
            fate = forks.fate(path, mutant, module, of_line) if of_line else "survived"
            if fate == "survived":
                fate = forks.fate(path, mutant, module, near(root, str(relative), module))
            difference = unified_diff(code.splitlines(), mutant.splitlines(), module, name, n=1, lineterm="")
            print(f"{fate}: {module}:{line} {name}", *(difference if fate == "survived" else ()), sep="\n", flush=True)
            n_survived, n_killed = n_survived + (fate == "survived"), n_killed + fate.startswith("killed")
            if n_survived + n_killed == wanted:
                print(f"{n_survived} of {wanted} mutants survived")
                break
        forks.process.stdin.close()
        forks.process.wait()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
