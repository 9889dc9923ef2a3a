"""What a check says of an endpoint: one call, and a remedy for what is wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import ray

from harness.check import Finding, _called, of_disk, of_ray
from harness.config import ClusterSettings
from harness.errors import HarnessError
from harness.gateway.settings import Endpoint
from harness.session import start_ray
from harness.store import RunDirectory
from tests.gateway.conftest import chat_reply, scripted

USED = {"prompt_tokens": 9, "completion_tokens": 3}
YES = chat_reply('{"answer": "yes"}', usage=USED)


def called(directory: Path, replies: list[Any], **fields: Any) -> tuple[list[Finding], list[Any]]:
    seen: list[Any] = []

    async def main() -> list[Finding]:
        path = "/v1/embeddings" if fields.get("embedding_model") else "/v1/chat/completions"
        async with scripted(replies, seen, path) as url:
            endpoint = Endpoint(name="e", model="m", base_url=url, **fields)
            run = RunDirectory(directory)
            run.cache.mkdir(parents=True, exist_ok=True)
            return await _called("backbone e", endpoint, run, embeds=bool(fields.get("embedding_model")))

    return asyncio.run(main()), seen


def test_a_good_endpoint_takes_one_call_each_time(tmp_path: Path) -> None:
    for _ in range(2):
        found, seen = called(tmp_path, [YES])
        assert [f.ok for f in found] == [True] * 3
        assert len(seen) == 1, "a check asks the endpoint, not the store"
        assert "supported" in str(found[-1])


def test_an_endpoint_without_usage_is_told(tmp_path: Path) -> None:
    found, _ = called(tmp_path, [chat_reply('{"answer": "no"}')])
    assert "costs stay unknown" in str(found[1])


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        (
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            "token_param=max_completion_tokens",
        ),
        ("temperature does not support 0.0 with this model", "supports_temperature=false"),
        ("something else", "docs/backbones.md"),
    ],
)
def test_a_refusal_comes_with_what_to_do(tmp_path: Path, message: str, remedy: str) -> None:
    (found,), _ = called(tmp_path, [(400, {"error": {"message": message}}, {})])
    assert not found.ok
    assert message.rstrip(".") in found.found
    assert remedy in str(found.remedy)


def test_a_refused_key_comes_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "wrong")
    (found,), _ = called(
        tmp_path, [(401, {"error": {"message": "Incorrect API key provided"}}, {})], api_key_env="A_KEY"
    )
    assert not found.ok
    assert "401: Incorrect API key provided" in found.found
    assert "backbone.api_key_env" in str(found.remedy)


def test_a_model_that_ignores_the_schema_is_asked_once(tmp_path: Path) -> None:
    found, seen = called(tmp_path, [chat_reply("Yes, of course.", usage=USED)])
    assert (found[-1].ok, len(seen)) == (False, 1)
    assert "invalid" in found[-1].found


def test_embeddings(tmp_path: Path) -> None:
    (found,), _ = called(tmp_path, [{"data": [{"index": 0, "embedding": [1.0, 0.0]}]}], embedding_model="v")
    assert "2 dimensions" in found.found
    (failed,), _ = called(tmp_path, [(401, {"error": {"message": "no"}}, {})], embedding_model="v")
    assert not failed.ok


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    assert of_disk(RunDirectory(tmp_path)).ok
    (tmp_path / "file").write_text("")
    assert not of_disk(RunDirectory(tmp_path / "file" / "run")).ok


def test_a_cluster_that_cannot_be_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**_: Any) -> None:
        raise ConnectionError("Failed to connect to Ray cluster at 10.0.0.9:6379")

    monkeypatch.setattr(ray, "init", refused)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(
        HarnessError, match=r"cluster\.address=10\.0\.0\.9:6379.*Failed to connect.*RAY_AUTH_MODE=token"
    ):
        start_ray("10.0.0.9:6379", 256)
    found = of_ray(ClusterSettings(address="10.0.0.9:6379"))
    assert not found.ok
    assert "10.0.0.9:6379" in found.found
