"""Runs the case lists on an idle machine and on a busy one: `python -m tests.sandbox.busy_machine --every 5`.

Prints each case whose status or effects are not the same under load; exit status 1 where there is one that is always
the same without load (some attacks race with threads of their own, or guess). The load is eight processes per CPU that
compute without an end. `--every 1`, the whole of both lists, takes six minutes on two CPUs.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from PIL import Image

from tests.sandbox.arena import Arena, open_arena
from tests.sandbox.attacks import ATTACKS, LIMITS, attack
from tests.sandbox.inputs import TRAJECTORIES, make_inputs

_HOGS_PER_CPU = 8
_N_REPEATED = 12


def outcomes(arena: Arena, every: int, only: str = "") -> Iterator[tuple[str, object]]:
    """By name, of all cases or of one."""
    for case in ATTACKS[::every]:
        if only not in ("", f"attack {case['name']}"):
            continue
        damage = attack(arena, case)
        yield f"attack {case['name']}", (damage.status, damage.faults)
    for case in TRAJECTORIES[::every]:
        if only not in ("", f"trajectory {case['name']}"):
            continue
        images = make_inputs(case) if "inputs" in case else [arena.image]
        with arena.pool.group(images, names=case.get("names", ())) as group, group.session(seed=1) as session:
            seen = [session.run(code) for code in case["rounds"]]
        yield f"trajectory {case['name']}", [(each.status, each.text, each.error) for each in seen]


@contextmanager
def busy_machine() -> Iterator[None]:
    n_hogs = _HOGS_PER_CPU * (os.cpu_count() or 1)
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n_hogs)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def run(arena: Arena, every: int, load: Callable[[], AbstractContextManager[None]], name: str) -> dict[str, object]:
    started = time.monotonic()
    with load():
        seen = dict(outcomes(arena, every))
        busy = os.getloadavg()[0]
    print(f"{name}: {len(seen)} cases in {time.monotonic() - started:.0f} s, load {busy:.0f}", flush=True)
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="only each so-manyth case")
    parser.add_argument("--tier", choices=["full", "lite"], default="full")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        photo = Path(folder) / "photo.jpg"
        Image.effect_noise((2000, 1500), 60).convert("RGB").save(photo)
        with open_arena(photo, LIMITS, tier=options.tier) as arena:
            idle = run(arena, options.every, nullcontext, "idle")
            busy = run(arena, options.every, busy_machine, "busy")
            changed = [name for name in idle if idle[name] != busy[name]]
            alone = {name: [dict(outcomes(arena, 1, name))[name] for _ in range(_N_REPEATED)] for name in changed}
    by_load = [name for name in changed if all(outcome == idle[name] for outcome in alone[name])]
    for name in changed:
        why = "" if name in by_load else ", and without load it is not always the same"
        print(f"{name}: idle {idle[name]}, busy {busy[name]}{why}")
    print(f"{len(idle) - len(changed)} of {len(idle)} cases gave the same, {len(by_load)} changed with the load")
    return 1 if by_load else 0


if __name__ == "__main__":
    sys.exit(main())
