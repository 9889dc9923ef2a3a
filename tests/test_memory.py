"""The operation log: state as of T, order, hash, journal, export."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.clock import parse_stamp
from harness.errors import DataError
from harness.memory import Change, CommitKey, MemoryLog, MemoryOp, dumps, loads, ops_of
from harness.memory_file import read_journal, read_memory, write_memory

START = datetime(2020, 1, 1, tzinfo=UTC)
changes = st.lists(
    st.builds(
        Change, st.sampled_from(["put", "close"]), st.sampled_from("abc"), st.one_of(st.none(), st.text(max_size=5))
    ),
    max_size=3,
)
records = st.lists(st.tuples(st.integers(0, 20), changes), max_size=15)


def log_of(drawn: list[tuple[int, list[Change]]]) -> MemoryLog:
    log = MemoryLog()
    for i, (day, some) in enumerate(sorted(drawn, key=lambda r: r[0])):
        log.commit(CommitKey(START + timedelta(days=day), START, f"r{i:02d}"), some)
    return log


@given(records, st.integers(-1, 22))
def test_the_state_at_t_is_the_fold_of_what_holds_before_t(drawn: list[tuple[int, list[Change]]], day: int) -> None:
    log = log_of(drawn)
    instant = START + timedelta(days=day)
    decision = parse_stamp(instant.strftime("%Y-%m-%d %H:%M"), "UTC")
    folded: dict[str, str] = {}
    for op in log.ops:
        if op.key.valid_from < instant and op.object_id is not None:
            folded.pop(op.object_id, None)
            if op.value is not None:
                folded[op.object_id] = op.value
    assert log.state_at(log.length_at(decision)) == folded
    assert log.state_at(len(log)) == dict(log.final_state())


@given(records, st.integers(0, 20))
def test_later_operations_do_not_change_an_earlier_state(drawn: list[tuple[int, list[Change]]], day: int) -> None:
    decision = parse_stamp((START + timedelta(days=day)).strftime("%Y-%m-%d %H:%M"), "UTC")
    whole, cut = log_of(drawn), log_of([r for r in drawn if r[0] < day])
    assert whole.state_at(whole.length_at(decision)) == cut.state_at(cut.length_at(decision))


@given(records)
def test_a_log_goes_through_its_journal_and_its_rows(drawn: list[tuple[int, list[Change]]]) -> None:
    log = log_of(drawn)
    by_record: dict[str, list[MemoryOp]] = {}
    for op in log.ops:
        by_record.setdefault(op.key.record_id, []).append(op)
    assert [op for ops in by_record.values() for op in loads(dumps(ops))] == log.ops
    assert MemoryLog(ops_of(reversed(log.rows()))).sha256() == log.sha256()


def test_every_record_leaves_an_operation_and_none_twice_or_out_of_order() -> None:
    log = MemoryLog()
    first = CommitKey(START + timedelta(days=1), START, "a")
    assert [op.op for op in log.commit(first, [])] == ["nothing"]
    with pytest.raises(ValueError, match="committed before"):
        log.commit(first, [])
    with pytest.raises(ValueError, match="comes after"):
        log.commit(CommitKey(START, START, "b"), [])


def test_the_hash_depends_on_order_and_content() -> None:
    key = [CommitKey(START, START, name) for name in "ab"]
    one, other = MemoryLog(), MemoryLog()
    for k in key:
        one.commit(k, [Change("put", "x", "1")])
    for k in reversed(key):
        for op in [MemoryOp(k, "put", "x", "1")]:
            other.replay(op)
    assert one.sha256() != other.sha256()


def test_a_torn_last_line_is_taken_off(tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    ops = [
        [
            MemoryOp(CommitKey(START, START, n), "put", n, "值\u2028"),
            MemoryOp(CommitKey(START, START, n), "close", n, None),
        ]
        for n in "ab"
    ]
    whole = "".join(dumps(o) + "\n" for o in ops)
    path.write_text(whole + dumps(ops[0])[:20], "utf-8")
    assert read_journal(path) == [op for o in ops for op in o]
    assert path.read_text("utf-8") == whole


def test_a_shared_file_states_its_hash_and_an_altered_one_is_refused(tmp_path: Path) -> None:
    log = log_of([(1, [Change("put", "a", "1")]), (2, [Change("put", "b", "2")])])
    path = tmp_path / "memory.parquet"
    write_memory(path, log)
    assert read_memory(path).sha256() == log.sha256()
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 1), path)
    with pytest.raises(DataError, match="altered or cut"):
        read_memory(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(DataError, match="not a memory file"):
        read_memory(path)


def at(day: int, hour: int) -> datetime:
    return START + timedelta(days=day, hours=hour)


def test_a_decision_that_is_a_day_knows_nothing_of_that_day_and_nothing_learned_after_it() -> None:
    """The longest prefix: an outcome that resolves on the day comes after a document of the day, so it is not seen either."""
    log = MemoryLog()
    log.commit(CommitKey(at(3, 9), at(3, 9), "early", (START + timedelta(days=3)).date()), [Change("put", "a", "1")])
    log.commit(CommitKey(at(4, 7), at(4, 7), "case:x"), [Change("put", "a", "2")])
    log.commit(CommitKey(at(4, 9), at(4, 9), "today", (START + timedelta(days=4)).date()), [Change("put", "a", "3")])
    log.commit(CommitKey(at(4, 15), at(4, 15), "case:y"), [Change("put", "a", "4")])

    def seen(text: str) -> str | None:
        return log.state_at(log.length_at(parse_stamp(text, "UTC"))).get("a")

    assert seen("2020-01-04") is None
    assert seen("2020-01-05") == "2"
    assert seen("2020-01-06") == "4"
    assert seen("2020-01-05 09:00") == "2"
    assert seen("2020-01-05 09:01") == "3"
    assert seen("2020-01-05 15:01") == "4"


@given(records, st.integers(0, 20), st.integers(0, 30))
def test_the_prefix_that_a_decision_knows_is_the_longest(
    drawn: list[tuple[int, list[Change]]], day: int, hours: int
) -> None:
    log = MemoryLog()
    for i, (number, some) in enumerate(sorted(drawn, key=lambda r: r[0])):
        when = START + timedelta(days=number, hours=i)
        log.commit(CommitKey(when, when, f"r{i:02d}", when.date() if i % 2 else None), some)
    for text in (f"{at(day, 0):%Y-%m-%d}", f"{at(day, hours):%Y-%m-%d %H:%M}"):
        decision = parse_stamp(text, "UTC")
        known = [op.key.known_to(decision) for op in log.ops]
        assert log.length_at(decision) == (known.index(False) if False in known else len(known))


def test_what_happened_is_counted_and_changes_nothing() -> None:
    log = MemoryLog()
    log.commit(CommitKey(START, START, "a"), [Change("put", "x", "1"), Change("odd", None), Change("odd", None)])
    log.commit(CommitKey(START, START, "b"), [])
    assert log.incidents() == {"odd": 2}
    assert dict(log.final_state()) == {"x": "1"}


def test_a_scope_has_a_state_of_its_own() -> None:
    log = MemoryLog()
    log.commit(CommitKey(START, START, "a", scope="s"), [Change("put", "x", "1")])
    log.commit(CommitKey(START, START, "b", scope="t"), [Change("put", "y", "2")])
    assert dict(log.final_state("s")) == {"x": "1"}
    assert dict(log.final_state()) == {"x": "1", "y": "2"}
    again = MemoryLog(ops_of(log.rows()))
    assert (again.sha256(), dict(again.final_state("t"))) == (log.sha256(), {"y": "2"})
