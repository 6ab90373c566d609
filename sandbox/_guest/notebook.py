"""Lines that only a notebook understands, as IPython rewrites them, and the value of a last expression, which it shows.

    %matplotlib inline      get_ipython().run_line_magic('matplotlib inline')
    %%bash, then ls         get_ipython().system('ls')
    !pip install numpy      get_ipython().system('pip install numpy')
    files = !ls             files = get_ipython().getoutput('ls')
    cv2.resize?             help(cv2.resize)
    %time f(x)              f(x)

What lists, shows and makes folders is done, an installation is answered, any other program is not started, says a note.
"""

import ast
import glob
import importlib.util
import os
import re
from pathlib import Path
from types import SimpleNamespace

from darkroom.sandbox._guest.messages import note
from darkroom.sandbox._guest.source_layout import STRING_OR_COMMENT

SHOWN = "<shown>"
"""The name, which no code can spell, of the function that shows a value."""
_LINE = re.compile(
    r"^([ \t]*)(?:%%?(?:time(?:it)?|prun)[ \t]+(?=[^\s-])"
    r"|((?:[^\W\d]\w*[ \t]*=[ \t]*(?=!))?)(%(?=%?[A-Za-z])|!(?!=))[ \t]*((?:\\\n|[^\n])*+))",
    re.MULTILINE,
)
"""A line of Python can begin with `% ` or `!=`, within brackets."""
_OTHER_CELL = re.compile(r"%%(?!time|capture)")
_SHELL_CELL = re.compile(r"%%(?:bash|sh|shell)(?: [^\n]*)?")
_BARE = re.compile(r"^(?=(?:pip3?|conda|apt|apt-get) install )", re.MULTILINE)
_HELP = re.compile(r"^([ \t]*)([^\W\d][\w.]*)\?{1,2}[ \t]*$", re.MULTILINE)
_INSTALLERS = re.compile(
    r"(?:python3? -m )?(?:uv )?pip3? install\b|(?:apt|apt-get|conda|mamba) install\b|apt-get update\b"
)
_AS_MAGIC = (["pip"], ["conda"], ["ls"], ["pwd"], ["cd"], ["cat"], ["mkdir"])
_MODULES = {"pillow": "PIL", "opencv": "cv2", "scikit": "skimage"}
"""What is imported of a distribution whose name begins so."""


def call_notebook(code: str) -> str:
    """Make calls of a notebook's lines; other lines and strings stay, and so does a cell of another language."""
    first, _, rest = code.lstrip().partition("\n")
    if first.startswith("%%writefile "):
        return f"with open({first.split()[-1]!r}, 'w') as file:\n    file.write({rest!r})"
    if _SHELL_CELL.fullmatch(first.rstrip()):
        code = "\n".join(f"!{line}" for line in rest.splitlines() if line.strip())
    if _OTHER_CELL.match(code.lstrip()) or "\0" in code:
        return code
    strings = [match[0] for match in STRING_OR_COMMENT.finditer(code) if "\n" in match[0]]
    code = STRING_OR_COMMENT.sub(lambda match: "\0" if "\n" in match[0] else match[0], code)
    code = _HELP.sub(r"\1help(\2)", _LINE.sub(_called, _BARE.sub("!", code)))
    left = iter(strings)
    return re.sub("\0", lambda _: next(left), code)


def _called(line: re.Match[str]) -> str:
    margin, target, sign, rest = line.groups()
    if sign is None:
        return margin
    method = "run_line_magic" if sign == "%" else "getoutput" if target else "system"
    rest = rest.replace("\\\n", " ").lstrip("%! ").rstrip()
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
        for line in self.getoutput(command):
            print(line)

    def getoutput(self, command: str) -> list[str]:
        """Return the lines that the command would print."""
        program, *arguments = command.split() or [""]
        paths = [argument for argument in arguments if not argument.startswith("-")]
        if _INSTALLERS.match(command):
            _answer_installation(paths[paths.index("install") + 1 :] if "install" in paths else [])
        elif program == "ls":
            found = [name for path in paths or ["."] for name in (glob.glob(path) if "*" in path else [path])]
            listed = [name for path in found for name in (os.listdir(path) if os.path.isdir(path) else [path])]
            return sorted(name for name in listed if not name.startswith("."))
        elif program == "cat":
            return [line for path in paths for line in Path(path).read_text("utf-8", "replace").splitlines()]
        elif program == "mkdir":
            for path in paths:
                os.makedirs(path, exist_ok=True)
        elif program == "cd" and paths:
            os.chdir(paths[0])
        elif program in ("pwd", "echo"):
            return [os.getcwd() if program == "pwd" else command.removeprefix("echo").strip(" \"'")]
        else:
            note(f"the sandbox starts no programs: !{command[:80]} did nothing")
        return []


def _answer_installation(names: list[str]) -> None:
    for name in (re.split(r"[=<>~!\[]", word.strip("\"'"))[0] for word in names):
        module = next((own for stem, own in _MODULES.items() if name.lower().startswith(stem)), name)
        is_there = importlib.util.find_spec(module.replace("-", "_")) is not None
        note(f"{name} is installed already" if is_there else f"{name} cannot be installed: there is no network")
