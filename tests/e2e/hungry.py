"""A program like those of train/, for tests of cancelling: it reports steps and works in its sandbox, without end."""

from __future__ import annotations

import threading
import time

FOREVER = 100_000


def main() -> None:
    from darkroom.sandbox import Limits, SandboxPool
    from darkroom.train.runs.command_line import guarded
    from darkroom.train.runs.reporting import reporting

    with guarded(), reporting() as report, SandboxPool(limits=Limits(seconds=FOREVER)) as pool:
        session = pool.group(images=[]).session(seed=0)
        assert session.run("1").ok
        threading.Thread(target=session.run, args=("while True: pass",), daemon=True).start()
        for step in range(1, FOREVER):
            report.step(step, FOREVER, line=f"step {step}", metrics={"loss": 1.0 / step}, is_printed=False)
            time.sleep(0.5)


if __name__ == "__main__":
    main()
