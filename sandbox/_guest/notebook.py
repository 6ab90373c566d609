"""Lines that only a notebook understands, as IPython rewrites them, and the value of a last expression, which it shows.

    %matplotlib inline      get_ipython().run_line_magic('matplotlib inline')
    !pip install numpy      get_ipython().system('pip install numpy')
    %time f(x)              f(x)

The sandbox starts no program: a listing and an installation are answered, anything else does nothing, with a note.
"""

import ast
import importlib.util
import os
import re

from darkroom.sandbox._guest.notes import note

SHOWN = "<shown>"
"""The name, which no code can spell, of the function that shows a value."""
_LINE = re.compile(r"^([ \t]*)(?:%%?time(?:it)?[ \t]+(?=[^\s-])|([%!])[ \t]*([^\n]*))", re.MULTILINE)
_OTHER_CELL = re.compile(r"%%(?!time|capture)")
_INSTALLERS = re.compile(
    r"(?:python3? -m )?(?:uv )?pip3? install\b|(?:apt|apt-get|conda|mamba) install\b|apt-get update\b"
)
_MODULES = {"pillow": "PIL", "opencv": "cv2", "scikit": "skimage"}
"""What is imported of a distribution whose name begins so."""


def call_notebook(code: str) -> str:
    """Make calls of a notebook's lines; other lines stay, and so does a cell of another language."""
    return code if _OTHER_CELL.match(code.lstrip()) else _LINE.sub(_called, code)


def _called(line: re.Match[str]) -> str:
    margin, sign, rest = line.groups()
    if sign is None:
        return margin
    rest = rest.strip(" %!\r")
    return f"{margin}get_ipython().{'system' if sign == '!' else 'run_line_magic'}({rest!r})"


def show_last_value(tree: ast.Module, code: str) -> None:
    """Show the value of the last statement, in place, where that is an expression without a semicolon."""
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr) and not code.rstrip().endswith(";"):
        shown = ast.copy_location(ast.Name(SHOWN, ast.Load()), last.value)
        last.value = ast.copy_location(ast.Call(shown, [last.value], []), last.value)


class Notebook:
    """The shell of a notebook, of which only installing and listing mean something here."""

    def run_line_magic(self, line: str, rest: str = "", *_: object) -> None:
        """Do what a line after `%` asks for; what sets up a notebook is set up already."""
        words = f"{line} {rest}".split()
        if words[:1] in (["pip"], ["conda"], ["ls"], ["pwd"]):
            self.system(" ".join(words))

    magic = run_line_magic

    def system(self, command: str) -> None:
        """Do what a line after `!` asks for."""
        words = command.split()
        if _INSTALLERS.match(command):
            named = words[words.index("install") + 1 :] if "install" in words else []
            for name in [re.split(r"[=<>~!\[]", word)[0] for word in named if not word.startswith("-")]:
                module = next((own for stem, own in _MODULES.items() if name.lower().startswith(stem)), name)
                is_there = importlib.util.find_spec(module.replace("-", "_")) is not None
                note(f"{name} is installed already" if is_there else f"{name} cannot be installed: there is no network")
        elif words[:1] == ["ls"]:
            folders = [word for word in words[1:] if not word.startswith("-")] or ["."]
            names = (name for folder in folders for name in sorted(os.listdir(folder)) if not name.startswith("."))
            print(*names, sep="\n")
        elif words == ["pwd"]:
            print(os.getcwd())
        else:
            note(f"the sandbox starts no programs: !{command[:80]} did nothing")
