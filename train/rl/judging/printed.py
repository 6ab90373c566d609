"""What code measured, of what it printed: CodeV's judge sees no words of the model's own (§4.3).

A line whose words and numbers all stand in the code's own literals was written, not measured (``print("It is red")``).
Words that are put together from pieces or character codes pass for measured; the judge's rules are for those.
"""

import ast
import re

from darkroom.pipelines.models.parsing import parsed

_WORD = re.compile(r"\w+")


def measured_lines(code: str, output: str) -> str:
    """The lines of ``output`` with a word or number that no literal of ``code`` has; empty where there is none."""
    tree = parsed(code)
    if tree is None:
        return ""
    literals = (str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant))
    written = {word for literal in literals for word in _WORD.findall(literal)}
    return "\n".join(line for line in output.splitlines() if not written.issuperset(_WORD.findall(line)))
