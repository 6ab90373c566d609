"""The header of every frame between host and session; read by both sides."""

import struct

HEADER = struct.Struct("<QI")
"""The call's nonce (64 random bits) and the length of the JSON or code that follows."""
