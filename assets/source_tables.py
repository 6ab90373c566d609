"""The table of the sources that are known, for a terminal."""

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from pipelines.sources import SourceConfig
from pipelines.sources.public import needs_folder


def print_sources(console: Console, public: Mapping[str, SourceConfig], added: Mapping[str, SourceConfig]) -> None:
    """Public datasets by name, then what a user added besides them."""
    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True, min_width=max(map(len, [*public, *added]), default=0))  # it is typed again
    for column in ("hub", "rows", "questions", "licence", "from", "added"):
        table.add_column(column, overflow="fold")
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
