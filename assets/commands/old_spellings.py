"""Commands and options of earlier versions, which stay as hidden aliases for one release, by today's names."""

from darkroom.pipelines.command_line.groups import Aliases

OLD_SPELLINGS = Aliases(
    commands={
        "replay": "audit --only replay",
        "conformance": "audit --only encoding",
        "home": "ui --prepare",
        "annotate record": "annotate export",
        "annotate take-in": "annotate import",
        "annotate payments": "annotate report --payments",
    },
    options={
        "agent serve": {"--most-mb": "--max-request-mb"},
        "audit": {"--limit": "--rows", "--least": "--min-match", "--report": "--out"},
        "gallery": {"--limit": "--rows", "--beside": "--compare-with"},
        "ingest": {"--videos": "--video"},
        "inspect-mask": {"--html": "--out"},
        "sandbox serve": {"--most-mb": "--max-request-mb"},
    },
)
