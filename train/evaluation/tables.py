"""The Markdown report: tables of an evaluation's figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Results = Mapping[str, Any]


def report(record: Results) -> str:
    """``report.md``: policy and questions, every figure, a glossary."""
    results = record["results"]
    parts = [
        f"# Evaluation of {_cell(record['who']['label'])}",
        _who(record),
        *_warnings(record),
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
        several = {**section["categories"], **{f"order {key}": figures for key, figures in section["cycles"].items()}}
        rows += [
            _accuracy(f"· {_cell(key) or 'no category'}", figures)
            for key, figures in several.items()
            if len(several) > 1
        ]
    if len(results["benchmarks"]) != 1:
        rows.append(_accuracy("**all**", results["all"]["accuracy"]))
    return _table(("", "questions", "rollouts", "right", "95 %", "score", "pass@k", "every order right"), rows)


def _accuracy(name: str, figures: Results) -> Sequence[str]:
    passes = ", ".join(f"@{k} {share:.1%}" for k, share in figures["pass_at"].items() if int(k) > 1)
    circular = figures["circular"]
    return (
        name,
        f"{figures['n_questions']:,}",
        f"{figures['n_rollouts']:,}",
        f"{figures['right']['mean']:.1%}",
        _interval(figures["right"]),
        f"{figures['value']['mean']:.3f}",
        passes,
        "" if circular is None else f"{circular['mean']:.1%} of {circular['n']}",
    )


def _who(record: Results) -> str:
    who = record["who"]
    sampling = ", ".join(f"{name} {value}" for name, value in who["sampling"].items() if value is not None)
    lines = [
        f"Policy: {who['policy']} `{_cell(who['model'])}`"
        + (f", revision `{who['revision'][:12]}`" if who["revision"] else ""),
        f"Protocol {who['protocol']}, mode {who['mode']}, at most {who['max_rounds']} code rounds, {who['rollouts']} "
        f"rollout(s) per question{'; ' + sampling if sampling else ''}.",
    ]
    for origin in record["asked"]:
        left_out = ", ".join(f"{count} {reason}" for reason, count in origin["left_out"].items())
        lines.append(
            f"Asked: {_cell(origin['name'])}, {origin['n']:,} questions"
            + (f"; left out: {left_out}" if left_out else "")
        )
    if record["unasked"]:
        reasons = ", ".join(f"{count} {reason}" for reason, count in record["unasked"].items())
        lines.append(f"Not applicable: {reasons}")
    return "  \n".join(lines)


def _warnings(record: Results) -> list[str]:
    if not record["n_failed"]:
        return []
    reasons = ", ".join(f"{count} {reason}" for reason, count in record["failures"].items())
    return [
        f"**Not complete:** {record['n_failed']} rollouts failed ({reasons}) and are in no figure. Run "
        "the same command again: only they are retried."
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
    return _table(("", "tool use", "code ratio", "pass rate", "lines", "code rounds a rollout", "tools"), rows)


def _faithfulness(results: Results) -> list[str]:
    rows = [
        (
            f"**{_cell(name)}**",
            who,
            counted.replace("_", " "),
            _of(figures["given_correct"]),
            _of(figures["over_all"]),
            f"{figures['faithful']:.1%}",
            f"{figures['unfaithful']:.1%}",
            f"{figures['no_picture']:.1%}",
        )
        for name, section in _sections(results)
        for who, counts in section["faithfulness"].items()
        for counted, figures in ((key, counts[key]) for key in ("as_codev", "parts_only"))
    ]
    if not rows:
        return []
    head = ("", "by", "counted", "given correct", "over all", "faithful", "unfaithful", "no image")
    return ["## Faithfulness", _table(head, rows), "![](faithfulness.png)"]


def _controls(results: Results) -> list[str]:
    rows = [
        (
            name.replace("_", " "),
            f"{figures['changed']['mean']:.1%} ({_interval(figures['changed'])})",
            _of(figures["changed_right"]),
            _of(figures["changed_wrong"]),
            str(figures["n_unanswered"]),
            str(figures["n"]),
        )
        for name, figures in results["all"]["controls"].items()
    ]
    if not rows:
        return []
    head = ("images", "answer changes", "was right", "was wrong", "no answer any more", "played")
    return ["## Does the answer depend on the images?", _table(head, rows), "![](controls.png)"]


def _lengths(results: Results) -> str:
    rows = []
    for name, section in _sections(results):
        spreads = {
            **section["lengths"],
            **{f"visual tokens, {key}": figures for key, figures in section["visual_tokens"].items()},
        }
        rows += [
            (
                f"**{_cell(name)}**",
                what.replace("_", " "),
                *(f"{figures[key]:,.1f}" for key in ("mean", "median", "p95", "most")),
            )
            for what, figures in spreads.items()
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


def _interval(figures: Results) -> str:
    return f"{figures['low']:.1%} – {figures['high']:.1%}" if figures["n"] else ""


def _of(figures: Results) -> str:
    return f"{figures['mean']:.1%} of {figures['n']}" if figures["n"] else "–"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns that are empty in every row are omitted."""
    rows = list(rows)
    columns = [place for place in range(len(head)) if not place or any(row[place] for row in rows)]
    lines = ["| " + " | ".join(row[place] for place in columns) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + " --- |" * len(columns), *lines[1:]])


def _cell(text: str) -> str:
    """Text for a table cell: one line, without cell separators."""
    return " ".join(str(text).replace("|", "\\|").replace("`", "'").split())


_WORDS = """\
- *right*: share of rollouts with a right answer; rollouts without an answer are wrong. Intervals: Wilson's, or the
  bootstrap over questions where a question has several rollouts or forms. *score*: as the benchmark counts (ANLS).
- *pass@k*: the chance that one of k answers is right, unbiased. *every order right*: questions that are right in every
  order of their choices.
- *tool use*: rollouts with code. *code ratio*: rollouts with executed code. *pass rate*: code rounds
  without error. *lines*: non-empty lines of a code round (FIGR §4.4). *no_op*: shows an image unchanged.
- *faithful*: any image in its observations shows the target. *given correct*: of the right answers (CodeV's text,
  figure 2). *over all*: faithful and right, of all rollouts (its algorithm 1 and table 5). *as codev*: any image
  counts, also the whole one; *parts only*: located parts of the question's image count."""
