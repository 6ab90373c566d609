"""The client of endpoints: the body that is sent, and what it takes from the environment."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import json
import ssl

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, strategies as st

from darkroom.pipelines.models.messages import ImagePart, Message, Text
from darkroom.pipelines.models.policies import Endpoint, OpenAIPolicy, PolicyError, PolicyUnavailable, http_client
from darkroom.pipelines.models.policies.http_client import Body
from darkroom.pipelines.records import ImageRef

URLS = {str(n): b"data:image/png;base64," + b"QUJD" * n for n in (0, 1, 100_000)}
texts = st.text(st.characters(exclude_categories=("Cs",)))
parts = st.sampled_from([ImagePart(ImageRef(sha256, 10, 10, "RGB", "PNG")) for sha256 in URLS])
said = st.builds(Message, st.just("user"), st.lists(st.builds(Text, texts) | parts, max_size=4).map(tuple))
others = st.builds(Message, st.sampled_from(["system", "assistant"]), st.lists(st.builds(Text, texts)).map(tuple))
fields = st.dictionaries(texts.filter(lambda name: name != "messages"), st.none() | texts | st.integers(), max_size=3)


def plain(part):
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": URLS[part.image.sha256].decode()}}


async def sent(body: Body) -> bytes:
    return b"".join([piece async for piece in body])


@given(fields, st.lists(said | others, max_size=4))
def test_the_body_is_the_json_of_fields_and_messages(fields, messages):
    expected = [
        {
            "role": message.role,
            "content": [plain(part) for part in message.parts]
            if message.role == "user"
            else "".join(part.text for part in message.parts),
        }
        for message in messages
    ]
    body = Body(fields, messages, URLS)
    first, again = asyncio.run(sent(body)), asyncio.run(sent(body))
    assert json.loads(first) == {**fields, "messages": expected}
    assert (again, len(body)) == (first, len(first))


def test_images_are_those_of_the_cache_and_no_copies():
    image = ImagePart(ImageRef("100000", 10, 10, "RGB", "PNG"))
    fragments = Body({}, [Message("user", (image, image))], URLS).fragments
    assert sum(fragment is URLS["100000"] for fragment in fragments) == 2


@pytest.mark.parametrize("fields", [{"stop": ["\ud800"]}, {"temperature": float("nan")}])
def test_what_is_no_json_in_utf_8_is_an_error(fields):
    with pytest.raises(ValueError, match=r"surrogates|Out of range"):
        Body(fields, [], {})


@pytest.mark.parametrize(("no_proxy", "passes"), [("", True), ("models.invalid", False)])
def test_requests_take_the_proxy_of_the_environment(chat, open_policy, turn, monkeypatch, no_proxy, passes):
    async def run():
        async with chat.serving(chat.saying(chat.completion)) as proxy:
            monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
            monkeypatch.setenv("no_proxy", no_proxy)
            async with open_policy("http://models.invalid/v1", max_retries=0) as policy:
                (made,) = await asyncio.gather(policy.write(turn()), return_exceptions=True)
                return made, len(proxy.asked)

    made, n_asked = asyncio.run(run())
    assert n_asked == passes
    assert isinstance(made, Exception) != passes


@pytest.fixture
def requests() -> list[web.Request]:
    """What reached ``listening``."""
    return []


@pytest.fixture
def listening(chat, requests):
    """Runs ``work(port)`` beside a server that answers every path, first with ``responses``, then with completions."""

    def run(work, *responses, certificate=None):
        left = list(responses)

        async def answer(request: web.Request) -> web.StreamResponse:
            await request.read()
            requests.append(request)
            return left.pop(0) if left else chat.completion()

        async def once():
            app = web.Application(client_max_size=2**26)
            app.router.add_route("*", "/{path:.*}", answer)
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            try:
                await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificate).start()
                return await work(runner.addresses[0][1])
            finally:
                await runner.cleanup()

        return asyncio.run(once())

    return run


def test_the_settings_of_openais_client_in_the_environment_count(listening, requests, open_policy, turn, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: team")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere.invalid/v1")  # does not: ours does

    async def work(port):
        async with open_policy(f"http://127.0.0.1:{port}/v1/") as policy:
            await policy.check()
            await policy.write(turn())

    listening(work)
    assert [request.path for request in requests] == ["/v1/models", "/v1/chat/completions"]
    names = ("OpenAI-Organization", "OpenAI-Project", "X-Gateway")
    for request in requests:
        assert [request.headers[name] for name in names] == ["org-1", "proj-1", "team"]


def test_a_redirected_request_keeps_its_body(listening, requests, open_policy, turn):
    async def work(port):
        async with open_policy(f"http://127.0.0.1:{port}/v1") as policy:
            return await policy.write(turn())

    assert listening(work, web.Response(status=307, headers={"location": "/v2"})).text == "It says 42."
    assert [(request.path, request.content_length) for request in requests] == [
        ("/v1/chat/completions", requests[0].content_length),
        ("/v2", requests[0].content_length),
    ]


@pytest.mark.parametrize(("seconds", "n_connections"), [(60.0, 1), (0.1, 2)])
def test_a_connection_is_used_again_unless_it_was_idle_for_long(
    listening, requests, open_policy, turn, monkeypatch, seconds, n_connections
):
    monkeypatch.setattr(http_client, "IDLE_SECONDS", seconds)

    async def work(port):
        async with open_policy(f"http://127.0.0.1:{port}/v1") as policy:
            for seed in range(2):
                await policy.write(turn(seed=seed))
                await asyncio.sleep(0.5)

    listening(work)
    assert len(requests) == 2
    assert len({request.protocol for request in requests}) == n_connections


def test_what_is_no_http_is_tried_again_and_named(open_policy, turn):
    n_asked = 0

    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal n_asked
        n_asked += 1
        writer.write(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")
        writer.close()

    async def once():
        server = await asyncio.start_server(other, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, open_policy(f"http://127.0.0.1:{port}/v1", max_retries=1) as policy:
            with pytest.raises(PolicyError, match="SSH-2") as caught:
                await policy.write(turn())
            with pytest.raises(PolicyUnavailable, match="nothing answers at") as unavailable:
                await policy.check()
            return f"{caught.value}{unavailable.value}"

    assert "\n" not in asyncio.run(once())
    assert n_asked == 3


@pytest.fixture
def certificate(tmp_path):
    """Of this machine, signed by itself: what a server shows, and the file with it."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path, own = tmp_path / "certificate.pem", tmp_path / "key.pem"
    path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    own.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(path, own)
    return shown, path


