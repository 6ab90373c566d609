"""Refuses what the papers refuse (deleting, moving, renaming, starting programs) with a message that can be read. Names
built at run time pass: the boundary is the kernel."""

import ast
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from darkroom.sandbox._guest.messages import ScanMode

_CALLS = {
    kind: {module: frozenset(names.split()) for module, names in modules.items()}
    for kind, modules in tomllib.loads(Path(__file__).with_name("refused_calls.toml").read_text("utf-8")).items()
}
_MODULES = {"os", "posix", "shutil", "pathlib", "subprocess"}


class Blocked(Exception):
    pass


def refuse_dangerous_calls(nodes: Sequence[ast.AST], mode: ScanMode) -> None:
    """Look for calls that the mode does not allow. Raises Blocked at the first."""
    if mode == "off":
        return
    for line, name in _named_functions(nodes):
        module, _, function = name.rpartition(".")
        if function in _CALLS["programs"].get(module, ()):
            raise Blocked(f"{name} is not allowed: the sandbox starts no other program (line {line})")
        if mode == "strict" and function in _CALLS["files"].get(module, ()):
            raise Blocked(f"{name} is not allowed: files are not deleted, moved or renamed here (line {line})")


def _named_functions(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Every `module.function` that the code imports or names, with its line."""
    names = _imported_names(nodes)
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{_canonical(node.module or '')}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Attribute):
            base = _base_name(node.value, names)
            if base is not None:
                yield node.lineno, f"{base}.{node.attr}"


def _imported_names(nodes: Iterable[ast.AST]) -> dict[str, str]:
    names = {module: _canonical(module) for module in _MODULES} | {"Path": "pathlib.Path"}
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.asname: _canonical(alias.name) for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def _base_name(node: ast.expr, names: dict[str, str]) -> str | None:
    """`os` of os.remove, `pathlib.Path` of Path(x).unlink and pathlib.Path(x).unlink; None for any other value."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    function = node.func if isinstance(node, ast.Call) else None
    name = names.get(function.id) if isinstance(function, ast.Name) else None
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        name = f"{names.get(function.value.id, '')}.{function.attr}"
    return name if name == "pathlib.Path" else None


def _canonical(module: str) -> str:
    return "os" if module == "posix" else module
