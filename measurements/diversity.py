"""Repetition in a dataset: rows per question over all families, images, words of the thoughts, programs.

    python -m measurements.diversity data/datasets/sft

Distinct-4 (after Li et al., 2016) is, of all runs of four words in a family's thoughts, the share that are different
ones. Words are lower case without punctuation, numbers are masked as ``#``, no run crosses from one row to the next. It
falls with the number of rows, so it compares families and versions of about the same size. Programs are different where
they differ in more than numbers, texts and comments.
"""

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from darkroom.pipelines.inspection.pages import markdown_table
from darkroom.pipelines.publishing.dataset_reader import find_datasets, read_rows
from darkroom.pipelines.storage.row_files import by_key
from darkroom.pipelines.storage.tables import TableMissing

N = 4


class Diversity(NamedTuple):
    """The figures of one family."""

    family: str
    n_rows: int
    n_questions: int
    n_images: int
    distinct: float
    n_openings: int
    n_programs: int


def words_of(text: str) -> list[str]:
    """Lower case, numbers masked, without punctuation."""
    return re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?|#", re.sub(r"\d+(?:[.,:/]\d+)*", "#", text.lower()))


def distinct_n(texts: Iterable[str], n: int = N) -> float:
    """Different runs of ``n`` words among all of them, 0..1; 1 where there is none."""
    runs: Counter[tuple[str, ...]] = Counter()
    for text in texts:
        words = words_of(text)
        runs.update(zip(*(words[start:] for start in range(n)), strict=False))
    return len(runs) / runs.total() if runs else 1.0


def shape_of(code: str) -> str:
    """A program without numbers, texts and comments."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return code
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = "" if isinstance(node.value, str) else 0
    return ast.dump(tree)


def thoughts_of(row: Mapping[str, Any]) -> str:
    """Everything that the policy wrote in words."""
    return "\n".join([*(turn["thought"] for turn in row["rounds"]), row["final_thought"]])


def diversity(family: str, rows: Sequence[Mapping[str, Any]]) -> Diversity:
    """The measures of one family."""
    openings = {tuple(words_of(thoughts_of(row))[:6]) for row in rows}
    images = {ref["sha256"] for row in rows for ref in row["image_refs"][: row["n_question_images"]]}
    return Diversity(
        family,
        len(rows),
        len({row["question"] for row in rows}),
        len(images),
        distinct_n(map(thoughts_of, rows)),
        len(openings),
        len({shape_of(turn["code"]) for row in rows for turn in row["rounds"] if turn["code"]}),
    )


def table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Markdown, a family a line, and what all families have together."""
    by_family = by_key((row["family"], row) for row in rows)
    per_question = Counter(row["question"] for of in by_family.values() for row in of)
    found = [diversity(family, of)._asdict() for family, of in sorted(by_family.items())]
    cells = [
        (f"`{row.pop('family')}`", *(f"{n:.2f}" if isinstance(n, float) else str(n) for n in row.values()))
        for row in found
    ]
    most = max(per_question.values(), default=0)
    head = ("family", "rows", "questions", "images", "distinct-4", "openings", "programs")
    together = f"{per_question.total()} rows on {len(per_question)} questions, at most {most} rows a question."
    return f"{markdown_table(head, cells)}\n\n{together}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", type=Path, help="as data/datasets/sft")
    try:
        print(table(read_rows(find_datasets("all", parser.parse_args().datasets))))
    except TableMissing as missing:
        sys.exit(str(missing))