@pytest.mark.parametrize("trusted", [True, False])
def test_certificates_are_those_of_the_environment(listening, open_policy, turn, monkeypatch, certificate, trusted):
    shown, path = certificate
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(path))

    async def work(port):
        async with open_policy(f"https://127.0.0.1:{port}/v1", max_retries=0) as policy:
            (made,) = await asyncio.gather(policy.write(turn()), return_exceptions=True)
            return made

    made = listening(work, certificate=shown)
    assert "CERTIFICATE_VERIFY_FAILED" in str(made) or (trusted and made.text == "It says 42.")


AZURE = "http://name.openai.azure.com"


@pytest.mark.parametrize(
    ("path", "prefix", "header"),
    [
        ("", "/openai/deployments/model/chat/completions?api-version=2024-10-21", "api-key"),
        ("/openai/", "/openai/deployments/model/chat/completions?api-version=2024-10-21", "api-key"),
        ("/openai/v1/", "/openai/v1/chat/completions", "authorization"),
    ],
)
def test_azure_gets_its_own_paths_and_headers(
    listening, requests, open_policy, turn, monkeypatch, path, prefix, header
):
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    monkeypatch.setenv("TEST_KEY", "sk-secret")

    async def work(port):
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("no_proxy", "")
        async with open_policy(f"{AZURE}{path}", key_variable="TEST_KEY") as policy:
            await policy.check()
            return await policy.write(turn())

    assert listening(work).text == "It says 42."
    assert requests[-1].path_qs.removeprefix(AZURE) == prefix
    assert requests[-1].headers[header].endswith("sk-secret")


def test_azure_without_a_version_of_its_api_says_which_variable_to_set(store, monkeypatch):
    monkeypatch.delenv("OPENAI_API_VERSION", raising=False)
    with pytest.raises(PolicyUnavailable, match="OPENAI_API_VERSION"):
        OpenAIPolicy(Endpoint("https://name.openai.azure.com", "model"), store)
