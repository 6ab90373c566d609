"""Checks the words of the code and its documentation against ``scripts/vocabulary.toml``; ``make lint`` runs it.

Prose is Markdown outside of code blocks, comments, docstrings, the messages of ``raise`` statements and ``help=``
texts. Other strings are data (prompts, rows, what the embedded source writes) and are not read.

    python -m scripts.vocabulary [PATH...]     # exit status 1 where there is a finding
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
RULES: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
PRODUCT = ("sandbox", "pipelines", "annotation", "train", "assets")
DATA = ("pipelines/models/prompts/",)
"""Markdown that is data: prompts, whose words are keys of the ledger."""
CHECKED = (*PRODUCT, "scripts", "measurements", "examples", "docs", "README.md", "CONTRIBUTING.md", "SECURITY.md")


class Finding(NamedTuple):
    """One place, as compilers print it."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def check(root: Path, paths: list[str]) -> list[Finding]:
    """All findings in the tracked files below ``paths`` (relative to ``root``)."""
    files = [path for path in tracked(root, paths) if not path.startswith(DATA)]
    texts = {path: (root / path).read_text(encoding="utf-8") for path in files}
    trees = {path: ast.parse(text) for path, text in texts.items() if path.endswith(".py")}
    product = {path: tree for path, tree in trees.items() if path.startswith(tuple(f"{name}/" for name in PRODUCT))}
    return [
        *(finding for path, text in texts.items() for finding in words(path, text, trees.get(path))),
        *modules(product),
        *vague_locals(product),
        *docstrings(product),
        *frequent_words({path: texts[path] for path in product}, product),
        *classes_defined_twice(product),
    ]


def tracked(root: Path, paths: list[str]) -> list[str]:
    """Python and Markdown files that git tracks."""
    listing = subprocess.run(["git", "ls-files", *paths], cwd=root, capture_output=True, text=True, check=True).stdout
    return [path for path in listing.splitlines() if path.endswith((".py", ".md")) and (root / path).exists()]


def words(path: str, text: str, tree: ast.Module | None) -> Iterator[Finding]:
    """Uses of a word that has a better one."""
    pieces = paragraphs(text) if tree is None else prose(text, tree)
    outside_code = [(line, re.sub(r"`[^`]*`", "", piece)) for line, piece in pieces]
    for rule in RULES["word"]:
        if not path.startswith(tuple(rule.get("only", [""]))):
            continue
        for line, piece in outside_code:
            for match in re.finditer(rf"\b(?:{rule['pattern']})\b", piece, re.IGNORECASE):
                yield Finding(path, line, f"{match[0]!r}: {rule['use']}")


def prose(text: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Comments, docstrings, messages and help texts with their line."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
        elif isinstance(node, ast.Raise) and node.exc is not None:
            yield from constants(node.exc)
        elif isinstance(node, ast.keyword) and node.arg in ("help", "short_help", "epilog"):
            yield from constants(node.value)


def constants(node: ast.AST) -> Iterator[tuple[int, str]]:
    """The string constants of an expression."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.lineno, part.value


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a Markdown page outside of its code blocks."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def modules(trees: dict[str, ast.Module]) -> Iterator[Finding]:
    """Modules with a name of our own."""
    for path in trees:
        if Path(path).stem in RULES["modules"]["forbidden"]:
            yield Finding(path, 1, f"a module named {Path(path).stem!r}: name it by the field's term")


def vague_locals(trees: dict[str, ast.Module]) -> Iterator[Finding]:
    """Where more functions than allowed have local names that say nothing."""
    vague, findings, n_functions = set(RULES["locals"]["vague"]), [], 0
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                n_functions += 1
                names = {part.id for part in ast.walk(node) if _is_bound(part)} | _parameters(node)
                findings += [Finding(path, node.lineno, f"local name {name!r}") for name in sorted(names & vague)]
    if 100 * len(findings) > RULES["locals"]["per_100_functions"] * n_functions:
        yield from findings


def docstrings(trees: dict[str, ast.Module]) -> Iterator[Finding]:
    """Docstrings that begin with a relative or a preposition, where more than allowed do."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    first, findings, n_docstrings = re.compile(rf"({'|'.join(RULES['docstrings']['not_first'])})\b"), [], 0
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, documented) and (text := ast.get_docstring(node)):
                n_docstrings += 1
                if first.match(text):
                    line = getattr(node, "lineno", 1)
                    findings.append(
                        Finding(path, line, f"a docstring begins with {text.split()[0]!r}: a verb or a noun")
                    )
    if 100 * len(findings) > RULES["docstrings"]["percent"] * n_docstrings:
        yield from findings


def frequent_words(texts: dict[str, str], trees: dict[str, ast.Module]) -> Iterator[Finding]:
    """Words with several meanings that stand in prose more often than allowed."""
    pieces = [(path, *piece) for path, text in texts.items() for piece in prose(text, trees[path])]
    for word, n_allowed in RULES["uses"].items():
        pattern = re.compile(rf"\b{word}s?\b", re.IGNORECASE)
        findings = [Finding(path, line, f"{word!r}") for path, line, text in pieces for _ in pattern.finditer(text)]
        if len(findings) > n_allowed:
            yield from (
                finding._replace(message=f"{word!r}: {len(findings)} uses, at most {n_allowed}") for finding in findings
            )


def _is_bound(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def classes_defined_twice(trees: dict[str, ast.Module]) -> Iterator[Finding]:
    """Where more class names than allowed are defined in two files."""
    places: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append((path, node.lineno))
    twice = {name: where for name, where in places.items() if len({path for path, _ in where}) > 1}
    if len(twice) > RULES["classes"]["defined_twice"]:
        for name, definitions in sorted(twice.items()):
            yield from (Finding(path, line, f"class {name} is defined twice") for path, line in definitions)


def main() -> int:
    """Prints the findings; 1 if there are any."""
    findings = check(ROOT, sys.argv[1:] or list(CHECKED))
    print("\n".join(map(str, findings)) or "vocabulary: no findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
