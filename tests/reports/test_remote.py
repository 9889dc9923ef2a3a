"""Runs and reports in a bucket: the bytes of a local report, the user's own addresses, and errors that name them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import DataError
from reports import remote
from reports.__main__ import main
from tests.reports.cases import case_run
from tests.reports.runs import MANIFEST, evidence_of, meta_of, rows, write_cell
from tests.reports.s3 import Bucket, Server, served


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch, served() as state:
        for key, value in (
            ("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret"), ("AWS_EC2_METADATA_DISABLED", "true"),
        ):  # fmt: skip
            patch.setenv(key, value)
        yield state


@pytest.fixture
def bucket(server: Server) -> Bucket:
    """An empty bucket named ``lab``."""
    server.buckets.clear()
    return server.buckets.setdefault("lab", Bucket())


def upload(bucket: Bucket, folder: Path, at: str) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            bucket.objects[f"{at}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def objects(bucket: Bucket, at: str) -> dict[str, bytes]:
    """Objects below ``at``, without the markers of directories."""
    return {k.removeprefix(f"{at}/"): v for k, v in bucket.objects.items() if k.startswith(f"{at}/") and k[-1] != "/"}


def test_a_report_from_and_to_a_bucket_has_the_bytes_of_a_local_one(
    run: Path, server: Server, bucket: Bucket, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for method in ("tiem", "cot"):
        some = rows(method, n=12, rehearsal=True)
        write_cell(run, some, meta=meta_of(some, identity={"feed": "docs"}), evidence=evidence_of(some))
    (run / "manifest.json").write_text(json.dumps(MANIFEST), encoding="utf-8")
    upload(bucket, run, "team/run")
    (tmp_path / "local").mkdir()
    assert main([str(run), "--out", str(tmp_path / "local")]) == 0
    assert main([server.uri("lab/team/run"), "--out", server.uri("lab/out")]) == 0
    assert objects(bucket, "out") == files(tmp_path / "local")
    assert bucket.types["out/report.html"] == "text/html"
    assert "Report: s3://lab/out/report.html" in capsys.readouterr().out
    assert not any(b"/report-" in text for name, text in objects(bucket, "out").items() if name.endswith(".json"))


def test_the_endpoint_may_be_named_by_the_environment(
    run: Path, server: Server, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
    write_cell(run, rows(n=3))
    upload(bucket, run, "run")
    with remote.workspace() as here:
        assert files(here.run("s3://lab/run")) == files(run)


def test_what_a_report_does_not_read_stays_where_it_is(
    run: Path, server: Server, bucket: Bucket, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case_run(run)
    (run / "cells" / "tiem__deepseek_v4_flash__astock__0a1b2c3d" / "parts").mkdir()
    (run / "cells" / "tiem__deepseek_v4_flash__astock__0a1b2c3d" / "parts" / "0.parquet").write_bytes(b"large")
    upload(bucket, run, "run")
    assert main([server.uri("lab/run"), "--out", str(tmp_path / "out")]) == 0
    assert bucket.read
    assert {Path(key).name for key in bucket.read} <= {*remote.OF_RUN, *remote.OF_CELL}
    assert {*remote.OF_CELL} == {Path(key).name for key in bucket.read if "/tiem" in key}
    assert "s3://lab/run/cache stays where it is" in capsys.readouterr().out


def test_runs_here_and_there_are_compared(run: Path, server: Server, bucket: Bucket, tmp_path: Path) -> None:
    write_cell(run, rows("tiem", n=20))
    write_cell(tmp_path / "other", rows("cot", n=20))
    upload(bucket, run, "run")
    out = tmp_path / "out"
    assert main([server.uri("lab/run"), (tmp_path / "other").as_uri(), server.uri("lab/run"), "--out", str(out)]) == 0
    data = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert [pair["b"] for pair in data["pairs"]] == ["cot"]
    assert len(data["manifests"]) == 2, "the same address twice is one run"


def test_a_file_address_is_used_where_it_is(run: Path, tmp_path: Path) -> None:
    write_cell(run, rows(n=3))
    out = tmp_path / "a place"
    with remote.workspace() as here:
        assert (here.run(run.as_uri()), here.out(out.as_uri())) == (run, out)
        assert not here.names, "nothing is copied"
    assert main([run.as_uri(), "--out", out.as_uri()]) == 0
    assert (out / "report.html").is_file()


@pytest.mark.parametrize("encoded", [True, False])
def test_an_address_may_hold_spaces_and_any_script(run: Path, tmp_path: Path, *, encoded: bool) -> None:
    """Encoded as in a browser, or as it is written."""
    place = tmp_path / "空 间" / "run 一"
    write_cell(place, rows(n=3))
    address = place.as_uri() if encoded else f"file://{place}"
    with remote.workspace() as here:
        assert here.run(address) == place
    assert main([address]) == 0
    assert (place / "report" / "report.html").is_file()


def test_bad_files_are_named_by_the_users_address(
    run: Path, server: Server, bucket: Bucket, capsys: pytest.CaptureFixture[str]
) -> None:
    some = rows(n=3)
    name = f"cells/{some[0]['cell']}/forecasts.parquet"
    whole = write_cell(run, some).read_bytes()
    twice = write_cell(run, [*some, some[0]]).read_bytes()
    bucket.objects["run/cells/empty/parts/0.parquet"] = b"never read"
    for place, text, words in (
        (name, twice, "rows 0 and 3 both hold"),
        (name, b"no Parquet", "not a readable Parquet file"),
        ("manifest.json", b"[", "not readable as JSON"),
    ):
        bucket.objects |= {f"run/{name}": whole, f"run/{place}": text}
        assert main([server.uri("lab/run"), "--out", server.uri("lab/out")]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"reports: s3://lab/run/{place}: {words}"), said
        assert "/report-" not in said
    assert not objects(bucket, "out")


def test_a_directory_without_cells_is_said(server: Server, bucket: Bucket, capsys: pytest.CaptureFixture[str]) -> None:
    bucket.objects["run/readme.txt"] = b"nothing"
    assert main([server.uri("lab/run")]) == 2
    assert capsys.readouterr().err.startswith("reports: s3://lab/run: no folder cells/ here.")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("nope://lab/run", "nope://lab/run: cannot be opened (Unrecognized filesystem type"),
        ("s3://nowhere/run", "s3://nowhere/run: cannot be read ("),
        ("s3://lab/run", "s3://lab/run: cannot be read ("),
        ("s3://closed/run", "s3://closed/run: cannot be read ("),
    ],
)
def test_an_address_that_leads_nowhere_exits_2_and_is_named(
    server: Server, bucket: Bucket, capsys: pytest.CaptureFixture[str], address: str, words: str, tmp_path: Path
) -> None:
    server.buckets["closed"] = Bucket(denied=True)
    reachable = server.uri(address.removeprefix("s3://")) if address.startswith("s3") else address
    assert main([reachable, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"reports: {words}")
    assert {"nowhere": "NO_SUCH_BUCKET", "closed": "ACCESS_DENIED", "lab": ""}[address.split("/")[2]] in said
    assert "Check the address" in said


@pytest.mark.parametrize(("name", "why"), [("nowhere", "NO_SUCH_BUCKET"), ("closed", "ACCESS_DENIED")])
def test_an_out_that_cannot_be_written_is_named_before_the_work(
    run: Path, server: Server, bucket: Bucket, capsys: pytest.CaptureFixture[str], name: str, why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def worked(*_: object, **__: object) -> None:
        raise AssertionError("the report was built first")

    monkeypatch.setattr("reports.__main__.build", worked)
    server.buckets["closed"] = Bucket(denied=True)
    write_cell(run, rows(n=3))
    assert main([str(run), "--out", server.uri(f"{name}/out")]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"reports: s3://{name}/out: the report cannot be written here (")
    assert why in said


def test_what_an_earlier_report_left_is_removed_and_nothing_else(run: Path, server: Server, bucket: Bucket) -> None:
    """Without --out the report lies beside the run."""
    write_cell(run, rows(n=3))
    upload(bucket, run, "run")
    stale = {"cases/7.js", "tables/leak_hunt.csv", "figures/figure6_shift.png"}
    kept = {"notes.txt", "tables/mine.csv"}
    for name in stale | kept:
        bucket.objects[f"run/report/{name}"] = b"old"
    assert main([server.uri("lab/run")]) == 0
    left = objects(bucket, "run/report").keys()
    assert {"report.html", "report.md", "report.json"} <= left
    assert not stale & left
    assert kept <= left


def test_an_audit_may_lie_in_a_bucket(
    run: Path, server: Server, bucket: Bucket, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cell(run, rows(n=3))
    bucket.objects["audit.json"] = b"{}"
    assert main([str(run), "--audit", server.uri("lab/audit.json")]) == 2
    assert capsys.readouterr().err.startswith("reports: s3://lab/audit.json: ")
    assert main([str(run), "--audit", server.uri("lab/none.json")]) == 2
    assert capsys.readouterr().err.startswith("reports: s3://lab/none.json: cannot be read (")


def test_secrets_in_an_address_are_not_repeated() -> None:
    assert remote.name_of("s3://key:secret@lab/run/?region=x") == "s3://lab/run"
    assert (
        remote.name_of("abfs://box@account.dfs.core.windows.net/run") == "abfs://box@account.dfs.core.windows.net/run"
    )
    with remote.workspace() as here, pytest.raises(DataError) as error:
        here.run("nope://key:secret@lab/a run?token=hidden")
    assert "nope://lab/a run" in str(error.value)
    assert "secret" not in str(error.value)
    assert "hidden" not in str(error.value)


def test_addresses_are_told_from_paths_and_extended_before_their_options() -> None:
    assert [remote.is_address(x) for x in ("s3://a/b", "file:/a", "runs/a", "/a:b", "C.d/e")] == [True, True, False, False, False]  # fmt: skip
    assert remote.joined("s3://a/b/?region=x", "report") == "s3://a/b/report?region=x"
    assert remote.joined("runs/a", "report") == "runs/a/report"


def test_google_is_not_asked_for_a_quarter_of_an_hour() -> None:
    assert remote.bounded("gs://a/b") == "gs://a/b?retry_limit_seconds=60"
    assert remote.bounded("gs://a/b?scheme=http") == "gs://a/b?scheme=http&retry_limit_seconds=60"
    assert remote.bounded("gs://a/b?retry_limit_seconds=3") == "gs://a/b?retry_limit_seconds=3"
    assert remote.bounded("s3://a/b") == "s3://a/b"


def test_copies_are_removed_in_the_end(run: Path, server: Server, bucket: Bucket) -> None:
    write_cell(run, rows(n=3))
    upload(bucket, run, "run")
    with remote.workspace() as here:
        copy = here.run(server.uri("lab/run"))
        assert (copy / "cells").is_dir()
    assert not copy.exists()
