"""The report in words: Markdown tables of an evaluation's figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Results = Mapping[str, Any]


def report(made: Results) -> str:
    """``report.md``: who was asked what, then every figure, then what the words mean."""
    results = made["results"]
    parts = [
        f"# Evaluation of {_cell(made['who']['label'])}",
        _who(made),
        *_warnings(made),
        "## Right answers",
        accuracy_table(results),
        "![](accuracy.png)",
        "## Tools",
        _tool_calls(results),
        "![](tool_calls.png)",
        _code(results),
        "![](tools.png)",
        *_faithfulness(results),
        *_controls(results),
        "## Reading and writing",
        _lengths(results),
        *_broken(results),
        "## Words",
        _WORDS,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def accuracy_table(results: Results) -> str:
    """Accuracy by benchmark, category and cycle."""
    rows = []
    for name, section in results["benchmarks"].items():
        rows.append(_accuracy(f"**{_cell(name)}**", section["accuracy"]))
        several = {**section["categories"], **{f"order {key}": one for key, one in section["cycles"].items()}}
        rows += [_accuracy(f"· {_cell(key) or 'no category'}", one) for key, one in several.items() if len(several) > 1]
    if len(results["benchmarks"]) != 1:
        rows.append(_accuracy("**all**", results["all"]["accuracy"]))
    return _table(("", "questions", "rollouts", "right", "95 %", "score", "pass@k", "every order right"), rows)


def _accuracy(name: str, one: Results) -> Sequence[str]:
    passes = ", ".join(f"@{k} {share:.1%}" for k, share in one["pass_at"].items() if int(k) > 1)
    circular = one["circular"]
    return (
        name,
        f"{one['n_questions']:,}",
        f"{one['n_rollouts']:,}",
        f"{one['right']['mean']:.1%}",
        _interval(one["right"]),
        f"{one['value']['mean']:.3f}",
        passes,
        "" if circular is None else f"{circular['mean']:.1%} of {circular['n']}",
    )


def _who(made: Results) -> str:
    who = made["who"]
    sampling = ", ".join(f"{name} {value}" for name, value in who["sampling"].items() if value is not None)
    lines = [
        f"Policy: {who['policy']} `{_cell(who['model'])}`"
        + (f", revision `{who['revision'][:12]}`" if who["revision"] else ""),
        f"Protocol {who['protocol']}, mode {who['mode']}, at most {who['max_rounds']} programs, {who['rollouts']} "
        f"rollout(s) per question{'; ' + sampling if sampling else ''}.",
    ]
    for asked in made["asked"]:
        left_out = ", ".join(f"{count} {reason}" for reason, count in asked["left_out"].items())
        lines.append(
            f"Asked: {_cell(asked['name'])}, {asked['n']:,} questions" + (f"; left out: {left_out}" if left_out else "")
        )
    if made["unasked"]:
        reasons = ", ".join(f"{count} {reason}" for reason, count in made["unasked"].items())
        lines.append(f"Not to be asked in this way: {reasons}")
    return "  \n".join(lines)


def _warnings(made: Results) -> list[str]:
    if not made["n_failed"]:
        return []
    reasons = ", ".join(f"{count} {reason}" for reason, count in made["failures"].items())
    return [
        f"**Not complete:** {made['n_failed']} rollouts could not be had ({reasons}) and are in no figure. Run "
        "the same command again: only they are tried."
    ]


def _tool_calls(results: Results) -> str:
    rows = [
        (
            f"**{_cell(name)}**",
            *(f"{b['share']:.1%} ({b['accuracy']:.0%} right)" if b["n"] else "–" for b in section["tool_calls"]),
        )
        for name, section in _sections(results)
    ]
    names = [bucket["name"] for bucket in results["all"]["tool_calls"]]
    return _table(("rollouts with", *names), rows)


def _code(results: Results) -> str:
    rows = []
    for name, section in _sections(results):
        code = section["code"]
        tools = ", ".join(f"{tool} {count}" for tool, count in section["tools"].items())
        rows.append(
            (
                f"**{_cell(name)}**",
                f"{code['tool_use']['mean']:.1%} ({_interval(code['tool_use'])})",
                f"{code['ratio']['mean']:.1%}",
                f"{code['pass_rate']:.1%} of {code['n_programs']}" if code["n_programs"] else "–",
                f"{code['lines']:.1f}",
                f"{code['n_per_rollout']:.2f}",
                tools,
            )
        )
    return _table(("", "tool use", "code ratio", "pass rate", "lines", "programs a rollout", "tools"), rows)


def _faithfulness(results: Results) -> list[str]:
    rows = [
        (
            f"**{_cell(name)}**",
            who,
            counted.replace("_", " "),
            _of(one["given_correct"]),
            _of(one["over_all"]),
            f"{one['faithful']:.1%}",
            f"{one['unfaithful']:.1%}",
            f"{one['no_picture']:.1%}",
        )
        for name, section in _sections(results)
        for who, told in section["faithfulness"].items()
        for counted, one in ((key, told[key]) for key in ("as_codev", "parts_only"))
    ]
    if not rows:
        return []
    head = ("", "by", "counted", "given correct", "over all", "faithful", "unfaithful", "no picture")
    return ["## Faithfulness", _table(head, rows), "![](faithfulness.png)"]


def _controls(results: Results) -> list[str]:
    rows = [
        (
            name.replace("_", " "),
            f"{one['changed']['mean']:.1%} ({_interval(one['changed'])})",
            _of(one["changed_right"]),
            _of(one["changed_wrong"]),
            str(one["n_unanswered"]),
            str(one["n"]),
        )
        for name, one in results["all"]["controls"].items()
    ]
    if not rows:
        return []
    head = ("pictures", "answer changes", "was right", "was wrong", "no answer any more", "played")
    return ["## Does the answer depend on the pictures?", _table(head, rows), "![](controls.png)"]


def _lengths(results: Results) -> str:
    rows = []
    for name, section in _sections(results):
        spreads = {
            **section["lengths"],
            **{f"visual tokens, {key}": one for key, one in section["visual_tokens"].items()},
        }
        rows += [
            (
                f"**{_cell(name)}**",
                what.replace("_", " "),
                *(f"{one[key]:,.1f}" for key in ("mean", "median", "p95", "most")),
            )
            for what, one in spreads.items()
        ]
    return _table(("", "a rollout's", "mean", "median", "95th percentile", "most"), rows)


def _broken(results: Results) -> list[str]:
    rows = [
        (f"**{_cell(name)}**", reason.replace("_", " "), str(count), f"{count / section['accuracy']['n_rollouts']:.1%}")
        for name, section in _sections(results)
        for reason, count in section["broken"].items()
    ]
    return ["### Without an answer", _table(("", "why", "rollouts", "share"), rows)] if rows else []


def _sections(results: Results) -> Iterable[tuple[str, Results]]:
    yield from results["benchmarks"].items()
    if len(results["benchmarks"]) != 1:
        yield "all", results["all"]


def _interval(one: Results) -> str:
    return f"{one['low']:.1%} – {one['high']:.1%}" if one["n"] else ""


def _of(one: Results) -> str:
    return f"{one['mean']:.1%} of {one['n']}" if one["n"] else "–"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns without a word in any row are left out."""
    rows = list(rows)
    kept = [place for place in range(len(head)) if not place or any(row[place] for row in rows)]
    lines = ["| " + " | ".join(row[place] for place in kept) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + " --- |" * len(kept), *lines[1:]])


def _cell(text: str) -> str:
    """Somebody's words in a cell: on one line, and without what would end it."""
    return " ".join(str(text).replace("|", "\\|").replace("`", "'").split())


_WORDS = """\
- *right*: share of rollouts with a right answer; rollouts without an answer are wrong. Intervals: Wilson's, or the
  bootstrap over questions where a question has several rollouts or forms. *score*: as the benchmark counts (ANLS).
- *pass@k*: the chance that one of k answers is right, unbiased. *every order right*: questions that are right in every
  order of their choices.
- *tool use*: rollouts with a program. *code ratio*: rollouts with a program that was executed. *pass rate*: programs
  without error. *lines*: non-empty lines of a program (FIGR §4.4). *no_op*: shows a picture as it was.
- *faithful*: any picture that a program showed shows the target. *given correct*: of the right answers (CodeV's text,
  figure 2). *over all*: faithful and right, of all rollouts (its algorithm 1 and table 5). *as codev*: any picture
  counts, also the whole one; *parts only*: located parts of the question's picture count."""
