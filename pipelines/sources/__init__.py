"""Sources of samples: the embedded one, and those that users add (files, Hugging Face datasets) by a column mapping."""

from pipelines.sources.base import BadRow, Source, SourceRow
from pipelines.sources.catalog import Catalog, SourceConfig, partition_key
from pipelines.sources.faults import SourceFault

__all__ = ["BadRow", "Catalog", "Source", "SourceConfig", "SourceFault", "SourceRow", "partition_key"]
