"""The README of an export: what lies there, how the trainer is told to use it, what it cannot express."""

from __future__ import annotations

from collections.abc import Mapping

from pipelines.layouts.base import Facts, Layout

_MEDIA = {
    "paths": "Images lie in `images/`, each once, named by the sha256 of its bytes; paths are relative to this folder.",
    "bytes": "Images are inside the rows, as the bytes that came in.",
    "none": "There are no images.",
}
_ESCAPES = """\
Words that a trainer or a tokenizer would take for something else have a blank in them: a literal `<image>` in a
question is `< image>`, a literal `<|im_end|>` is `<| im_end|>`. `pipelines.layouts.text.unescaped` takes the blanks out
again. Labels that a rule compares (`ground_truth`, `label`) are as they were.
"""


def readme(layout: Layout, facts: Facts, reasons: Mapping[str, int]) -> str:
    """The README's text; FOLDER stands for where it lies."""
    files = "\n".join(f"| `{name}` | {n} |" for name, n in facts.files.items())
    rejects = "\n".join(f"| {reason} | {n} |" for reason, n in sorted(reasons.items()))
    set_aside = (
        f"Rows that this layout cannot hold are in `rejects.jsonl`, each with its reason:\n\n| reason | rows |\n"
        f"| --- | --- |\n{rejects}\n"
        if rejects
        else "No row was set aside (`rejects.jsonl` is empty).\n"
    )
    return f"""\
# {facts.dataset} for {layout.trainer}

Layout `{layout.name}`: {layout.says}.
{facts.n_rows} rows of the split `{facts.split}`, {facts.n_images} images in them.
{_MEDIA[layout.media]}

| file | rows |
| --- | --- |
{files}

{set_aside}
## Use

`FOLDER` stands for the absolute path of this folder.

{layout.usage(facts)}
## Escapes

{_ESCAPES}"""
