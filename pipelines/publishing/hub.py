"""A shipped dataset as a repository of the Hugging Face hub: which files go there, whether the card holds, the upload.
The hub validates a card's YAML before a commit. Checked here, without a network, is what it cannot know: that the
dataset is complete and that the card says of the files what they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from darkroom.pipelines.publishing.dataset_reader import dataset_files, marker_facts, n_rows_of, read_files, split_of
from darkroom.pipelines.publishing.manifest import MANIFEST
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.records.samples import LICENCE_REMEDY, is_licensed
from darkroom.pipelines.storage.row_files import footer
from darkroom.sandbox.errors import UserError

_CARD = "README.md"


def check_repository(name: str) -> None:
    """Raises ``UserError`` for what is no OWNER/NAME of the hub."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # documented, but not in __all__

    reason = "" if "/" in name else "it has no owner"
    try:
        validate_repo_id(name)
    except HFValidationError as error:
        reason = str(error)
    if reason:
        raise UserError(f"{name} is no repository of the hub ({reason}): name it OWNER/NAME")


@dataclass(frozen=True, slots=True)
class HubDataset:
    """A local folder with one dataset."""

    folder: Path

    def files(self) -> dict[str, int]:
        """Sizes of the uploaded files by name, card first. Hidden files stay."""
        paths = [self.folder / _CARD, self.folder / MANIFEST, *dataset_files(self.folder)]
        return {path.name: path.stat().st_size for path in paths if path.is_file()}

    @property
    def digest(self) -> str:
        """The manifest's digest, by which ``darkroom audit --digest`` finds what changed after it was published."""
        return digest_bytes((self.folder / MANIFEST).read_bytes())

    def rows(self) -> dict[str, int]:
        return {split: n_rows_of(files) for split, files in groupby(dataset_files(self.folder), split_of)}

    def problems(self) -> list[str]:
        """Why hub or reader would misread the dataset, if so. Raises ``StorageError`` for a file that is damaged."""
        if not dataset_files(self.folder) or not marker_facts(self.folder):
            return [f"{self.folder} holds no complete dataset: materialise it again"]
        if not (self.folder / _CARD).is_file():
            return [f"there is no {_CARD}"]
        if not (self.folder / MANIFEST).is_file():
            return [f"there is no {MANIFEST}, which earlier versions did not write: materialise it again"]
        return list(self._problems_of_card())

    def _problems_of_card(self) -> Iterator[str]:
        from datasets import Features
        from datasets.info import DatasetInfosDict
        from huggingface_hub import DatasetCard
        from yaml import YAMLError

        try:
            data = DatasetCard.load(self.folder / _CARD).data
            [info] = DatasetInfosDict.from_dataset_card_data(data).values()
        except (ValueError, TypeError, KeyError, YAMLError) as error:
            yield f"the YAML of {_CARD} cannot be read: {' '.join(str(error).split())}"
            return
        for name in ("license", "size_categories", "task_categories"):
            if not data.get(name):
                yield f"the card has no `{name}`"
        if data.get("license") == "unknown":
            yield "the licence is unknown: state it in the source's file, and materialise the dataset again"
        rows = read_files(dataset_files(self.folder), only=("license",))
        if not marker_facts(self.folder).get("n_unlicensed") and not all(is_licensed(row["license"]) for row in rows):
            yield f"rows of unknown licence, which no longer ship: {LICENCE_REMEDY}, and materialise the dataset again"
        for path in dataset_files(self.folder):
            if Features.from_arrow_schema(footer(path).schema.to_arrow_schema()) != info.features:
                yield f"the columns of {path.name} are not those of the card"

    def upload(self, repository: str, *, private: bool) -> str:
        """Commit all files, in a new repository if need be; old files go. Returns its URL; raises ``UserError``."""
        from httpx2 import HTTPError, TransportError
        from huggingface_hub import HfApi

        hub = HfApi(library_name="darkroom-toolkit")
        try:
            hub.create_repo(repository, repo_type="dataset", private=private or None, exist_ok=True)
            commit = hub.upload_folder(
                repo_id=repository,
                repo_type="dataset",
                folder_path=self.folder,
                allow_patterns=list(self.files()),
                delete_patterns="*.parquet",
                commit_message=f"{self.folder.name}: {sum(self.rows().values()):,} rows, manifest {self.digest}",
            )
        except (HTTPError, OSError, ValueError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            mend = "log in with `hf auth login`, or set HF_TOKEN to a token that may write there"
            if isinstance(error, TransportError):
                mend = f"check the network and HF_ENDPOINT ({hub.endpoint})"
            elif isinstance(error, ValueError):
                mend = "mend what it names"
            raise UserError(f"{repository} was not published ({reason}): {mend}") from error
        return str(commit.commit_url)
