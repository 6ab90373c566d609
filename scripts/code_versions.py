"""Raise the versions of code that decides rows, after a change of what it decides: the next run makes its tables again.

    python -m scripts.code_versions darkroom.pipelines.verification darkroom.pipelines.generation.recipes.crop

A name without a version begins with 1; names are modules, or packages with all below them. ``tests/code_data.json``
gets the digests of their prompts, word lists and templates, whose edits need a version in any case.
"""

import json
import sys
from pathlib import Path

from darkroom.pipelines.records.digest import digest_files
from darkroom.pipelines.storage.stage_runs import ROOT, VERSIONS, code_versions

DATA = Path(__file__).parents[1] / "tests" / "code_data.json"
_SUFFIXES = frozenset({".css", ".jinja", ".json", ".md", ".sql", ".toml", ".yaml"})


def data_digests() -> dict[str, str]:
    """The digests of what is not Python in every package that has a version."""
    found = {}
    for name in code_versions():
        place = ROOT.joinpath(*name.split("."))
        paths = [path for path in place.rglob("*") if path.suffix in _SUFFIXES and path.name != VERSIONS.name]
        found |= {name: digest_files(paths, ROOT)[:16]} if paths else {}
    return found


def main(*names: str) -> None:
    for name in names:
        place = ROOT.joinpath(*name.split("."))
        if not (place / "__init__.py").exists() and not place.with_suffix(".py").exists():
            sys.exit(f"{name} is no module or package of {ROOT / 'darkroom'}")
    found, recorded = data_digests(), json.loads(DATA.read_text())
    changed = [name for name in sorted(found) if found[name] != recorded.get(name)]
    if missing := [name for name in changed if not any(f"{raised}.".startswith(f"{name}.") for raised in names)]:
        sys.exit(f"prompts, word lists or templates of {', '.join(missing)} have changed, too: raise their versions")
    versions = code_versions()
    versions |= {name: versions.get(name, 0) + 1 for name in names}
    VERSIONS.write_text(json.dumps(versions, indent=1, sort_keys=True) + "\n")
    DATA.write_text(json.dumps(data_digests(), indent=1, sort_keys=True) + "\n")
    for name in names:
        print(f"{name}: {versions[name]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
