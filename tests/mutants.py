"""Mutation testing: change one random place of the code, and see whether a test fails (``make mutants N=100 SEED=0``).

Cosmic Ray's operators change a copy of the checkout. Tests: those in the module's mirrored folder and those that name
the module; then, of those that name what was changed, the 20 smallest files. A mutant that cannot be imported is drawn
again; a test that fails on the unchanged code, too, kills none. Read the survivors: some changes do nothing, and some
are noticed by end-to-end tests alone, which are not run.
"""

import os
import random
import re
import subprocess
import sys
import tempfile
from difflib import unified_diff
from pathlib import Path
from shutil import copytree, ignore_patterns

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.number_replacer import NumberReplacer
from cosmic_ray.plugins import get_operator, operator_names

PIPELINES = ("records", "verification", "selection", "rl")
ROOMS = (*(f"pipelines/{room}" for room in PIPELINES), "annotation/rounds", "train/rl")
OPERATORS = [get_operator(name)() for name in operator_names() if not get_operator(name).arguments()]
PYTEST = ("-m", "pytest", "-x", "-q", "-m", "not e2e and not soak", "--timeout", "300")


def drawn(root: Path, rng: random.Random):
    """Random places, each changed by one of its operators: the file, its new text, and the function or class."""
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
            yield path, mutate_code(path.read_text(), operator, occurrence), names[-1]


def tests_of(root: Path, path: Path, module: str, name: str) -> list[list[str]]:
    """Test files to run first, and those to run if none of the first fails."""
    files = [file for file in (root / "tests").rglob("test_*.py") if not {"adapters", "e2e", "soak"} & {*file.parts}]
    mirror = root / "tests" / path.parent.relative_to(root)
    near = [file for file in files if file.parent == mirror or re.search(rf"{module}\b", file.read_text())]
    naming = [file for file in files if file not in near and re.search(rf"\b{name}\b", file.read_text())]
    return [[*map(str, part)] for part in (near, sorted(naming, key=lambda file: file.stat().st_size)[:20]) if part]


def main(python: str, count: int, seed: int) -> None:
    """Prints each mutant's fate, and a survivor's difference."""
    fates: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        root = copytree(Path.cwd(), Path(folder) / "copy", symlinks=True, ignore=ignore_patterns(".*", "data", "site"))
        environment = {**os.environ, "PYTHONPATH": str(root), "DARKROOM_HOME": f"{folder}/home"}

        def run(*arguments: str) -> subprocess.CompletedProcess:
            return subprocess.run((python, *arguments), cwd=root, env=environment, capture_output=True, text=True)

        for path, mutant, name in drawn(root, random.Random(seed)):
            code, module = path.read_text(), ".".join(("darkroom", *path.relative_to(root).with_suffix("").parts))
            module, fate = module.removesuffix(".__init__"), "survived"
            path.write_text(mutant)
            if run("-c", f"import {module}").returncode:
                fate = "cannot be imported"
            for tests in tests_of(root, path, module, name) if fate == "survived" else ():
                if run(*PYTEST, "--cache-clear", *tests).returncode:
                    path.write_text(code)
                    fate = "fails unchanged" if run(*PYTEST, "--last-failed", *tests).returncode else "killed"
                    break
            path.write_text(code)
            difference = unified_diff(code.splitlines(), mutant.splitlines(), module, name, n=1, lineterm="")
            print(f"{fate}: {module} {name}", *(difference if fate == "survived" else ()), sep="\n", flush=True)
            fates.append(fate)
            if (n := fates.count("killed") + fates.count("survived")) == count:
                print(f"{fates.count('survived')} of {n} mutants survived")
                break


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
