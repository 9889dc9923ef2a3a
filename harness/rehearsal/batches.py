"""The batch API of the rehearsal endpoint: ``/v1/files`` and ``/v1/batches``, all in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

Answer = Callable[[dict[str, Any]], tuple[int, dict[str, Any]] | None]
"""The body of a request -> (status, body), or None where the batch expires before it comes to that request."""


@dataclass(slots=True)
class _Batch:
    number: int
    input_file_id: str
    metadata: dict[str, str]
    ready_at: float
    state: str = "completed"
    output_file_id: str | None = None
    error_file_id: str | None = None
    problem: str | None = None

    def shown(self, now: float) -> dict[str, Any]:
        ended = now >= self.ready_at
        errors = {"object": "list", "data": [{"code": "invalid", "message": self.problem}]} if self.problem else None
        return {
            "id": f"batch_{self.number}",
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "created_at": 0,
            "input_file_id": self.input_file_id,
            "metadata": self.metadata,
            "status": self.state if ended else "in_progress",
            "output_file_id": self.output_file_id if ended else None,
            "error_file_id": self.error_file_id if ended else None,
            "errors": errors if ended else None,
        }


class BatchDesk:
    """Files and batches. A batch is answered when it is made and shows its results after ``latency`` seconds."""

    def __init__(self, answer: Answer, latency: float) -> None:
        self._answer = answer
        self._latency = latency
        self._files: dict[str, bytes] = {}
        self._batches: dict[str, _Batch] = {}

    def add_to(self, app: web.Application, may_enter: Callable[[web.Request], bool]) -> None:
        """Routes, each behind the door of the endpoint."""

        def guarded(handler: Callable[[web.Request], Any]) -> Callable[[web.Request], Any]:
            async def handle(request: web.Request) -> web.StreamResponse:
                if not may_enter(request):
                    return _error(401, "Incorrect API key provided.")
                response: web.StreamResponse = await handler(request)
                return response

            return handle

        app.router.add_post("/v1/files", guarded(self._upload))
        app.router.add_get("/v1/files/{name}/content", guarded(self._content))
        app.router.add_post("/v1/batches", guarded(self._create))
        app.router.add_get("/v1/batches", guarded(self._list))
        app.router.add_get("/v1/batches/{name}", guarded(self._show))

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        file = form.get("file")
        if not isinstance(file, web.FileField):
            return _error(400, "a file is missing")
        name = self._keep(file.file.read())
        return web.json_response(
            {"id": name, "object": "file", "bytes": len(self._files[name]), "created_at": 0, "filename": file.filename,
             "purpose": "batch", "status": "processed"}
        )  # fmt: skip

    async def _content(self, request: web.Request) -> web.StreamResponse:
        data = self._files.get(request.match_info["name"])
        return _error(404, "no such file") if data is None else web.Response(body=data)

    async def _create(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        data = self._files.get(asked.get("input_file_id"))
        if data is None:
            return _error(400, "no such input_file_id")
        batch = _Batch(
            len(self._batches), asked["input_file_id"], asked.get("metadata") or {}, self._now() + self._latency
        )
        self._work_off(batch, data)
        self._batches[f"batch_{batch.number}"] = batch
        return web.json_response(batch.shown(self._now()))

    async def _show(self, request: web.Request) -> web.StreamResponse:
        batch = self._batches.get(request.match_info["name"])
        return _error(404, "no such batch") if batch is None else web.json_response(batch.shown(self._now()))

    async def _list(self, _: web.Request) -> web.StreamResponse:
        shown = [batch.shown(self._now()) for batch in reversed(self._batches.values())]
        return web.json_response({"object": "list", "data": shown, "has_more": False})

    def _work_off(self, batch: _Batch, data: bytes) -> None:
        good: list[str] = []
        bad: list[str] = []
        try:
            lines = [json.loads(line) for line in data.splitlines()]
            bodies = [(str(line["custom_id"]), dict(line["body"])) for line in lines]
        except (ValueError, KeyError, TypeError) as error:
            batch.state, batch.problem = "failed", f"the input file cannot be read: {error}"
            return
        for name, body in bodies:
            answered = self._answer(body)
            if answered is None:
                batch.state = "expired"
                expired = {"code": "batch_expired", "message": "The batch expired before this request was executed."}
                bad.append(json.dumps({"custom_id": name, "response": None, "error": expired}))
                continue
            status, reply = answered
            response = {"status_code": status, "request_id": "", "body": reply}
            (good if status == 200 else bad).append(
                json.dumps({"custom_id": name, "response": response, "error": None})
            )
        batch.output_file_id = self._keep("\n".join(good).encode()) if good else None
        batch.error_file_id = self._keep("\n".join(bad).encode()) if bad else None

    def _keep(self, data: bytes) -> str:
        name = f"file-{len(self._files)}"
        self._files[name] = data
        return name

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _error(status: int, message: str) -> web.Response:
    return web.json_response(
        {"error": {"message": message, "type": "invalid_request_error", "code": None}}, status=status
    )
