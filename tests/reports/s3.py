"""A small S3 server on loopback, as much of it as pyarrow's client asks for: list in pages, read by range, write in one or several parts, delete."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase, BytesIO
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

PAGE = 5
"""Keys a listing holds, so that every run takes several."""


@dataclass
class Bucket:
    """Objects by key, their types, whether access is refused, and which keys were read."""

    objects: dict[str, bytes] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    denied: bool = False
    read: list[str] = field(default_factory=list)


@dataclass
class Server:
    """Buckets by name; ``endpoint`` is where they are served."""

    endpoint: str
    buckets: dict[str, Bucket] = field(default_factory=dict)
    parts: dict[str, dict[int, bytes]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def uri(self, path: str) -> str:
        return f"s3://{path}?endpoint_override={self.endpoint}"


@contextmanager
def served() -> Iterator[Server]:
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    httpd.daemon_threads = True
    state = Server(f"http://127.0.0.1:{httpd.server_port}")
    httpd.state = state  # type: ignore[attr-defined]
    thread = Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


def _unchunked(stream: BufferedIOBase) -> bytes:
    """The content of chunks as HTTP frames them, and Amazon's client once more within; what trails is passed over."""
    found = b""
    while count := int(stream.readline().partition(b";")[0], 16):
        found += stream.read(count)
        stream.readline()
    while stream.readline().strip():
        pass
    return found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the console."""

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        size = headers.pop("size", str(len(body)))
        for name, value in {"Content-Length": size, **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _error(self, status: int, code: str, words: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code><Message>{words}</Message></Error>".encode())

    def _handle(self) -> None:
        state: Server = self.server.state  # type: ignore[attr-defined]
        body = self._body()
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
        name, _, key = unquote(parts.path).lstrip("/").partition("/")
        with state.lock:
            bucket = state.buckets.get(name)
            if bucket is None:
                self._error(404, "NoSuchBucket", "The specified bucket does not exist")
            elif bucket.denied:
                self._error(403, "AccessDenied", "Access Denied")
            elif not key and "delete" in query:
                for found in re.findall(r"<Key>(.*?)</Key>", body.decode()):
                    bucket.objects.pop(found, None)
                self._answer(200, b"<DeleteResult></DeleteResult>")
            elif not key:
                self._list(bucket, query)
            else:
                self._object(state, bucket, key, query, body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle

    def _body(self) -> bytes:
        chunked = self.headers.get("Transfer-Encoding") == "chunked"
        raw = _unchunked(self.rfile) if chunked else self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return _unchunked(BytesIO(raw)) if self.headers.get("Content-Encoding") == "aws-chunked" else raw

    def _list(self, bucket: Bucket, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        entries: dict[str, int | None] = {}
        for key in sorted(bucket.objects):
            if key.startswith(prefix):
                rest = key.removeprefix(prefix)
                if delimiter and delimiter in rest:
                    entries[f"{prefix}{rest.partition(delimiter)[0]}{delimiter}"] = None
                else:
                    entries[key] = len(bucket.objects[key])
        after = query.get("continuation-token", "")
        left = [entry for entry in entries if entry > after]
        shown = left[:PAGE]
        more = len(left) > PAGE
        text = "".join(
            f"<CommonPrefixes><Prefix>{escape(entry)}</Prefix></CommonPrefixes>"
            if entries[entry] is None
            else f"<Contents><Key>{escape(entry)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><Size>{entries[entry]}</Size></Contents>"
            for entry in shown
        )
        token = f"<NextContinuationToken>{escape(shown[-1])}</NextContinuationToken>" if more else ""
        self._answer(
            200,
            f"<ListBucketResult><KeyCount>{len(shown)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>{token}{text}</ListBucketResult>".encode(),
        )

    def _object(self, state: Server, bucket: Bucket, key: str, query: dict[str, str], body: bytes) -> None:
        upload = query.get("uploadId")
        if self.command == "POST" and "uploads" in query:
            state.parts[key] = {}
            bucket.types[key] = self.headers.get("Content-Type") or ""
            self._answer(200, f"<InitiateMultipartUploadResult><UploadId>{escape(key)}</UploadId></InitiateMultipartUploadResult>".encode())  # fmt: skip
        elif self.command == "PUT" and upload is not None:
            state.parts[upload][int(query["partNumber"])] = body
            self._answer(200, ETag='"part"')
        elif self.command == "POST" and upload is not None:
            bucket.objects[key] = b"".join(part for _, part in sorted(state.parts.pop(upload).items()))
            self._answer(200, b"<CompleteMultipartUploadResult><ETag>whole</ETag></CompleteMultipartUploadResult>")
        elif self.command == "PUT":
            bucket.objects[key], bucket.types[key] = body, self.headers.get("Content-Type") or ""
            self._answer(200, ETag='"whole"')
        elif self.command == "DELETE":
            bucket.objects.pop(key, None)
            self._answer(204)
        elif key not in bucket.objects:
            self._error(404, "NoSuchKey", "The specified key does not exist.")
        else:
            self._read(bucket, key)

    def _read(self, bucket: Bucket, key: str) -> None:
        value = bucket.objects[key]
        if self.command == "HEAD":
            self._answer(200, size=str(len(value)), Content_Type=bucket.types.get(key, ""))
            return
        bucket.read.append(key)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if wanted is None:
            self._answer(200, value)
            return
        first, last = int(wanted[1]), min(int(wanted[2] or len(value)), len(value) - 1)
        self._answer(206, value[first : last + 1], Content_Range=f"bytes {first}-{last}/{len(value)}")
