"""Another toolkit at work on the mock endpoint; prints what it took, as JSON.

    VENV/bin/python measurements/toolkit_client.py datatrove URL FOLDER N_ROWS
    VENV/bin/python measurements/toolkit_client.py curator URL FOLDER N_ROWS

For an interpreter of its own, with ``pip install datatrove aiofiles aiosqlite httpx orjson`` or ``pip install
bespokelabs-curator``: nothing of this repository is imported. datatrove writes answers to JSON lines, and nothing is
durable before a whole chunk of rows is; Curator appends each answer to JSON lines, and makes a dataset at the end.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

CONCURRENCY = 256
SYSTEM = "Answer the question in <answer></answer>."
SAMPLING = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 2048, "stop": ["</answer>"]}
"""As ``policy_client.py`` asks."""
_ENDLESS = 1_000_000_000


def datatrove(url: str, folder: str, questions: Sequence[str]) -> Callable[[], object]:
    """Its inference runner."""
    import_module("loguru").logger.remove()
    inference = import_module("datatrove.pipeline.inference.run_inference")
    document = import_module("datatrove.data").Document
    writer = import_module("datatrove.pipeline.writers").JsonlWriter(folder, compression=None)
    config = inference.InferenceConfig(
        server_type="endpoint",
        model_name_or_path="mock",
        endpoint_url=url.removesuffix("/v1"),
        max_concurrent_generations=CONCURRENCY,
    )

    async def ask(document: Any, generate: Any) -> dict[str, Any]:
        system = {"role": "system", "content": SYSTEM}
        user = {"role": "user", "content": [{"type": "text", "text": document.text}]}
        answer = await generate({"messages": [system, user], "seed": int(document.id), **SAMPLING})
        return {"text": answer.text, "usage": answer.usage}

    runner = inference.InferenceRunner(rollout_fn=ask, config=config, output_writer=writer)
    documents = [document(text=question, id=str(n)) for n, question in enumerate(questions)]
    return lambda: runner.run(documents, rank=0, world_size=1)


def curator(url: str, folder: str, questions: Sequence[str]) -> Callable[[], object]:
    """Its class of language models, with one seed for all rows."""
    litellm = Path(str(import_module("litellm").__file__)).parent
    os.environ |= {
        "CURATOR_CACHE_DIR": folder,
        "CURATOR_DISABLE_RICH_DISPLAY": "1",
        "TELEMETRY_ENABLED": "false",
        "OPENAI_API_KEY": "none",
        # the vocabulary by which it counts tokens, which it would download
        "TIKTOKEN_CACHE_DIR": str(litellm / "litellm_core_utils" / "tokenizers"),
    }
    language_model: Any = import_module("bespokelabs.curator").LLM

    class Answers(language_model):  # type: ignore[misc]
        def prompt(self, row: dict[str, Any]) -> list[dict[str, str]]:
            return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": row["question"]}]

        def parse(self, row: dict[str, Any], response: str) -> dict[str, Any]:
            return {"question": row["question"], "answer": response}

    limits = ("max_requests_per_minute", "max_tokens_per_minute")
    answers = Answers(
        model_name="mock",
        backend="openai",
        generation_params={**SAMPLING, "seed": 0},
        backend_params={"base_url": url, "max_concurrent_requests": CONCURRENCY, **dict.fromkeys(limits, _ENDLESS)},
    )
    return lambda: answers([{"question": question} for question in questions])


def main(kind: str, url: str, folder: str, n_rows: str) -> None:
    questions = [f"What is row {n}?" for n in range(int(n_rows))]
    run = {"datatrove": datatrove, "curator": curator}[kind](url, folder, questions)
    started, cpu_started = time.perf_counter(), time.process_time()
    run()
    lines = Path("/proc/self/status").read_text().splitlines()
    figures = {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu_started,
        "memory_mb": next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
