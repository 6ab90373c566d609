"""Units that answers carry: what they measure, how large they are. Temperatures have no common zero and stay apart."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Unit:
    """``factor`` takes a number in this unit to the dimension's own; ``names`` are all its spellings."""

    dimension: str
    factor: Fraction
    names: tuple[str, ...]


def _unit(dimension: str, factor: str, names: str) -> Unit:
    return Unit(dimension, Fraction(factor), tuple(names.split("|")))


_ALL = (
    _unit("ratio", "1/100", "%|percent|per cent|percentage"),
    _unit("angle", "1", "°|deg|degree|degrees"),
    _unit("angle in radians", "1", "rad|radian|radians"),
    _unit("length", "1/1000", "mm|millimetre|millimetres|millimeter|millimeters"),
    _unit("length", "1/100", "cm|centimetre|centimetres|centimeter|centimeters"),
    _unit("length", "1", "m|metre|metres|meter|meters"),
    _unit("length", "1000", "km|kilometre|kilometres|kilometer|kilometers"),
    _unit("length in feet", "1/12", "in|inch|inches"),
    _unit("length in feet", "1", "ft|foot|feet"),
    _unit("length in feet", "5280", "mi|mile|miles"),
    _unit("area", "1/10000", "cm²|cm^2|square centimetres|square centimeters"),
    _unit("area", "1", "m²|m^2|square metres|square meters"),
    _unit("area in units", "1", "square units|units²|units^2"),
    _unit("units", "1", "unit|units"),
    _unit("volume", "1/1000", "ml|mL|millilitres|milliliters"),
    _unit("volume", "1", "l|L|litre|litres|liter|liters"),
    _unit("mass", "1/1000", "mg|milligrams"),
    _unit("mass", "1", "g|gram|grams"),
    _unit("mass", "1000", "kg|kilogram|kilograms"),
    _unit("time", "1", "s|sec|second|seconds"),
    _unit("time", "60", "min|minute|minutes"),
    _unit("time", "3600", "h|hr|hrs|hour|hours"),
    _unit("time", "86400", "day|days"),
    _unit("time", "604800", "week|weeks"),
    _unit("months", "1", "month|months"),
    _unit("months", "12", "year|years"),
    _unit("speed", "1", "km/h|kph|kmh|kilometres per hour|kilometers per hour"),
    _unit("speed in miles", "1", "mph|miles per hour"),
    _unit("dollars", "1", "$|usd|USD|dollar|dollars"),
    _unit("dollars", "1/100", "cent|cents"),
    _unit("euros", "1", "€|eur|EUR|euro|euros"),
    _unit("pounds", "1", "£|gbp|GBP"),
    _unit("yen", "1", "¥|jpy|JPY|yen"),
    _unit("celsius", "1", "°C|℃|degrees celsius"),
    _unit("fahrenheit", "1", "°F|℉|degrees fahrenheit"),
    _unit("pixels", "1", "px|pixel|pixels"),
)
UNITS = {name: unit for unit in _ALL for name in unit.names}
"""Every spelling of every unit. Case tells where it must (mL, L, m); words may be in any case."""
