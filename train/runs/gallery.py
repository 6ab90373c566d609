"""Sample rollouts of a training as a page beside the checkpoint, and the metadata of the checkpoint's asset page.

Reads ``<output>/rollouts/<step>.json``, a list of rollouts with thumbnails in ``<output>/rollouts/images/``:

{"step": 10, "sample_id": "…", "question": "…", "gold": "red", "mode": "free", "protocol": "thyme", "reward": 1.5,
 "parts": {"accuracy": 1.0, …}, "advantage": 0.5, "broken": null, "answer": "red", "final_thought": "…",
 "unanswered": null, "written": null, "question_images": ["<sha>.png"],
 "rounds": [{"thought", "code", "status", "text", "error", "images": ["<sha>.png"]}]}
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from darkroom.pipelines.inspection.gallery import write_entries
from darkroom.pipelines.inspection.gallery.entries import Entry, code_html, signed
from darkroom.pipelines.inspection.pages import cell, inline_example, markdown_table, thumbnail
from darkroom.train.runs import history
from darkroom.train.runs.history import CodeVersion
from darkroom.train.runs.reporting import is_number

FOLDER, IMAGES, PAGE = "rollouts", "images", "rollouts.html"
N_EXAMPLES = 3
N_TABLED = 8
_FILTERS = {"step": "Step", "kind": "Outcome", "category": "Mode"}
_SIDE = 180

Rollout = Mapping[str, Any]


def read_rollouts(output: Path) -> list[Rollout]:
    """All sample rollouts, the newest step first, the best rollout of a question before its others."""
    return [
        rollout
        for path in sorted((output / FOLDER).glob("*.json"), reverse=True)
        for rollout in sorted(json.loads(path.read_text()), key=lambda row: (row["sample_id"], -(row["reward"] or 0.0)))
    ]


def write_page(output: Path, *, title: str) -> None:
    """Write ``rollouts.html``: the gallery of all rollouts, each with its reward and advantage."""
    rollouts = read_rollouts(output)
    if not rollouts:
        return
    names = {name for rollout in rollouts for name in _images(rollout)}
    entries = (_entry(rollout, number) for number, rollout in enumerate(rollouts))
    addresses = {name: f"{FOLDER}/{IMAGES}/{name}" for name in sorted(names)}
    title = f"{title}: sample rollouts"
    write_entries(output / PAGE, entries, title=title, filters=_FILTERS, addresses=addresses)


def _entry(rollout: Rollout, number: int) -> Entry:
    broken, unanswered = rollout["broken"], rollout.get("unanswered")
    return Entry.of(
        id=rollout["sample_id"],
        link=f"{rollout['step']}/{number}",
        step=f"step {rollout['step']}",
        kind="broken" if broken else "no answer" if unanswered else "answered",
        family=rollout["protocol"],
        category=rollout["mode"] or "",
        question=rollout["question"],
        images=list(rollout["question_images"]),
        rounds=[_round(turn) for turn in rollout["rounds"]],
        thought=rollout["final_thought"] or "",
        answer=rollout["answer"] or "",
        problem=f"broken: {broken}" if broken else unanswered or "",
        expected=rollout["gold"],
        written=rollout.get("written") or "",
        reward={"total": rollout["reward"], "advantage": rollout["advantage"], "parts": rollout["parts"]},
    )


def _round(turn: Mapping[str, Any]) -> dict[str, Any]:
    texts = {name: turn[name] or "" for name in ("thought", "status", "text", "error")}
    return {**texts, "code": code_html(turn["code"]), "edits": [], "images": turn["images"]}


def _images(rollout: Rollout) -> list[str]:
    return [*rollout["question_images"], *(name for turn in rollout["rounds"] for name in turn["images"])]


def rollout_examples(rollouts: Sequence[Rollout], output: Path) -> list[str]:
    """A few rollouts, each as one image and one line, short enough for the asset's page itself."""
    return [_example(rollout, output) for rollout in _varied(rollouts, N_EXAMPLES)]


def rollout_table(rollouts: Sequence[Rollout], output: Path) -> str:
    head = ("step", "question", "image", "code", "observation", "answer", "reward", "advantage")
    return markdown_table(head, [_row(rollout, output) for rollout in _varied(rollouts, N_TABLED)])


def _row(rollout: Rollout, output: Path) -> tuple[str, ...]:
    rounds = rollout["rounds"]
    parts = ", ".join(f"{name} {signed(value)}" for name, value in rollout["parts"].items())
    thumbnails = [thumbnail(_opened(output, name), _SIDE) for turn in rounds for name in turn["images"][:1]][:2]
    questioned = [thumbnail(_opened(output, name), _SIDE) for name in rollout["question_images"][:1]]
    observations = "; ".join(f"{turn['status']}: {turn['error'] or turn['text'] or ''}".strip(": ") for turn in rounds)
    return (
        str(rollout["step"]),
        cell(rollout["question"], 200),
        " ".join(questioned),
        cell(" ⏎ ".join(turn["code"] for turn in rounds), 300, code=True),
        f"{' '.join(thumbnails)} {cell(observations, 120)}",
        f"{_answer(rollout)} (gold: {cell(rollout['gold'], 60)})",
        f"{signed(rollout['reward'])} ({parts})",
        signed(rollout["advantage"], "+"),
    )


