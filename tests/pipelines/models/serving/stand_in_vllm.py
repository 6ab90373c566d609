"""Stands in for the program ``vllm`` where there is no GPU: it takes its arguments, loads for a moment, answers, ends.

Only processes and HTTP are like the real one: a worker process that holds the "GPU", ``/health`` that is not there
while it loads, ``/v1/models`` with the served name. Options of its own, after ``--``: ``--die`` ends it while it
loads, ``--deaf`` makes worker and server ignore SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

parser = argparse.ArgumentParser()
parser.add_argument("command", choices=["serve"])
parser.add_argument("model")
parser.add_argument("--host")
parser.add_argument("--port", type=int)
parser.add_argument("--served-model-name")
parser.add_argument("--max-model-len")
parser.add_argument("--limit-mm-per-prompt", type=json.loads)
parser.add_argument("--enable-prefix-caching", action="store_true")
parser.add_argument("--generation-config")
parser.add_argument("--dtype")
parser.add_argument("--enforce-eager", action="store_true")
parser.add_argument("--no-enable-chunked-prefill", action="store_true")
parser.add_argument("--die", action="store_true")
parser.add_argument("--deaf", action="store_true")
given = parser.parse_args()

if given.deaf:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(f"loading {given.model} with {vars(given)}", flush=True)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
if given.die:
    print("ValueError: no memory left for the KV cache", file=sys.stderr, flush=True)
    sys.exit(1)
time.sleep(0.3)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = self.path in ("/health", "/v1/models")
        body = json.dumps({"data": [{"id": given.served_model_name}]}).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer((given.host, given.port), Handler).serve_forever()
