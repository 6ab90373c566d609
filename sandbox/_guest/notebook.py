"""Lines that only a notebook understands, as IPython rewrites them, and the value of a last expression, which it shows.

    %matplotlib inline      get_ipython().run_line_magic('matplotlib inline')
    %%bash, then ls         get_ipython().system('ls')
    !pip install numpy      get_ipython().system('pip install numpy')
    files = !ls             files = get_ipython().getoutput('ls')
    cv2.resize?             help(cv2.resize)
    %time f(x)              f(x)

The sandbox starts no program: what lists, shows and makes folders is done, an installation is answered, anything else
does nothing, with a note.
"""

import ast
import glob
import importlib.util
import os
import re
from pathlib import Path
from types import SimpleNamespace

from darkroom.sandbox._guest.messages import note

SHOWN = "<shown>"
"""The name, which no code can spell, of the function that shows a value."""
_LINE = re.compile(
    r"^([ \t]*)(?:%%?(?:time(?:it)?|prun)[ \t]+(?=[^\s-])|((?:[^\W\d]\w*[ \t]*=[ \t]*(?=!))?)([%!])[ \t]*([^\n]*))",
    re.MULTILINE,
)
_OTHER_CELL = re.compile(r"%%(?!time|capture)")
_SHELL_CELL = re.compile(r"%%(?:bash|sh|shell)(?: [^\n]*)?")
_HELP = re.compile(r"^([ \t]*)([^\W\d][\w.]*)\?{1,2}[ \t]*$", re.MULTILINE)
_INSTALLERS = re.compile(
    r"(?:python3? -m )?(?:uv )?pip3? install\b|(?:apt|apt-get|conda|mamba) install\b|apt-get update\b"
)
_AS_MAGIC = (["pip"], ["conda"], ["ls"], ["pwd"], ["cd"], ["cat"], ["mkdir"])
_MODULES = {"pillow": "PIL", "opencv": "cv2", "scikit": "skimage"}
"""What is imported of a distribution whose name begins so."""


def call_notebook(code: str) -> str:
    """Make calls of a notebook's lines; other lines stay, and so does a cell of another language."""
    first, _, rest = code.lstrip().partition("\n")
    if first.startswith("%%writefile "):
        return f"with open({first.split()[-1]!r}, 'w') as file:\n    file.write({rest!r})"
    if _SHELL_CELL.fullmatch(first.rstrip()):
        code = "\n".join(f"!{line}" for line in rest.splitlines() if line.strip())
    return code if _OTHER_CELL.match(code.lstrip()) else _HELP.sub(r"\1help(\2)", _LINE.sub(_called, code))


def _called(line: re.Match[str]) -> str:
    margin, target, sign, rest = line.groups()
    if sign is None:
        return margin
    method = "run_line_magic" if sign == "%" else "getoutput" if target else "system"
    rest = rest.strip(" %!\r")
    return f"{margin}{target}get_ipython().{method}({rest!r})"


def show_last_value(tree: ast.Module, code: str) -> None:
    """Show the value of the last statement, in place, where that is an expression without a semicolon."""
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr) and not code.rstrip().endswith(";"):
        shown = ast.copy_location(ast.Name(SHOWN, ast.Load()), last.value)
        last.value = ast.copy_location(ast.Call(shown, [last.value], []), last.value)


class Notebook:
    """The shell of a notebook, of which only a few commands mean something here."""

    events = SimpleNamespace(register=lambda *_: None, unregister=lambda *_: None)

    def run_line_magic(self, line: str, rest: str = "", *_: object) -> None:
        """Do what a line after `%` asks for; what sets up a notebook is set up already."""
        if (command := f"{line} {rest}").split()[:1] in _AS_MAGIC:
            self.system(command)

    magic = run_line_magic

    def system(self, command: str) -> None:
        """Do what a line after `!` asks for."""
        print(*self.getoutput(command), sep="\n", end="\n" * bool(self._lines))

    def getoutput(self, command: str) -> list[str]:
        """Return the lines that the command would print."""
        program, *arguments = command.split() or [""]
        words = [word for word in arguments if not word.startswith("-")]
        self._lines: list[str] = []
        if _INSTALLERS.match(command):
            _answer_installation(words[words.index("install") + 1 :] if "install" in words else [])
        elif program == "ls":
            folders = [found for word in words or ["."] for found in (glob.glob(word) if "*" in word else [word])]
            names = [os.listdir(folder) if os.path.isdir(folder) else [folder] for folder in folders]
            self._lines = sorted(name for listed in names for name in listed if not name.startswith("."))
        elif program == "cat":
            self._lines = [line for word in words for line in Path(word).read_text("utf-8", "replace").splitlines()]
        elif program == "mkdir":
            for word in words:
                os.makedirs(word, exist_ok=True)
        elif program == "cd" and words:
            os.chdir(words[0])
        elif program in ("pwd", "echo"):
            self._lines = [os.getcwd() if program == "pwd" else command.removeprefix("echo").strip(" \"'")]
        else:
            note(f"the sandbox starts no programs: !{command[:80]} did nothing")
        return self._lines


def _answer_installation(names: list[str]) -> None:
    for name in (re.split(r"[=<>~!\[]", word.strip("\"'"))[0] for word in names):
        module = next((own for stem, own in _MODULES.items() if name.lower().startswith(stem)), name)
        is_there = importlib.util.find_spec(module.replace("-", "_")) is not None
        note(f"{name} is installed already" if is_there else f"{name} cannot be installed: there is no network")
