"""Where an asset's code is: its page names file and line, and opens them in the editor of who looks at it."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg

_KEY = "dagster/code_references"


def code_references(work: Callable[..., Any], *files: Path) -> dict[str, dg.CodeReferencesMetadataValue]:
    """The function that does an asset's work, and files that define what it does."""
    code = work.__code__
    with _beta():
        references: list[Any] = [dg.LocalFileCodeReference(file_path=code.co_filename, line_number=code.co_firstlineno)]
        references += [dg.LocalFileCodeReference(file_path=str(file)) for file in files]
        return {_KEY: dg.CodeReferencesMetadataValue(code_references=references)}


def with_code_references(assets: Iterable[dg.AssetsDefinition]) -> Iterator[dg.AssetsDefinition]:
    """Those that name no code refer to their own function."""
    for asset in assets:
        if all(_KEY in metadata for metadata in asset.metadata_by_key.values()):
            yield asset
        else:
            with _beta():
                referring: Any = dg.with_source_code_references([asset])
            yield from referring


@contextmanager
def _beta() -> Iterator[None]:
    """Dagster warns users of what its developers chose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        yield