def _example(rollout: Rollout, output: Path) -> str:
    outcome = f"reward {signed(rollout['reward'])}, advantage {signed(rollout['advantage'], '+')}"
    caption = f"step {rollout['step']}: {cell(rollout['question'], 140)} → **{_answer(rollout)}** · {outcome}"
    names = _images(rollout)
    return inline_example(_opened(output, names[-1]) if names else None, caption)


def _varied(rollouts: Sequence[Rollout], n: int) -> list[Rollout]:
    """The first of each step and question, then others, so that one group does not fill the page."""
    first: dict[tuple[int, str], Rollout] = {}
    for rollout in rollouts:
        first.setdefault((rollout["step"], rollout["sample_id"]), rollout)
    chosen = list(first.values())
    return [*chosen, *(rollout for rollout in rollouts if rollout not in chosen)][:n]


def _answer(rollout: Rollout) -> str:
    if rollout["broken"] is not None:
        return f"broken: {cell(rollout['broken'], 60)}"
    return cell(rollout["answer"] or "no answer", 60)


def _opened(output: Path, name: str) -> Image.Image:
    with Image.open(output / FOLDER / IMAGES / name) as image:
        return image.convert("RGB")


def metadata(record: Mapping[str, Any], output: Path, *, column: str, figure: bytes) -> dict[str, Any]:
    """The asset metadata of a ``training.json``: columns, steps, plots, rollouts, inputs and code version. Images are
    data URLs, since Dagster's UI serves no files; Markdown of a thousand characters and more is behind a link."""
    steps, panels = record["steps"], output / history.PANELS
    there = history.number_columns(steps)
    columns = [column, *(name for name in history.COLUMNS["plotted"] if name in there and name != column)]
    numbers = {name: [step[name] for step in steps if is_number(step.get(name))] for name in columns}
    return {
        # Dagster plots these from one materialisation to the next
        **{f"final_{name}": _value(float(values[-1]) if values else None, "float") for name, values in numbers.items()},
        **{f"{name}_course": _value(_column_summary(steps, name, values), "md") for name, values in numbers.items()},
        "plot": _value(history.embedded(figure, column), "md"),
        **({"plots": _value(history.embedded(panels.read_bytes(), "all columns"), "md")} if panels.is_file() else {}),
        "steps_table": _value(history.step_table(steps), "md"),
        **_evaluation(record),
        **_rollouts(output),
        "steps": _value(record["n_steps"], "int"),
        "seconds": _value(record["seconds"], "float"),
        "checkpoint": _value(str(output.resolve()), "path"),
        **_origin(record),
    }


def _column_summary(steps: Sequence[dict[str, Any]], column: str, values: Sequence[float]) -> str:
    """A plot of a few hundred bytes and a line, short enough to be shown on the page itself."""
    if not values:
        return "no step has it"
    summary = f"{values[0]:.4g} → {values[-1]:.4g} (from {min(values):.4g} to {max(values):.4g})"
    return f"{history.embedded(history.tiny_plot(steps, column), column)}\n\n{summary}"


def _evaluation(record: Mapping[str, Any]) -> dict[str, Any]:
    if "evaluation" not in record:
        return {}
    metric = record["evaluation"]["metric"]
    lines = [
        f"{phase['phase']}: best {metric} {signed(phase['best_value'])} at step {phase['best_step']}, saved are the "
        f"weights of step {phase['saved_step']}{', stopped early' if phase['stopped_early'] else ''}"
        for phase in record["evaluation"]["phases"]
    ]
    return {"evaluation": _value("; ".join(lines), "text")}


def _rollouts(output: Path) -> dict[str, Any]:
    rollouts = read_rollouts(output)
    if not rollouts:
        return {}
    return {
        **{f"rollout_{n}": _value(line, "md") for n, line in enumerate(rollout_examples(rollouts, output), 1)},
        "rollouts": _value(rollout_table(rollouts, output), "md"),
        "rollouts_page": _value(str((output / PAGE).resolve()), "path"),
    }


def _origin(record: Mapping[str, Any]) -> dict[str, Any]:
    """Recipe, code and inputs, as far as ``training.json`` has them."""
    texts = {"inputs": record["inputs"]["digest"]}
    if recipe := record.get("recipe"):
        texts |= {"recipe": recipe["name"], "recipe_digest": recipe["digest"]}
    if "code" in record:
        texts["git_commit"] = CodeVersion(**record["code"]).in_words
    return {name: _value(text, "text") for name, text in texts.items()}


def _value(raw: Any, kind: str) -> dict[str, Any]:
    return {"raw_value": raw, "type": kind if raw is not None else "null"}
