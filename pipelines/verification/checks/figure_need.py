"""Whether a drawing was needed: a printed answer was computed, without a look at the drawing (FIGR §3.1).

What is read off the drawing is compared with the source's answer by ``answer_verified``. Not found is an answer that a
program computed and wrote into its own drawing.
"""

import ast
import re

from pipelines.models.parsing import parsed
from pipelines.verification.case import Case
from pipelines.verification.checks.base import CheckResult, Flaw, check, failed, passed
from pipelines.verification.checks.output import output_supports_answer
from pipelines.verification.grading import grade


@check()
def drawing_needed(case: Case) -> CheckResult:
    """No program printed the answer or holds it as a text of its own: it has to be read off the drawing."""
    printed = output_supports_answer.judge(case)
    if printed.flaw is None:
        return failed(Flaw.ANSWER_PRINTED, f"the drawing was not needed: {printed.detail}")
    for n, turn in enumerate(case.trajectory.rounds, 1):
        for text in _texts(turn.code):
            values = {text.strip(), text.replace("=", ":").rpartition(":")[2].strip()}
            if any(grade(value, case.sample).right for value in values):
                return failed(Flaw.ANSWER_PRINTED, f"round {n} writes {text[:60]!r} into the drawing")
    return passed()


def _texts(code: str, most: int = 40) -> list[str]:
    """Texts in the code that hold a number and are short enough to be a value with a name before it."""
    tree = parsed(code)
    nodes = ast.walk(tree) if tree is not None else iter(())
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [text for text in dict.fromkeys(texts) if len(text) <= 80 and re.search(r"\d", text)][:most]
