"""The gallery: trajectories and rejects as one page for people, who would rather look than read parquet."""

from pipelines.gallery.page import Taken, Written, write_gallery

__all__ = ["Taken", "Written", "write_gallery"]
