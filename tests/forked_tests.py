"""A process that has imported what most tests import, and forks for every set of tests (for tests/mutants.py).

Reads a line of JSON each: a module to import first, and tests in the order to run them. Writes the first that fails as
a line of JSON, "" if none does. A test that takes too long, or ends its process, fails.
"""

import atexit
import gc
import importlib
import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

# nothing of Darkroom: a mutant is imported in the fork
LIBRARIES = (
    "numpy polars dagster datasets cv2 scipy.stats hypothesis typer.testing av openai fastapi torch transformers sympy "
    "peft trl.trainer.grpo_trainer trl.trainer.sft_trainer sqlalchemy.orm boto3 upath cattrs markdown_it math_verify"
)
OPTIONS = ("-m", "not e2e and not soak", "-p", "no:cacheprovider", "-W", "ignore:Module already imported")
UNIMPORTABLE, COLLECTION, PASSED = "cannot be imported", "collection", "passed"
SECONDS = 120


class Chosen:
    """Runs the chosen tests alone, in their order, and notes each when it begins."""

    def __init__(self, tests: list[str], notes: Path):
        self.order, self.notes = {test: n for n, test in enumerate(tests)}, notes

    def note(self, text: str) -> None:
        with self.notes.open("a") as file:
            file.write(text + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((it for it in items if it.nodeid in self.order), key=lambda it: self.order[it.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.note(nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.note(report.nodeid)


def run(module: str, tests: list[str], folder: Path) -> None:
    """Imports the module and runs the tests; the last line of the notes says how it ended."""
    os.setsid()
    for number, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        os.dup2(os.open(os.devnull if number == 0 else folder / "output", mode | os.O_CREAT | os.O_TRUNC), number)
    chosen = Chosen(tests, folder / "notes")
    importlib.import_module(module)
    chosen.note(COLLECTION)
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    limits = ("--timeout", str(SECONDS), f"--basetemp={folder / 'tmp'}")
    if pytest.main(["-x", *OPTIONS, *limits, *files], plugins=[chosen]) in {0, 5}:
        chosen.note(PASSED)
    atexit._run_exitfuncs()


def main(folder: Path) -> None:
    """Answers until standard input ends."""
    for library in LIBRARIES.split():
        importlib.import_module(library)
    gc.freeze()
    for line in sys.stdin:
        (folder / "notes").write_text(f"{UNIMPORTABLE}\n")
        if not (pid := os.fork()):
            try:
                run(*json.loads(line), folder)
            finally:
                os._exit(0)
        noted, since = "", time.monotonic()
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            if (notes := (folder / "notes").read_text()) != noted:
                noted, since = notes, time.monotonic()
            if time.monotonic() - since > (10 if noted.endswith(f"{PASSED}\n") else 1.5 * SECONDS):
                os.kill(pid, signal.SIGKILL)  # after the last test: what the end waits for is no failure
            time.sleep(0.02)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        last = (folder / "notes").read_text().rstrip("\n").rpartition("\n")[2]
        print(json.dumps("" if last == PASSED else last), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
