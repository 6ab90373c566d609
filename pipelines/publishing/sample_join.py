"""The samples of many partitions by id, for rows that come partition by partition."""

from array import array
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.digest import key64
from darkroom.pipelines.storage.row_files import KeyedSpill
from darkroom.pipelines.storage.tables import TableKey, Tables


class SampleJoin:
    """``join[sample_id]``; of a sample that several partitions hold, the last one's.

    In memory are the samples of one partition and 12 bytes of every sample. Those that several partitions hold wait on
    disk, so that no order of look-ups reads a partition again and again.
    """

    def __init__(self, tables: Tables, partitions: Sequence[str]) -> None:
        self._tables, self._partitions = tables, partitions
        keys, places = array("Q"), array("i")
        for place, partition in enumerate(partitions):
            own = [key64(sample_id) for (sample_id,) in tables.columns(TableKey(SAMPLES, partition), "sample_id")]
            keys.extend(own)
            places.extend([place] * len(own))
        self._keys, first, counts = np.unique(np.frombuffer(keys, np.uint64), return_index=True, return_counts=True)
        self._places = np.frombuffer(places, np.int32)[first]
        self._repeated = KeyedSpill(tables.scratch)
        self._spill_repeated(set(self._keys[counts > 1].tolist()))
        self._samples_at = lru_cache(maxsize=1)(self._read)

    def __getitem__(self, sample_id: str) -> Sample:
        """Raises ``KeyError`` for a sample that no partition holds."""
        key = key64(sample_id)
        repeated: Sample | None = self._repeated.get(key)
        if repeated is not None:
            return repeated
        place = int(np.searchsorted(self._keys, np.uint64(key)))
        if place == len(self._keys):
            raise KeyError(sample_id)
        return self._samples_at(int(self._places[place]))[sample_id]

    def _read(self, place: int) -> dict[str, Sample]:
        rows = self._tables.stream(TableKey(SAMPLES, self._partitions[place]), Sample)
        return {sample.sample_id: sample for sample in rows}

    def _spill_repeated(self, repeated: set[int]) -> None:
        for place in range(len(self._partitions)) if repeated else ():
            for sample_id, sample in self._read(place).items():
                if (key := key64(sample_id)) in repeated:
                    self._repeated.add(key, sample)
