"""Protocols: how a policy writes code and answers, and how observations are wrapped for it."""

from pipelines.protocols.base import Malformed, ParsedTurn, Protocol, render
from pipelines.protocols.pyvision import PyVision
from pipelines.protocols.stream import TurnStream
from pipelines.protocols.thyme import Thyme
from pipelines.protocols.tool_call import ToolCall

PROTOCOLS: dict[str, Protocol] = {protocol.name: protocol for protocol in (Thyme(), PyVision(), ToolCall())}
"""Every protocol by its name, as trajectories record it."""

__all__ = ["PROTOCOLS", "Malformed", "ParsedTurn", "Protocol", "PyVision", "Thyme", "ToolCall", "TurnStream", "render"]
