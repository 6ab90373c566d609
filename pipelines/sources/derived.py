"""Columns that rows do not have: one text for all rows, or one for each value of a column.

    category: {value: OCR}
    category: {column: task, map: {chart: OCR, plot: OCR}, default: object}

``Columns`` reads them wherever a name of a column may stand alone, under a name that says so.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, model_serializer, model_validator

from darkroom.pipelines.records.reject_reasons import Reason, RowError

_FIELDS = ("category", "license", "question", "answer")


def _by_text(texts: Any) -> Any:
    return {str(value): text for value, text in texts.items()} if isinstance(texts, Mapping) else texts


class DerivedColumn(BaseModel, extra="forbid", frozen=True):
    """A constant ``value``, or the text that ``map`` has for what is in ``column``; ``default``: for any other."""

    value: str | None = None
    column: str | None = None
    map: Annotated[dict[str, str], BeforeValidator(_by_text)] = {}
    default: str | None = None

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.value is None) == (self.column is None) or (self.value is None) == (not self.map):
            raise ValueError("expected {value: TEXT}, or {column: NAME, map: {VALUE: TEXT, …}}")
        return self

    def text(self, content: Any) -> str:
        """The text for a row whose column has this content. Raises ``RowError`` for one that ``map`` lacks."""
        if self.value is not None:
            return self.value
        text = self.map.get(str(content), self.default)
        if text is None:
            there = ", ".join(self.map)
            evidence = f"column {self.column!r} is {content!r}, which `map` lacks ({there}): name it or `default`"
            raise RowError(Reason.MALFORMED_ROW, evidence)
        return text


class DerivingColumns(BaseModel, frozen=True):
    """Fields of a mapping of which some may be derived. In YAML a rule stands in its field; here, the rule's name."""

    derived: dict[str, DerivedColumn] = {}
    """The rules by the names under which rows get their texts."""

    @model_validator(mode="before")
    @classmethod
    def _name_rules(cls, fields: Any) -> Any:
        rules = {name: fields[name] for name in _FIELDS if isinstance(fields.get(name), Mapping)}
        titles = {name: f"{name} of the mapping" for name in rules}
        return {**fields, **titles, **({"derived": {titles[name]: rules[name] for name in rules}} if rules else {})}

    @model_serializer(mode="wrap")
    def _with_rules(self, serialize: Callable[[Self], dict[str, Any]]) -> dict[str, Any]:
        fields = serialize(self)
        rules = fields.pop("derived", {})
        return {name: rules.get(value, value) if isinstance(value, str) else value for name, value in fields.items()}

    def with_derived(
        self, row: Mapping[str, Any], value_at: Callable[[Mapping[str, Any], str], Any]
    ) -> Mapping[str, Any]:
        """The row with its derived columns. Raises ``RowError``."""
        texts = {name: rule.text(value_at(row, rule.column or "")) for name, rule in self.derived.items()}
        return {**row, **texts} if texts else row

    def sources_of(self, name: str) -> tuple[str, ...]:
        """The columns behind a name: itself, that of its rule, or none where a rule is a constant."""
        rule = self.derived.get(name)
        return (name,) if rule is None else (rule.column,) if rule.column else ()
