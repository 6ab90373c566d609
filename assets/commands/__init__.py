"""The commands, a module per group of ``assets/commands.yaml``, and the completion of their values in the shell."""

from collections.abc import Iterable

from darkroom.pipelines.command_line.console import open_workspace
from darkroom.pipelines.publishing.layouts import LAYOUTS, PROMPT_LAYOUTS


def layouts(incomplete: str) -> list[str]:
    return _beginning([*LAYOUTS, *PROMPT_LAYOUTS], incomplete)


def families(incomplete: str) -> list[str]:
    """Families of trajectories, the user's own as well."""
    from darkroom.pipelines.generation.released import all_recipes

    return _beginning(all_recipes(), incomplete)


def judges(incomplete: str) -> list[str]:
    from darkroom.pipelines.generation.judge_calibration import judged_checks

    return _beginning(judged_checks(), incomplete)


def added_sources(incomplete: str) -> list[str]:
    from darkroom.pipelines.sources.catalog import Catalog

    with open_workspace() as workspace:
        return _beginning(Catalog(workspace.sources).uses(), incomplete)


def public_datasets(incomplete: str) -> list[str]:
    """Public datasets with mapped columns."""
    from darkroom.pipelines.sources.catalog import public_sources

    return _beginning(public_sources(), incomplete)


def datasets(incomplete: str) -> list[str]:
    """Families, `all` and `rl`; a folder is completed by the shell."""
    return _beginning(["all", "rl"], incomplete) + families(incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]
