"""The table of the sources that are known, for a terminal."""

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from pipelines.sources import SourceConfig
from pipelines.sources.public import needs_folder


def print_sources(console: Console, public: Mapping[str, SourceConfig], added: Mapping[str, SourceConfig]) -> None:
    """Public datasets by name, then what a user added besides them."""
    table = Table("name", "hub", "rows", "questions", "licence", "from", "added", box=None, pad_edge=False)
    for name, config in public.items():
        about = config.about
        if about is not None:
            where = "files" if needs_folder(config) else "hub"
            cells = (about.hub, about.rows, about.asks, config.license or "not stated", where)
            table.add_row(name, *cells, "yes" if name in added else "")
    for name, config in added.items():
        if name not in public:
            table.add_row(name, config.path, "", "", config.license or "not stated", config.kind, "yes")
    console.print(table, highlight=False)
    console.print("Next: darkroom sources show NAME, darkroom sources add NAME", highlight=False)
