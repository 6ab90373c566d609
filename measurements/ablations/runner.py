"""Runs experiments: the rows first, then every seed in a process of its own, as many at once as there are cores."""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from darkroom.train.rl.settings import METHODS_VARIABLE
from measurements.ablations import results
from measurements.ablations.evaluations import measures
from measurements.ablations.experiment import Arm, Experiment
from measurements.ablations.models import METHODS
from measurements.ablations.world import ship

PROGRESS = "seed "
"""The beginning of a line that a seed's process means for a person; all others go to its log."""


def run(root: Path, experiments: Sequence[Experiment], seeds: Sequence[int] = ()) -> None:
    """Makes what is missing below ``root``, of all seeds or of those in ``seeds``.

    Raises ``SystemExit``, naming the log, where the process of a seed fails; the others are ended by then.
    """
    with alone(root):
        for name in sorted(set[str]().union(*(one.rows() for one in experiments))):
            started = time.monotonic()
            ship(root, name)
            print(f"rows {name}: {time.monotonic() - started:.0f} s", flush=True)
    by_seed = {seed: [one for one in experiments if seed in one.seeds] for one in experiments for seed in one.seeds}
    for seed in set(seeds) - by_seed.keys():
        by_seed[seed] = list(experiments)
    wanted = [(seed, chosen) for seed, chosen in sorted(by_seed.items()) if not seeds or seed in seeds]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in [pool.submit(_in_process, root, seed, [one.name for one in chosen]) for seed, chosen in wanted]:
            done.result()


def run_seed(root: Path, seed: int, experiments: Sequence[Experiment]) -> None:
    """Every arm of one seed, here; a line for each that was not complete."""
    own = (str(METHODS), os.environ.get(METHODS_VARIABLE, ""))
    os.environ[METHODS_VARIABLE] = os.pathsep.join(filter(None, own))
    with alone(root / f"seed-{seed}"):
        for experiment in experiments:
            run_arms(root, experiment, seed, lambda arm: measures(arm, root, seed))


def run_arms(root: Path, experiment: Experiment, seed: int, measure: Callable[[Arm], dict[str, float]]) -> None:
    """Makes and measures every arm that is not complete, with a line each."""
    for arm in experiment.arms:
        if results.read(root, experiment, arm, seed) is not None:
            continue
        started = time.monotonic()
        arm.model.make(root, seed)
        measured = measure(arm)
        results.write(root, experiment, arm, seed, measured)
        values = ", ".join(f"{name} {measured[name]:.3g}" for name in experiment.measures if name in measured)
        seconds = time.monotonic() - started
        print(f"{PROGRESS}{seed}: {experiment.name}, {arm.name}: {values} ({seconds:.0f} s)", flush=True)


def _in_process(root: Path, seed: int, names: Sequence[str]) -> None:
    log = _new_log(root, f"seed-{seed}")
    command = [sys.executable, "-m", "measurements.ablations", *names, str(root), "--one-seed", str(seed)]
    with (
        log.open("w") as file,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process,
    ):
        for line in process.stdout or ():
            file.write(line)
            file.flush()
            if line.startswith(PROGRESS):
                print(line, end="", flush=True)
    if process.returncode:
        raise SystemExit(f"seed {seed} ended with status {process.returncode}; what it said is in {log}")


def _new_log(folder: Path, name: str) -> Path:
    """A file that no earlier run wrote: what a failed one said is kept."""
    folder.mkdir(parents=True, exist_ok=True)
    names = (f"{name}.{number}.log" if number > 1 else f"{name}.log" for number in count(1))
    return next(folder / name for name in names if not (folder / name).exists())


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Waits until no other run writes in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
