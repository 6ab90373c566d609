"""A server that speaks what `huggingface_hub` says to the hub when it uploads: repositories, LFS, commits, on loopback.

Transfers are those of Git LFS; the hub's newer way (Xet) is switched off for the client. It stands for a hub that has
one user with the token ``TOKEN``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any

import yaml

from tests.json_endpoint import JsonHandler

TOKEN = "hf_of_the_tests"


class HubServer(ThreadingHTTPServer):
    """``repositories``: the files of each, by name; ``n_commits``: how many there were, with their ``messages``."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.objects: dict[str, bytes] = {}
        self.n_commits = 0
        self.messages: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which a client finds it."""
        offline = {"HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        return {"HF_ENDPOINT": self.url, "HF_TOKEN": TOKEN, **offline}


class _Requests(JsonHandler):
    server: HubServer

    def do_GET(self) -> None:
        repository = "/".join(self.path.split("?")[0].split("/")[3:5])
        files = self.server.repositories.get(repository, {})
        entries = [
            {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
            for name, data in files.items()
        ]
        self.reply(entries if "/tree/" in self.path else {"id": repository, "sha": "0" * 40, "siblings": []})

    def do_PUT(self) -> None:
        data = self._body()
        digest = self.path.rpartition("/")[2]
        assert hashlib.sha256(data).hexdigest() == digest
        self.server.objects[digest] = data
        self.reply({})

    def do_POST(self) -> None:
        body = self._body()
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            self.reply({"error": "Invalid credentials"}, status=401)
        elif self.path == "/api/repos/create":
            self._create(json.loads(body))
        elif self.path == "/api/validate-yaml":
            yaml.safe_load(json.loads(body)["content"].split("---")[1])
            self.reply({"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            self.reply({"files": [_upload_mode(file) for file in json.loads(body)["files"]]})
        elif self.path.endswith("/objects/batch"):
            self.reply({"transfer": "basic", "objects": [*map(self._transfer, json.loads(body)["objects"])]})
        else:
            self._commit("/".join(self.path.split("/")[3:5]), [json.loads(line) for line in body.splitlines()])

    def _create(self, fields: dict[str, Any]) -> None:
        name = f"{fields['organization']}/{fields['name']}"
        self.server.repositories.setdefault(name, {})
        self.reply({"url": f"{self.server.url}/datasets/{name}", "name": name, "id": name})

    def _transfer(self, entry: dict[str, Any]) -> dict[str, Any]:
        return {**entry, "actions": {"upload": {"href": f"{self.server.url}/objects/{entry['oid']}"}}}

    def _commit(self, repository: str, operations: list[dict[str, Any]]) -> None:
        files = self.server.repositories[repository]
        for operation in operations:
            value = operation["value"]
            if operation["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif operation["key"] == "lfsFile":
                files[value["path"]] = self.server.objects[value["oid"]]
            elif operation["key"] == "deletedFile":
                del files[value["path"]]
            elif operation["key"] == "header":
                self.server.messages.append(value["summary"])
        self.server.n_commits += 1
        commit = f"{self.server.url}/datasets/{repository}/commit/{self.server.n_commits:040}"
        self.reply({"commitUrl": commit, "commitOid": f"{self.server.n_commits:040}"})

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))


def _upload_mode(file: dict[str, Any]) -> dict[str, Any]:
    mode = "lfs" if file["path"].endswith(".parquet") else "regular"
    return {"path": file["path"], "uploadMode": mode, "shouldIgnore": False}


@contextmanager
def hub_server() -> Iterator[HubServer]:
    with HubServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
