"""Protocols: how a policy writes code and answers, and how observations are wrapped for it."""

from pipelines.protocols.base import Malformed, ParsedTurn, Protocol, render
from pipelines.protocols.stream import TurnStream
from pipelines.protocols.thyme import Thyme

PROTOCOLS: dict[str, Protocol] = {protocol.name: protocol for protocol in (Thyme(),)}
"""Every protocol by its name, as trajectories record it."""

__all__ = ["PROTOCOLS", "Malformed", "ParsedTurn", "Protocol", "Thyme", "TurnStream", "render"]
