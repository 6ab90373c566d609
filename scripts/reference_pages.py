"""Writes the reference pages below ``docs/``: commands, reject reasons, flaws, families with their checks, layouts.

python -m scripts.reference_pages            # after a change of what they list; a test compares pages and code
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click
from typer.core import TyperArgument
from typer.main import get_command

from darkroom.assets.cli import app
from darkroom.pipelines.generation.recipes import Recipe, load_recipes
from darkroom.pipelines.inspection.explain import Meaning, meanings
from darkroom.pipelines.inspection.pages import markdown_table
from darkroom.pipelines.publishing.layouts import LAYOUTS, PROMPT_LAYOUTS
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.verification.checks import EVERY_FAMILY
from darkroom.pipelines.verification.checks.check import CheckFunction, JudgedCheck

DOCS = Path(__file__).parents[1] / "docs"
GENERATED = "This page is generated (`python -m scripts.reference_pages`).\n"
IMAGES = {"paths": "files", "bytes": "inside", "none": "none"}


def commands_page() -> str:
    """Every command with its arguments and options."""
    root = get_command(app)
    texts = [
        "# Commands\n",
        "`darkroom COMMAND --help` has examples and every option in full; `--debug` shows the traceback of an error, "
        f"`darkroom --version` the version. Spellings of the version before still work. {GENERATED}",
    ]
    assert isinstance(root, click.Group)
    context = click.Context(root)
    panel = ""
    for name in root.list_commands(context):
        command = root.commands[name]
        if (heading := str(getattr(command, "rich_help_panel", ""))) != panel:
            panel = heading
            texts.append(f"## {panel}\n")
        texts += [_command(path, inner) for path, inner in _leaves((name,), command)]
    return "\n".join(texts)


def _leaves(path: tuple[str, ...], command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield from _leaves((*path, name), command.commands[name])
    else:
        yield " ".join(path), command


def _command(path: str, command: click.Command) -> str:
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    arguments = [parameter for parameter in shown if isinstance(parameter, TyperArgument)]
    options = [parameter for parameter in shown if parameter not in arguments and parameter.name != "help"]
    line = " ".join(["darkroom", path, *(argument.make_metavar(click.Context(command)) for argument in arguments)])
    first = inspect.cleandoc(command.help or "").split("\n\n")[0].replace("\n", " ")
    names = ", ".join(f"`{option.opts[0]}`" for option in options)
    if len(options) > 25:
        names = f"{len(options)} options: `--help`, or as keys of a YAML file: `--config`"
    return f"**`{line}`** {first}" + (f"  \n{names}\n" if options else "\n")


def reasons_page() -> str:
    """Every reject reason with its meaning and remedy."""
    introduction = (
        "# Reject reasons\n\n"
        "A row that is not kept is a reject with its reason and evidence: `darkroom summary` counts them, `darkroom "
        "explain ROW` shows one, `darkroom gallery --rejects` all. Quarantined rows could not be judged and may pass "
        f"once the cause is gone; the others were judged. `not_applicable` is counted apart, as no reject. What to do "
        f"is in italics. {GENERATED}"
    )
    quarantined = {str(reason) for reason in Reason if reason.disposition == "quarantined"}
    return _meanings(introduction, "reject_reasons", lambda reason: " (quarantined)" if reason in quarantined else "")


def flaws_page() -> str:
    """Every flaw with its meaning and remedy."""
    introduction = (
        "# Flaws\n\nA flaw says why a check or judge rejected a row (`check_failed`); the evidence has what was "
        "measured. What to do is in italics. Which checks a family has: [families](families_reference.md). "
    )
    return _meanings(introduction + GENERATED, "flaws", lambda flaw: "")


def _meanings(introduction: str, file: str, remark: Callable[[str], str]) -> str:
    texts = [introduction]
    for group, reasons in meanings(file).items():
        lines = (f"- `{name}`{remark(name)}: {meaning.means}{_remedy(meaning)}\n" for name, meaning in reasons.items())
        texts.append(f"## {group[0].upper()}{group[1:]}\n\n{''.join(lines)}")
    return "\n".join(texts)


def _remedy(meaning: Meaning) -> str:
    remedy = re.sub(r"^Nothing; (.)", lambda first: first[1].upper(), meaning.do)
    return "" if meaning.do == "Nothing." else f" *{remedy}*"


def families_page() -> str:
    """Every family with the rows that it takes, and every check."""
    recipes = load_recipes()
    checks = {check.name: check for recipe in recipes.values() for check in recipe.checks}
    common = [check.name for check in EVERY_FAMILY]
    families = (
        (f"`{name}`", samples.in_words, samples.also, f"`{recipe.protocol.name}`", _own_checks(recipe, common))
        for name, recipe in recipes.items()
        for samples in (recipe.samples,)
    )
    described = (
        (f"`{name}`", f"{'judge: ' if isinstance(check, JudgedCheck) else ''}{_plain(check)}")
        for name, check in sorted(checks.items())
    )
    return "\n".join(
        [
            "# Families and checks\n",
            f"What the families do is on the cards of their datasets; [add one](families.md). {GENERATED}",
            "## Families\n",
            "Rows without the facts under *samples* are not applicable: a source's mapping sets images, boxes and the "
            "category (`category: {value: OCR}`), and `darkroom sources check` counts them. Others are unsuitable "
            f"where the next column is not true of them. Every family also has the checks {', '.join(common)}.\n",
            markdown_table(("family", "samples", "suitable where", "protocol", "checks"), families),
            "\n## Checks\n",
            markdown_table(("check", "what it asks"), described) + "\n",
        ]
    )


def _own_checks(recipe: Recipe, common: Sequence[str]) -> str:
    return ", ".join(check.name for check in recipe.checks if check.name not in common)


def _plain(check: CheckFunction) -> str:
    return re.sub(r"``(.+?)``", r"`\1`", check.description)


def layouts_page() -> str:
    """Every layout with its trainer."""
    rows = (
        (f"`{layout.name}`", layout.trainer, layout.description, IMAGES[layout.media])
        for layout in [*LAYOUTS.values(), *PROMPT_LAYOUTS.values()]
    )
    return "\n".join(
        [
            "# List of layouts\n",
            "`darkroom export DATASET --layout LAYOUT`; what each can express: [layouts](layouts.md). The last "
            f"{len(PROMPT_LAYOUTS)} are for the dataset `rl`. {GENERATED}",
            markdown_table(("layout", "trainer", "what it is", "images"), rows) + "\n",
        ]
    )


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "reject_reasons.md": reasons_page,
    "flaws.md": flaws_page,
    "families_reference.md": families_page,
    "layouts_reference.md": layouts_page,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
