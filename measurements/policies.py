"""Measures the calls of policies against the bare openai client and against the bars that the layer promises.

    python -m measurements.policies                 # all of it, about five minutes
    python -m measurements.policies --quick         # a first impression, about one
    python -m measurements.policies --only cap --json figures.json

The endpoint is a mock in a process of its own (tests/mock_server.py); each client has its own process too. The
bare client and the layer take turns; a ratio compares two values of one turn.
"""

import sys
from collections.abc import Callable
from functools import partial

from measurements.policy_bars import measure_cap, measure_in_flight, measure_sharing, measure_throughput
from measurements.policy_images import measure_image_flight, measure_images, measure_minute
from measurements.report import describe_machine, options_of, report
from measurements.rows import Row
from tests.mock_endpoint import MockEndpoint

_MEASURES: dict[str, Callable[..., list[Row]]] = {
    "throughput": measure_throughput,
    "flight": measure_in_flight,
    "images": measure_images,
    "image_flight": measure_image_flight,
    "minute": measure_minute,
    "cap": measure_cap,
    "sharing": measure_sharing,
}
_LIBRARIES = ("openai", "aiohttp", "sqlalchemy")


def main() -> None:
    options = options_of(__doc__, _MEASURES, "fewer turns").parse_args()
    with MockEndpoint() as endpoint:
        measures = (partial(_MEASURES[name], endpoint, quick=options.quick) for name in options.only or _MEASURES)
        sys.exit(report(describe_machine(_LIBRARIES), measures, options.json))


if __name__ == "__main__":
    main()
