"""datatrove's inference runner at work on the mock endpoint; prints what it took, as JSON.

    VENV/bin/python benchmarks/datatrove_client.py URL FOLDER N_ROWS

For an interpreter of its own, with ``pip install datatrove aiofiles aiosqlite httpx orjson``: nothing of this
repository is imported. It writes answers to JSON lines; nothing is durable before a whole chunk of rows is.
"""

import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

CONCURRENCY = 256
SYSTEM = "Answer the question in <answer></answer>."


async def ask(document: Any, generate: Any) -> dict[str, Any]:
    """As ``policy_client.py`` asks."""
    system = {"role": "system", "content": SYSTEM}
    user = {"role": "user", "content": [{"type": "text", "text": document.text}]}
    sampling = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 2048, "seed": int(document.id), "stop": ["</answer>"]}
    result = await generate({"messages": [system, user], **sampling})
    return {"text": result.text, "usage": result.usage}


def main(url: str, folder: str, n_rows: str) -> None:
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
    runner = inference.InferenceRunner(rollout_fn=ask, config=config, output_writer=writer)
    documents = [document(text=f"What is row {n}?", id=str(n)) for n in range(int(n_rows))]
    started, cpu_started = time.perf_counter(), time.process_time()
    runner.run(documents, rank=0, world_size=1)
    lines = Path("/proc/self/status").read_text().splitlines()
    figures = {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu_started,
        "memory_mb": next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
