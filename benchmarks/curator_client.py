"""Bespoke Curator at work on the mock endpoint; prints what it took, as JSON.

    VENV/bin/python benchmarks/curator_client.py URL FOLDER N_ROWS

For an interpreter of its own, with ``pip install bespokelabs-curator``: nothing of this repository is imported. It
appends each answer to JSON lines, and puts a dataset together at the end.
"""

import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

CONCURRENCY = 256
SYSTEM = "Answer the question in <answer></answer>."
_ENDLESS = 1_000_000_000


def main(url: str, folder: str, n_rows: str) -> None:
    litellm = import_module("litellm").__file__
    os.environ |= {
        "CURATOR_CACHE_DIR": folder,
        "CURATOR_DISABLE_RICH_DISPLAY": "1",
        "TELEMETRY_ENABLED": "false",
        "OPENAI_API_KEY": "none",
        # the vocabulary by which it counts tokens, which it would download
        "TIKTOKEN_CACHE_DIR": str(Path(litellm or "").parent / "litellm_core_utils" / "tokenizers"),
    }
    curator: Any = import_module("bespokelabs.curator")

    class Answers(curator.LLM):  # type: ignore[misc]
        def prompt(self, row: dict[str, Any]) -> list[dict[str, str]]:
            return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": row["question"]}]

        def parse(self, row: dict[str, Any], response: str) -> dict[str, Any]:
            return {"question": row["question"], "answer": response}

    answers = Answers(
        model_name="mock",
        backend="openai",
        generation_params={"temperature": 1.0, "top_p": 1.0, "max_tokens": 2048, "seed": 0, "stop": ["</answer>"]},
        backend_params={
            "base_url": url,
            "max_concurrent_requests": CONCURRENCY,
            "max_requests_per_minute": _ENDLESS,
            "max_tokens_per_minute": _ENDLESS,
        },
    )
    rows = [{"question": f"What is row {n}?"} for n in range(int(n_rows))]
    started, cpu_started = time.perf_counter(), time.process_time()
    answers(rows)
    lines = Path("/proc/self/status").read_text().splitlines()
    figures = {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu_started,
        "memory_mb": next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
