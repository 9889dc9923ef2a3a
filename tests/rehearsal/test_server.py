"""The rehearsal endpoint as the OpenAI client sees it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import openai
import pytest

from harness.errors import ConfigError
from harness.rehearsal import RehearsalServer, start_rehearsal

SCHEMA = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "prob_positive": {"type": "number", "minimum": 0, "maximum": 1}},
    "required": ["reasoning", "prob_positive"],
}
FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA}}


@pytest.fixture(scope="module")
def start() -> Iterator[Callable[..., RehearsalServer]]:
    """``start_rehearsal``, one server for each set of options."""
    running: dict[str, RehearsalServer] = {}

    def get(**options: Any) -> RehearsalServer:
        key = repr(options)
        if key not in running:
            running[key] = start_rehearsal(**options)
        return running[key]

    yield get
    for server in running.values():
        server.stop()


@cache
def client_of(base_url: str, key: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=base_url, api_key=key, max_retries=0, timeout=10)


def client(server: RehearsalServer, key: str = "none") -> openai.OpenAI:
    return client_of(server.base_url, key)


def chat(server: RehearsalServer, text: str, model: str = "rehearsal", key: str = "none") -> Any:
    messages: Any = [{"role": "user", "content": text}]
    return client(server, key).chat.completions.create(model=model, messages=messages, response_format=FORMAT)


def stats(server: RehearsalServer) -> Any:
    with urllib.request.urlopen(server.base_url.removesuffix("/v1") + "/stats") as reply:
        return json.load(reply)


def test_chat(start: Callable[..., RehearsalServer]) -> None:
    before = stats(start())["chat"]
    first, again, other = (chat(start(), text) for text in ("Acme grew.", "Acme grew.", "Acme fell."))
    assert first == again
    assert 0 <= json.loads(first.choices[0].message.content)["prob_positive"] <= 1
    assert first.model == "rehearsal"
    assert first.system_fingerprint == "rehearsal-1"
    assert first.usage.total_tokens == first.usage.prompt_tokens + first.usage.completion_tokens
    assert first.usage.prompt_tokens_details.cached_tokens == 0
    assert other.id != first.id
    after = stats(start())["chat"]
    assert {key: after[key] - before[key] for key in after} == {"requests": 3, "ok": 3, "n429": 0, "repeated": 1}


def test_two_backbones_answer_differently_in_one_server_and_by_option(start: Callable[..., RehearsalServer]) -> None:
    texts = [f"Company {n} reports." for n in range(10)]
    a, b = ([chat(start(), text, model).choices[0].message.content for text in texts] for model in ("x", "rehearsal_b"))
    assert a != b
    assert b == [chat(start(variant="b"), text).choices[0].message.content for text in texts]


def test_models(start: Callable[..., RehearsalServer]) -> None:
    assert {"rehearsal", "rehearsal_b"} <= {model.id for model in client(start()).models.list()}


def test_embeddings(start: Callable[..., RehearsalServer]) -> None:
    texts = ["profit rises at Acme", "profits rise at Acme", "unrelated words", "业绩增长", "业绩增长超预期"]
    api = client(start()).embeddings
    floats = api.create(model="v", input=texts, dimensions=64, encoding_format="float")
    v = np.array([row.embedding for row in floats.data])
    packed = api.create(model="v", input=texts, dimensions=64)  # the client asks for base64 and decodes it
    np.testing.assert_allclose(v, np.array([row.embedding for row in packed.data]), rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(v, axis=1), 1, rtol=1e-5)
    assert v.shape == (5, 64)
    assert v[0] @ v[1] > v[0] @ v[2]
    assert v[3] @ v[4] > v[3] @ v[2]
    assert stats(start())["embeddings"]["ok"] == 2


def test_limits_have_the_real_headers_and_error(start: Callable[..., RehearsalServer]) -> None:
    server = start(rpm=30, tpm=100_000)
    chat(server, "first")
    with pytest.raises(openai.RateLimitError) as refused:
        chat(server, "second")
    headers = refused.value.response.headers
    assert headers["x-ratelimit-limit-requests"] == "30"
    assert headers["x-ratelimit-remaining-requests"] == "0"
    assert headers["x-ratelimit-limit-tokens"] == "100000"
    assert {"x-ratelimit-reset-requests", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"} <= set(headers)
    assert 0 < int(headers["retry-after-ms"]) <= 2000
    assert int(headers["retry-after"]) in (1, 2)
    assert refused.value.code == "rate_limit_exceeded"
    assert stats(server)["chat"] == {"requests": 2, "ok": 1, "n429": 1, "repeated": 0}


@pytest.mark.parametrize(("names", "told"), [("wait", {"retry-after", "retry-after-ms"}), ("none", set())])
def test_a_server_may_say_less_of_its_limits(start: Callable[..., RehearsalServer], names: str, told: set[str]) -> None:
    server = start(rpm=30, names=names)
    first = client(server).chat.completions.with_raw_response.create(
        model="rehearsal", messages=[{"role": "user", "content": "first"}], response_format=FORMAT
    )
    with pytest.raises(openai.RateLimitError) as refused:
        chat(server, "second")
    said = {name for name in refused.value.response.headers if name.startswith(("x-ratelimit", "retry-after"))}
    assert said == told
    assert not [name for name in first.headers if name.startswith("x-ratelimit")]


def test_tokens_are_limited(start: Callable[..., RehearsalServer]) -> None:
    server = start(tpm=1000)
    chat(server, "word " * 200)
    with pytest.raises(openai.RateLimitError):
        chat(server, "other " * 200)


def test_key(start: Callable[..., RehearsalServer]) -> None:
    server = start(key="k")
    assert chat(server, "x", key="k").choices
    with pytest.raises(openai.AuthenticationError):
        chat(server, "x", key="wrong")


def test_bad_bodies_are_refused(start: Callable[..., RehearsalServer]) -> None:
    with pytest.raises(openai.BadRequestError, match="messages"):
        client(start()).chat.completions.create(model="m", messages=[])
    with pytest.raises(openai.BadRequestError, match="empty"):
        client(start()).embeddings.create(model="m", input=[""])


def outcome(server: RehearsalServer, text: str) -> str:
    try:
        choice = chat(server, text).choices[0]
    except openai.APIConnectionError:
        return "reset"
    except openai.APIStatusError as error:
        return str(error.status_code)
    message = choice.message
    if message.refusal:
        return "refused"
    if choice.finish_reason == "length":
        return "truncated"
    if not message.content:
        return "empty"
    try:
        json.loads(message.content)
    except ValueError:
        return "malformed"
    return "ok"


def test_every_fault_happens_and_a_retry_meets_another_draw(start: Callable[..., RehearsalServer]) -> None:
    names = ("500", "429", "reset", "malformed", "truncated", "refused", "empty")
    server = start(fault=",".join(f"{name}=0.1" for name in names))
    first = [outcome(server, f"text {n}") for n in range(80)]
    assert set(first) == {*names, "ok"}
    for n in range(80):
        assert any(outcome(server, f"text {n}") == "ok" for _ in range(100))


def test_faults_are_the_same_in_every_run() -> None:
    runs = []
    for _ in range(2):
        server = start_rehearsal(fault="500=0.5")
        runs.append([outcome(server, f"text {n}") for n in range(20)])
        server.stop()
    assert runs[0] == runs[1]
    assert set(runs[0]) == {"500", "ok"}


def test_a_bad_fault_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    for spec in ("nonsense=0.1", "500=2", "500", "reset=0.7,hang=0.7"):
        with pytest.raises(ConfigError, match="did not start"):
            start_rehearsal(fault=spec)
        assert spec.split(",")[0] in capfd.readouterr().err


def test_the_server_ends_with_its_parent() -> None:
    code = (
        "from harness.rehearsal import start_rehearsal as s; import os; print(s().process.pid, flush=True); os._exit(9)"
    )
    parent = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert parent.returncode == 9
    # stderr of the server is the pipe just read to its end: it is closed only when the server is gone.
    assert parent.stdout.strip().isdecimal()


def test_a_taken_port_is_named() -> None:
    server = start_rehearsal()
    port = server.base_url.rsplit(":", 1)[1].removesuffix("/v1")
    command = [sys.executable, "-m", "harness.rehearsal", "--port", port]
    second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    server.stop()
    assert second.returncode == 2
    assert f"--port {port}" in second.stderr
