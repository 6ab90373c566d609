"""Settings from environment variables: one model per thing, from which launchpads, command lines and docs are derived.

    class RunSettings(EnvironmentSettings):
        on: str = setting("ON", "here")
        n_gpus: int = setting("GPUS", 0, ge=0)

    RunSettings.read(os.environ, "DARKROOM_RUN_")               # DARKROOM_RUN_ON, DARKROOM_RUN_GPUS
    RunSettings.variables("DARKROOM_RUN_")["n_gpus"]            # "DARKROOM_RUN_GPUS"

The text below a field describes it. An empty variable counts as unset. Constructing a model in code reads no variable,
so that a run's configuration alone decides; only ``read`` does.
"""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from darkroom.sandbox.errors import UserError


def setting(suffix: str | None, default: Any, *, formerly: str | None = None, **constraints: Any) -> Any:
    """A field that the variable ``<prefix><suffix>`` sets; None for a field that no variable sets. ``formerly``: the
    suffix of earlier versions, which counts where today's is unset."""
    extra: dict[str, Any] = {"variable_suffix": suffix, "former_suffix": formerly}
    return Field(default, json_schema_extra=extra, **constraints)


class EnvironmentSettings(BaseModel):
    """Base of all settings models; fields are declared with ``setting``, each with a text below it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    @classmethod
    def variables(cls, prefix: str) -> dict[str, str]:
        return cls._variables(prefix, "variable_suffix")

    @classmethod
    def _variables(cls, prefix: str, kind: str) -> dict[str, str]:
        extras = {name: field.json_schema_extra for name, field in cls.model_fields.items()}
        suffixes = {name: extra.get(kind) for name, extra in extras.items() if isinstance(extra, dict)}
        return {name: f"{prefix}{suffix}" for name, suffix in suffixes.items() if suffix is not None}

    @classmethod
    def variables_set(cls, environment: Mapping[str, str], prefix: str) -> dict[str, str]:
        """The variable that sets each field; a former name counts where today's is unset."""
        spellings = [cls._variables(prefix, kind) for kind in ("former_suffix", "variable_suffix")]
        return {field: name for names in spellings for field, name in names.items() if environment.get(name)}

    @classmethod
    def read(
        cls,
        environment: Mapping[str, str],
        prefix: str,
        *fallbacks: str,
        error: type[Exception] = UserError,
        **defaults: Any,
    ) -> Self:
        """The settings of ``prefix``; what it leaves unset comes from the ``fallbacks`` in order, then ``defaults``.
        Raises ``error`` for the first value that does not fit its field, and for a variable that no field has."""
        variables: dict[str, str] = {}
        for each in reversed((prefix, *fallbacks)):
            cls._require_known(environment, each, error)
            variables |= cls.variables_set(environment, each)
        try:
            return cls(**{**defaults, **{field: environment[name] for field, name in variables.items()}})
        except ValidationError as invalid:
            first = invalid.errors()[0]
            name = variables.get(str(first["loc"][0]), prefix)
            raise error(f"{name} is {first['input']!r}: {first['msg']}") from invalid

    @classmethod
    def _require_known(cls, environment: Mapping[str, str], prefix: str, error: type[Exception]) -> None:
        """Refuse misspelt variables; those that begin with ``DARKROOM`` alone are of many models."""
        kinds = ("former_suffix", "variable_suffix")
        known = [name for kind in kinds for name in cls._variables(prefix, kind).values()]
        begins = f"{prefix.rstrip('_')}_"
        for name in environment if "_" in prefix else ():
            if name.startswith(begins) and name not in known and environment[name]:
                [meant] = get_close_matches(name, known, 1, cutoff=0)
                raise error(f"{name} is no setting. Did you mean {meant}? docs/settings.md lists all")


class WorkspaceSettings(EnvironmentSettings):
    """Locations of a workspace's data (``DARKROOM_HOME`` and others); empty values are folders below ``home``."""

    home: str = setting("_HOME", "data")
    """The workspace, a folder or a URL (`s3://bucket/prefix`, `gs://`, `az://`): tables, datasets, images, reports."""
    local: Path | None = setting("_LOCAL", None)
    """Folder for what must be local: checkpoints, annotation, Dagster, caches; default: the home, `data` for a URL."""
    images: str = setting("_IMAGES", "")
    """Image store, any fsspec URL; default: `images/` below the home."""
    image_cache_gb: float = setting("_IMAGE_CACHE_GB", 10.0, ge=0)
    """Of a remote image store, the local cache in GB (`image_cache/`); 0: none."""
    ledger: str = setting("_LEDGER", "")
    """URL of the ledger, `postgresql+psycopg://…` for teams; default: SQLite in the local folder."""
    environments: Path | None = setting("_ENVIRONMENTS", None)
    """Folder of vLLM and Label Studio, which workspaces may share; default: `environments/` in the local folder."""
    ships_unlicensed: bool = setting("_SHIP_UNLICENSED", False)
    """Ship rows of unknown licence, too."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The settings that ``DARKROOM_HOME`` and its siblings hold."""
        return cls.read(environment, "DARKROOM")
