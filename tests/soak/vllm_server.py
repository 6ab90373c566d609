"""An HTTP server with the interface of ``vllm serve`` as TRL 1.16's client uses it, in a process of its own.

    python -m tests.soak.vllm_server CHECKPOINT LOG            # prints its port

It writes scripted turns and answers with their log-probabilities under its own copy of the model, which changes only by
the weights that it is sent. LOG gets a JSON line per request. The first request for tokens is answered with 503; below
``/down`` one request after the second weights is answered with 400.
"""

import base64
import hashlib
import io
import json
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import prod
from pathlib import Path

import torch
from PIL import Image

from darkroom.train.models.loading import load_model, load_processor
from tests.train.scripted import FIRST_TURNS, OBSERVED, SECOND_TURN

CROPS, ADDS, _, GUESSES = FIRST_TURNS
OPENING = "<|im_start|>assistant\n"
BYTES = {"float32": 4}


class Engine:
    """Scripts, their log-probabilities, and the weights that arrive."""

    def __init__(self, checkpoint, log):
        self.model, self.processor = load_model(checkpoint).eval(), load_processor(checkpoint)
        self.tokenizer, self.images, self.log = self.processor.tokenizer, {}, log
        self.lock, self.n_updates, self.failures = threading.Lock(), 0, {"503", "400"}

    def note(self, **entry):
        with self.log.open("a") as lines:
            lines.write(json.dumps(entry) + "\n")

    def render(self, body):
        urls = [part["image_url"]["url"] for message in body["messages"] for part in message["content"]]
        hashes = []
        for data in (base64.b64decode(url.partition(",")[2]) for url in urls):
            hashes.append(hashlib.sha256(data).hexdigest())
            self.images[hashes[-1]] = Image.open(io.BytesIO(data)).convert("RGB")
        places = [
            {"offset": 1, "length": 1} for _ in hashes
        ]  # in the conversation that was rendered, not in the prompt
        self.note(path="render", n_images=len(hashes))
        return {"features": {"mm_hashes": {"image": hashes}, "mm_placeholders": {"image": places}, "kwargs_data": None}}

    def generate(self, ids, features, params):
        """The tokens up to a stop string or the limit, and the log-probability of each."""
        script = self.tokenizer(self.script(ids, params["seed"]))["input_ids"]
        turn = self.tokenizer.decode(ids).rpartition(OPENING)[2]
        written = next(n for n in range(len(script)) if self.tokenizer.decode(script[:n]) == turn)
        tokens = []
        for token in script[written:][: params["max_tokens"]]:
            tokens.append(token)
            if any(stop in self.tokenizer.decode(tokens) for stop in params.get("stop", ())):
                break
        images = [] if features is None else [self.images[name] for name in features["mm_hashes"]["image"]]
        for place in [] if features is None else features["mm_placeholders"]["image"]:
            run = ids[place["offset"] : place["offset"] + place["length"]]
            assert set(run) == {self.processor.image_token_id}
        self.note(
            path="generate",
            images=len(images),
            n_updates=self.n_updates,
            **{name: params[name] for name in ("seed", "temperature", "stop", "max_tokens")},
            text=self.tokenizer.decode(tokens),
        )
        return tokens, self.logprobs(ids, tokens, images, params)

    def script(self, ids, seed):
        text = self.tokenizer.decode(ids)
        turn = text.rpartition(OPENING)[2]
        if any(f"{mark}<|im_end|>" in text for mark in OBSERVED):
            return SECOND_TURN
        known = [script for script in (CROPS, ADDS, GUESSES) if script.startswith(turn)]
        return known[seed % len(known)]

    @torch.no_grad()
    def logprobs(self, ids, tokens, images, params):
        if params["temperature"] == 0.0:
            return [0.0] * len(tokens)
        row = torch.tensor([[*ids, *tokens]])
        inputs = dict(self.processor.image_processor(images=images, return_tensors="pt")) if images else {}
        types = (row == self.processor.image_token_id).int()
        with self.lock:
            logits = self.model(input_ids=row, mm_token_type_ids=types, **inputs).logits[0, len(ids) - 1 : -1]
        logits = logits / params["temperature"]
        for token, bias in params.get("logit_bias", {}).items():
            logits[:, int(token)] += bias
        return torch.log_softmax(logits, -1).gather(1, row[0, len(ids) :, None])[:, 0].tolist()

    def connect(self, info):
        self.n_updates = 0
        self.note(path="connect")
        for _ in range(200):
            try:
                self.group = socket.create_connection((info["master_address"], info["master_port"]))
                return
            except OSError:
                time.sleep(0.05)
        raise TimeoutError("the trainer does not listen")

    def update(self, info):
        own = dict(self.model.named_parameters())
        for name, kind, shape in zip(info["names"], info["dtype_names"], info["shapes"], strict=True):
            data = bytearray()
            while len(data) < prod(shape) * BYTES[kind]:
                data += self.group.recv(prod(shape) * BYTES[kind] - len(data))
            own.pop(name).data.copy_(torch.frombuffer(data, dtype=getattr(torch, kind)).view(shape))
        self.n_updates += 1
        self.note(path="update", n_tensors=len(info["names"]), missing=sorted(own))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path.removeprefix("/down").partition("?")[0]
        self.answer(
            {
                "/health": {},
                "/v1/models": {"data": [{"id": "tiny"}]},
                "/get_world_size": {"world_size": 1},
                "/server_info": {
                    "vllm_config": {
                        "weight_transfer_config": {"backend": "nccl"},
                        "model_config": {"logprobs_mode": "processed_logprobs"},
                    }
                },
            }[path]
        )

    def do_POST(self):
        engine, body = self.server.engine, self.body()
        path = self.path.removeprefix("/down")
        if path in ("/inference/v1/generate", "/v1/completions"):
            fails = "400" if self.path != path and engine.n_updates == 2 else "503"
            if fails in engine.failures:
                engine.failures.remove(fails)
                return self.answer({"error": "the engine is gone"}, status=int(fails))
        if path == "/v1/chat/completions/render":
            self.answer(engine.render(body))
        elif path == "/inference/v1/generate":
            tokens, logprobs = engine.generate(body["token_ids"], body["features"], body["sampling_params"])
            content = [
                {"token": f"token_id:{token}", "logprob": logprob, "top_logprobs": []}
                for token, logprob in zip(tokens, logprobs, strict=True)
            ]
            self.answer({"choices": [{"token_ids": tokens, "logprobs": {"content": content}}]})
        elif path == "/v1/completions":
            (ids,) = body["prompt"]
            tokens, logprobs = engine.generate(ids, None, body)
            told = {"tokens": [f"token_id:{token}" for token in tokens], "token_logprobs": logprobs}
            told["top_logprobs"] = [None] * len(tokens)
            self.answer({"choices": [{"prompt_token_ids": ids, "token_ids": tokens, "logprobs": told}]})
        elif path == "/init_weight_transfer_engine":
            engine.connect(body["init_info"])
            self.answer({})
        elif path == "/update_weights":
            engine.update(body["update_info"])
            self.answer({})
        elif path == "/reset_prefix_cache":
            self.answer({"success": True})
        else:
            assert path in ("/start_weight_update", "/finish_weight_update"), path
            self.answer({})

    def body(self):
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")

    def answer(self, content, status=200):
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def main(checkpoint, log):
    torch.set_num_threads(1)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.engine = Engine(checkpoint, Path(log))
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
