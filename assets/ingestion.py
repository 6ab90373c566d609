"""Taking a user's own source in: written to the catalog, read once, and told what came of its rows."""

from rich.console import Console

from assets.summary import print_intake
from pipelines import engine
from pipelines.sources import Catalog, SourceConfig, partition_key
from pipelines.sources.catalog import check_name
from pipelines.tables import TableKey
from pipelines.workspace import Workspace


def ingest_folder(console: Console, name: str, config: SourceConfig) -> None:
    """Adds the source ``name`` and materialises its samples. Raises ``SourceFault`` when it cannot be read at all."""
    with Workspace.from_environment() as workspace:
        check_name(name)
        catalog = Catalog(workspace.sources)
        source = config.open(name)
        keys = [TableKey(engine.SAMPLES, partition_key(name, shard)) for shard in range(config.n_shards)]
        for shard, key in enumerate(keys):
            with console.status(f"{key.partition} …"):
                engine.intake(workspace, source, shard, key.partition)
        path = catalog.add(name, config)
        print_intake(console, workspace, keys)
        console.print(f"Source: {path}", highlight=False, soft_wrap=True)
        console.print(f"Next:   darkroom materialize {name}   (an open UI shows it after a reload)", highlight=False)
