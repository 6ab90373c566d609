"""A pilot before a large build: what the models of your settings make of 200 questions per family, as one page.

    export DARKROOM_POLICY=openai DARKROOM_POLICY_URL=http://gpu:8000/v1 DARKROOM_POLICY_MODEL=…
    python examples/pilot.py photos 200 pilot.md

What the endpoints can do; of each family yield, rejects by reason and check, tokens and seconds of new calls per
accepted row, and how far the judge's votes agree (DARKROOM_JUDGE_VOTES above 1); a gallery with every row. Calls stay
in the ledger: a build, and the pilot run again, pay for none of them.
"""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

ROLES = {"policy": "DARKROOM_POLICY", "judge": "DARKROOM_JUDGE", "convert": "DARKROOM_CONVERT"}


def printed_by(*words: str) -> tuple[str, int]:
    """The output of a command, shown while it runs, and its exit status."""
    lines = []
    command = [Path(sys.executable).with_name("darkroom"), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    return "".join(lines), process.returncode


def main(source: str, n_rows: str, page: str) -> int:
    """Write the page, also of what failed; returns the exit status of the first command that did."""
    checks = [("policy", "check", role) for role, name in ROLES.items() if os.environ.get(name) == "openai"]
    statuses, parts = [], [f"# Pilot: {n_rows} questions of {source} per family, {datetime.now(UTC):%Y-%m-%d}"]
    for words in [*checks, ("materialize", source, "--preview", n_rows)]:
        text, status = printed_by(*words)
        statuses.append(status)
        parts.append(f"## darkroom {' '.join(words)}\n\n```\n{text.strip()}\n```")
    Path(page).write_text("\n\n".join(parts) + "\n")
    return next(filter(None, statuses), 0)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
