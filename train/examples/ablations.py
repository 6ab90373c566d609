"""Rows as the ablations of Thyme's table 6 read them: another loss policy, code without comments."""

import io
import tokenize

from darkroom.pipelines.publishing.layouts.turns import Row
from darkroom.pipelines.records.trajectories import LossPolicy


def ablated(row: Row, *, loss_policy: LossPolicy | None, without_comments: bool) -> Row:
    """``row`` with this loss policy instead of its own (None: its own), and without the comments of its code."""
    if loss_policy is not None:
        row = {**row, "loss_policy": loss_policy}
    if without_comments:
        row = {**row, "rounds": [{**turn, "code": uncommented(turn["code"])} for turn in row["rounds"]]}
    return row


def uncommented(code: str) -> str:
    """The code without comments and without the lines that held nothing else. Code that is no Python is unchanged."""
    lines = [*io.StringIO(code)]
    try:
        found = [token for token in tokenize.generate_tokens(iter(lines).__next__) if token.type == tokenize.COMMENT]
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return code
    for token in found:
        number, column = token.start
        line = lines[number - 1]
        kept, end = line[:column].rstrip(), line[len(line.rstrip("\r\n")) :]
        lines[number - 1] = kept + end if kept else ""
    return "".join(lines)
