"""A program like those of train/ that is over at once: it reports three steps and a result, or fails with a message.

With the words ``marks half`` it marks that and goes on until it is stopped.
"""

import sys
import time

from darkroom.assets.builds.child_process import mark
from darkroom.train.runs import TrainError
from darkroom.train.runs.command_line import guarded
from darkroom.train.runs.reporting import reporting


def main(words: str) -> None:
    with guarded(), reporting() as report:
        if words == "marks half":
            mark("half")
            time.sleep(600)
        if words:
            raise TrainError(words)
        for step in range(1, 4):
            report.step(step, 3, line=f"step {step}/3", metrics={"loss": 3.0 / step})
        report.materialized({"final_loss": {"raw_value": 1.0, "type": "float"}}, data_version="of its inputs")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]))
