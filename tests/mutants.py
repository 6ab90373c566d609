"""Mutation testing: change one random place of the code, and see whether a test fails (``make mutants N=100 SEED=0``).

Cosmic Ray's operators change a copy of the checkout. A mutant meets the tests that execute its statement (all tests of
the module, where that runs at import), as coverage has noted them: those of the mirrored folder, then the others. If
none fails: the other tests of that folder, and of files that name the module (for what runs in other processes, or once
for many tests). A mutant that cannot be imported is drawn again; a test that fails on the unchanged code, too, kills
none. Read the survivors: some changes do nothing, and some only end-to-end tests notice, which are not run.
"""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from itertools import count, islice
from pathlib import Path
from shutil import copytree, ignore_patterns

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.number_replacer import NumberReplacer
from cosmic_ray.plugins import get_operator, operator_names

from tests.forked_tests import COLLECTION, UNIMPORTABLE
from tests.line_tests import ROOMS, LineTests

OPERATORS = [get_operator(name)() for name in operator_names() if not get_operator(name).arguments()]


@dataclass(frozen=True)
class Mutant:
    """A changed file of the checkout, and where it was changed: the line, and the function or class."""

    file: str
    line: int
    name: str
    code: str
    changed: str

    @property
    def module(self) -> str:
        return f"darkroom.{self.file.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"

    @property
    def difference(self) -> str:
        lines = self.code.splitlines(), self.changed.splitlines()
        return "\n".join(unified_diff(*lines, self.file, self.name, n=1, lineterm=""))


def mutants(rng: random.Random) -> Iterator[Mutant]:
    """Random places of the rooms, each changed by one of its operators."""
    places: dict[tuple, list] = {}
    for path in sorted(path for room in ROOMS for path in Path(room).rglob("*.py")):
        nodes = list(ast_nodes(get_ast(path.read_text())))
        for operator in OPERATORS:
            spans = (span for node in nodes for span in operator.mutation_positions(node))
            for occurrence, (start, end) in enumerate(spans):
                places.setdefault((path, start, end), []).append((operator, occurrence))
    for place in rng.sample(list(places), len(places)):
        path, (line, column), _ = place
        before = (code := path.read_text()).splitlines()[:line]
        operator, occurrence = rng.choice(places[place])
        is_size = isinstance(operator, NumberReplacer) and re.match(r"\d[\d_]+\b(?!\.)", before[-1][column:])
        if not is_size and not before[-1].startswith("@"):  # no 301 for 300, no dataclass that is not frozen
            names = re.findall(r"^(?:(?:async )?def |class )?(\w+)", "\n".join(before), re.MULTILINE)
            yield Mutant(str(path), line, names[-1], code, mutate_code(code, operator, occurrence))


class Forks:
    """Runs tests in forks of one process, on a copy of the checkout."""

    def __init__(self, python: str, folder: Path):
        ignored = ignore_patterns(".*", "data", "site")
        self.root = copytree(Path.cwd(), folder / "copy", symlinks=True, ignore=ignored)
        environment = {**os.environ, "PYTHONPATH": str(self.root), "DARKROOM_HOME": f"{folder}/home"}
        command, pipe = (python, "-m", "tests.forked_tests", folder), subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=self.root, env=environment, stdin=pipe, stdout=pipe, text=True)
        self.times, self.failing_unchanged = count(1), set()

    def first_failed(self, mutant: Mutant, tests: Iterable[str], *, is_changed: bool = True) -> str:
        """The first test that fails, "" if none does, or why none was run."""
        path = self.root / mutant.file
        path.write_text(mutant.changed if is_changed else mutant.code)
        os.utime(path, (n := next(self.times), n))  # a time of its own, or Python might take another text's bytecode
        tests = [test for test in tests if test not in self.failing_unchanged]
        print(json.dumps((mutant.module, tests)), file=self.process.stdin, flush=True)
        failed = json.loads(self.process.stdout.readline()) if tests else ""
        path.write_text(mutant.code)
        if failed == COLLECTION and (not is_changed or self.first_failed(mutant, tests[:1], is_changed=False)):
            raise RuntimeError("the tests of the unchanged code cannot be collected")
        return failed

    def judged(self, drawn: Iterable[Mutant], line_tests: LineTests) -> Iterator[tuple[Mutant, str]]:
        """The mutants that can be imported, each with the test that kills it, or ""."""
        for mutant in drawn:
            stages = line_tests.stages(mutant.file, mutant.line, mutant.code, mutant.module)
            failed = next(filter(None, (self.first_failed(mutant, tests) for tests in stages)), "")
            if failed != UNIMPORTABLE:
                fate = f"killed by {failed}" if failed else f"survived\n{mutant.difference}"
                print(f"{mutant.module}:{mutant.line} {mutant.name}: {fate}", flush=True)
                yield mutant, failed

    def killed_for_nothing(self, fates: dict[Mutant, str]) -> list[Mutant]:
        """Mutants whose tests fail on the unchanged code, too."""
        killers = {failed for failed in fates.values() if failed not in ("", COLLECTION)}
        while failed := self.first_failed(next(iter(fates)), killers, is_changed=False):
            self.failing_unchanged.add(failed)
        return [mutant for mutant, failed in fates.items() if failed in self.failing_unchanged]


def main(python: str, n_mutants: int, seed: int) -> None:
    """Prints each mutant's fate, and a survivor's difference."""
    line_tests = LineTests(python, Path("data/mutants").absolute())
    with tempfile.TemporaryDirectory() as folder:
        forks = Forks(python, Path(folder))
        fates = dict(islice(forks.judged(mutants(random.Random(seed)), line_tests), n_mutants))
        while again := forks.killed_for_nothing(fates):
            print(f"{len(again)} again: the tests that killed them fail on the unchanged code, too")
            fates |= forks.judged(again, line_tests)
        print(f"{[*fates.values()].count('')} of {len(fates)} mutants survived")
        forks.process.communicate()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
