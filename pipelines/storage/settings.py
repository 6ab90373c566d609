"""Settings from environment variables: one model per thing, from which launchpads, command lines and docs are derived.

    class LauncherSettings(EnvironmentSettings):
        kind: Literal["local", "ray"] = setting("", "local", description="Where training runs.")
        n_gpus: int = setting("_GPUS", 0, ge=0, description="GPUs to request from a cluster.")

    LauncherSettings.read(os.environ, "DARKROOM_LAUNCH")        # DARKROOM_LAUNCH, DARKROOM_LAUNCH_GPUS
    LauncherSettings.variables("DARKROOM_LAUNCH")["n_gpus"]     # "DARKROOM_LAUNCH_GPUS"

An empty variable counts as unset. Constructing a model in code reads no variable, so that a run's configuration alone
decides; only ``read`` does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

_SUFFIX = "variable_suffix"


class SettingsError(Exception):
    """A variable's value is wrong: names the variable, what was expected and what was found."""


def setting(suffix: str | None, default: Any, *, description: str, **constraints: Any) -> Any:
    """A field that the variable ``<prefix><suffix>`` sets; None for a field that no variable sets."""
    return Field(default, description=description, json_schema_extra={_SUFFIX: suffix}, **constraints)


class EnvironmentSettings(BaseSettings):
    """Base of all settings models; fields are declared with ``setting``."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The arguments alone (see the module's docstring)."""
        return (init_settings,)

    @classmethod
    def variables(cls, prefix: str) -> dict[str, str]:
        """The environment variable of each field that has one."""
        suffixes = {name: _suffix(field) for name, field in cls.model_fields.items()}
        return {name: f"{prefix}{suffix}" for name, suffix in suffixes.items() if suffix is not None}

    @classmethod
    def read(cls, environment: Mapping[str, str], prefix: str, *fallbacks: str, **defaults: Any) -> Self:
        """The settings of ``prefix``; what it leaves unset comes from the ``fallbacks`` in order, then ``defaults``.

        Raises ``SettingsError`` for the first value that does not fit its field.
        """
        source = EnvironmentSource(cls, environment, (prefix, *fallbacks))
        try:
            return cls(**{**defaults, **source()})
        except ValidationError as error:
            first = error.errors()[0]
            name = source.variable_of(str(first["loc"][0])) or prefix
            raise SettingsError(f"{name} is {first['input']!r}: {first['msg']}") from error


class EnvironmentSource(PydanticBaseSettingsSource):
    """Reads each field from the first of its variables that is set; ``prefixes`` are tried in order."""

    def __init__(
        self, settings_cls: type[EnvironmentSettings], environment: Mapping[str, str], prefixes: tuple[str, ...]
    ) -> None:
        super().__init__(settings_cls)
        self._environment = environment
        self._variables = [settings_cls.variables(prefix) for prefix in prefixes]

    def variable_of(self, field: str) -> str | None:
        """The variable that sets ``field``; None where none is set."""
        names = (variables[field] for variables in self._variables if field in variables)
        return next((name for name in names if self._environment.get(name)), None)

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """The text of the variable, the field's name, and that the text is no JSON."""
        variable = self.variable_of(field_name)
        return (None if variable is None else self._environment[variable]), field_name, False

    def __call__(self) -> dict[str, Any]:
        """The texts by field, without fields that no variable sets."""
        texts = {name: self.get_field_value(field, name)[0] for name, field in self.settings_cls.model_fields.items()}
        return {name: text for name, text in texts.items() if text is not None}


def _suffix(field: FieldInfo) -> str | None:
    extra = field.json_schema_extra
    suffix = extra.get(_SUFFIX) if isinstance(extra, dict) else None
    return suffix if isinstance(suffix, str) else None


class WorkspaceSettings(EnvironmentSettings):
    """Where a workspace stores its data (``DARKROOM_HOME`` and others); empty values are folders below ``home``."""

    home: Path = setting("_HOME", Path("data"), description="Folder of the workspace: tables, datasets, checkpoints.")
    images: str = setting("_IMAGES", "", description="Image store, any fsspec URL; default: `images/` below the home.")
    ledger: str = setting(
        "_LEDGER",
        "",
        description="URL of the ledger, `postgresql+psycopg://…` for teams; default: SQLite below the home.",
    )
    environments: Path | None = setting(
        "_ENVIRONMENTS",
        None,
        description="Folder where vLLM and Label Studio are installed, which several workspaces may share; default: "
        "`environments/` below the home.",
    )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The settings that ``DARKROOM_HOME`` and its siblings hold."""
        return cls.read(environment, "DARKROOM")
