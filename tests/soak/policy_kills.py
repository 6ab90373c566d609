"""A family's draft that is killed again and again."""

import tempfile
from pathlib import Path
from typing import Any

from tests.drafting import CALLS_PER_ROW, CONCURRENCY, DECISION, MockSource, draft, take_in
from tests.mock_endpoint import MockEndpoint
from tests.soak.kills import SEED, Killed, killed

KILLS_PER_DRAFT = 5


def killed_draft(endpoint: MockEndpoint, n_rows: int, seed: int = SEED, **settings: Any) -> Killed:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "prepared"
        take_in(home, MockSource(n_rows))
        n_calls = n_rows * CALLS_PER_ROW
        return killed(
            endpoint,
            home,
            draft,
            n_answers=n_calls,
            n_at_once=CONCURRENCY,
            n_kills=KILLS_PER_DRAFT,
            seed=seed,
            plan=DECISION,
            **settings,
        )
