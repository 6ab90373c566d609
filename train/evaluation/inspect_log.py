"""An evaluation as a log of inspect-ai (``.eval``, format 2), for ``read_eval_log`` and ``inspect view``.

A zip of JSON files: the header, a summary of all samples, and one file a rollout. A rollout's messages are the
question with its images, the model's thoughts with their code as calls of ``python``, the observations, and the
answer; not the wording of the prompt, which the report names. Two scores: ``right`` (C or I) and ``score`` (0..1, as
the benchmark counts). Rollouts that the endpoint or the sandbox failed have an error and no score.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from PIL import Image

from darkroom.pipelines.publishing.html_page import data_url
from darkroom.pipelines.records.reject_reasons import RETRYABLE
from darkroom.pipelines.storage.images import ImageStore

Row = Mapping[str, Any]
"""A row of ``rollouts.parquet`` (``output.SCHEMA``)."""
_VERSION = 2
_ID_CHARS = 32
"""Of a digest in ``attachment://…``."""


def write_inspect_log(
    path: Path, record: Mapping[str, Any], rows: Iterable[Row], store: ImageStore, ended: float
) -> None:
    """Writes the log; ``ended`` is when the evaluation did, in seconds since 1970. Raises ``ImageMissing``."""
    summaries: list[dict[str, Any]] = []
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for row in rows:
            sample, summary = _sample(row, record["who"]["label"], store)
            _add(archive, f"samples/{sample['id']}_epoch_{sample['epoch']}.json", sample)
            summaries.append(summary)
        _add(archive, "summaries.json", summaries)
        _add(archive, "header.json", _header(record, summaries, datetime.fromtimestamp(ended, UTC)))


def _add(archive: ZipFile, name: str, content: Any) -> None:
    """Without a date: the same evaluation gives the same bytes."""
    archive.writestr(ZipInfo(name), json.dumps(content), ZIP_DEFLATED)


def _sample(row: Row, model: str, store: ImageStore) -> tuple[dict[str, Any], dict[str, Any]]:
    """The sample, and its summary."""
    messages = list(_messages(row, model))
    summary = {
        "id": f"{row['benchmark']}:{row['sample_id']}",
        "epoch": row["number"] + 1,
        "input": row["question"],
        "target": row["gold"],
        "choices": row["choices"] or None,
        "metadata": {"benchmark": row["benchmark"], "category": row["category"]},
        "model_usage": {model: _usage(row["usage"])},
    }
    whole: dict[str, Any]
    short: dict[str, Any]
    if row["fault"] in RETRYABLE:
        words = f"{row['fault']}: {row['fault_evidence']}"
        whole, short = {"error": {"message": words, "traceback": "", "traceback_ansi": ""}}, {"error": words}
    else:
        explanation = {"answer": row["answer"], "explanation": row["detail"]}
        right = {"value": "C" if row["right"] else "I", **explanation}
        whole = short = {"scores": {"right": right, "score": {"value": row["score"], **explanation}}}
    choice = {"message": messages[-1], "stop_reason": "unknown" if row["fault"] else "stop"}
    output = {"model": model, "choices": [choice], "completion": row["answer"]}
    conversation = {"input": messages[:1], "messages": messages, "output": output}
    attached = {"attachments": _attachments(row, store)}
    return summary | whole | conversation | attached, summary | short | {
        "completed": True,
        "message_count": len(messages),
    }


def _messages(row: Row, model: str) -> Iterator[dict[str, Any]]:
    question = "\n".join([row["question"], *row["choices"]])
    yield {"role": "user", "content": _parts(question, row["images"])}
    for number, turn in enumerate(row["rounds"]):
        observation, call_id = turn["observation"], f"call_{number}"
        call = {"id": call_id, "function": "python", "arguments": {"code": turn["code"]}, "type": "function"}
        yield {"role": "assistant", "content": turn["thought"], "tool_calls": [call], "model": model}
        error = {} if observation["status"] == "ok" else {"error": _error(observation)}
        content = _parts(observation["text"], observation["images"])
        yield {"role": "tool", "content": content, "tool_call_id": call_id, "function": "python", **error}
    yield {
        "role": "assistant",
        "content": "\n".join(filter(None, (row["final_thought"], row["answer"]))),
        "model": model,
    }


def _error(observation: Mapping[str, Any]) -> dict[str, str]:
    kind = "timeout" if observation["status"] == "timeout" else "unknown"
    return {"type": kind, "message": observation["error"] or observation["status"]}


def _parts(text: str, images: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    image_parts = [{"type": "image", "image": f"attachment://{image['sha256'][:_ID_CHARS]}"} for image in images]
    return [*image_parts, {"type": "text", "text": text}]


def _attachments(row: Row, store: ImageStore) -> dict[str, str]:
    """Every image that a message shows, once, as an address that needs no file."""
    observed = (image for turn in row["rounds"] for image in turn["observation"]["images"])
    images = {image["sha256"]: image["format"] for image in (*row["images"], *observed)}
    Image.init()  # which fills MIME
    return {
        sha256[:_ID_CHARS]: data_url(store.read(sha256), Image.MIME.get(kind, "image/png"))
        for sha256, kind in images.items()
    }


def _usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    n_in, n_out = usage["prompt_tokens"], usage["completion_tokens"]
    return {"input_tokens": n_in, "output_tokens": n_out, "total_tokens": n_in + n_out}


def _header(record: Mapping[str, Any], summaries: Sequence[Mapping[str, Any]], ended: datetime) -> dict[str, Any]:
    who, inputs, when = record["who"], record["inputs"], ended.isoformat()
    ids = list(dict.fromkeys(summary["id"] for summary in summaries))
    names = ", ".join(origin["name"] for origin in record["asked"])
    return {
        "version": _VERSION,
        "status": "error" if record["n_failed"] else "success",
        "eval": {
            **dict.fromkeys(("eval_id", "run_id", "task_id"), inputs[:22]),
            "created": when,
            "task": names,
            "task_args": record["settings"],
            "dataset": {"name": names, "samples": len(ids), "sample_ids": ids, "shuffled": False},
            "model": who["label"],
            "config": {"epochs": who["rollouts"]},
            "metadata": {"policy": who, "inputs": inputs},
        },
        "plan": {"name": "darkroom", "steps": [{"solver": "rollout", "params": {"max_rounds": who["max_rounds"]}}]},
        "results": {
            "total_samples": len(summaries),
            "completed_samples": len(summaries) - record["n_failed"],
            "scores": [_score(record["results"], name) for name in ("right", "value")],
        },
        "stats": {"completed_at": when, "model_usage": {who["label"]: _usage(record["usage"])}},
    }


def _score(results: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A score's mean over everything and by benchmark, with the ends of its 95 % interval."""
    accuracies = {"all": results["all"]["accuracy"]} | {
        benchmark: section["accuracy"] for benchmark, section in results["benchmarks"].items()
    }
    metrics = {
        key: {
            "name": key,
            "value": accuracy[name]["mean"],
            "metadata": {side: accuracy[name][side] for side in ("low", "high")},
        }
        for key, accuracy in accuracies.items()
    }
    title = {"right": "right", "value": "score"}[name]
    return {"name": title, "scorer": title, "metrics": metrics}
