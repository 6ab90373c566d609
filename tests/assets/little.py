"""A program like those of train/ that is over at once: it reports three steps and a result, or fails with a message."""

import sys

from train.runs import TrainError
from train.runs.command_line import guarded
from train.runs.reporting import reporting


def main(words: str) -> None:
    with guarded(), reporting() as report:
        if words:
            raise TrainError(words)
        for step in range(1, 4):
            report.step(step, 3, line=f"step {step}/3", metrics={"loss": 3.0 / step})
        report.materialized({"final_loss": {"raw_value": 1.0, "type": "float"}}, data_version="of its inputs")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]))
