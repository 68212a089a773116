"""The rules of the scenario ``flush`` on traces short enough to judge by eye."""

from __future__ import annotations

import pytest

from tools.harness.flush import Report, check

STORE = "/d/s.db"
TRY = '10  write(1<pipe:[7]>, "try 3 create aa 1.3.0\\n", 22) = 22'
ACK = '10  write(1<pipe:[7]>, "ack 3 create aa 17\\n", 19) = 19'
WRITE = '11  pwrite64(4</d/s.db-wal>, "\\0\\0) = 9 <\\"", 24, 32) = 24'
SYNC = "11  fdatasync(4</d/s.db-wal>)    = 0"
WRITE_DB = '11  pwrite64(3</d/s.db>, "x", 1, 0) = 1'
SYNC_DB = "11  fsync(3</d/s.db>)    = 0"
OPEN_DB = '11  openat(AT_FDCWD</>, "/d/s.db", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = 3</d/s.db>'
OPEN_LOG = '11  openat(AT_FDCWD</>, "/d/s.db-wal", O_RDWR|O_CREAT, 0644) = 4</d/s.db-wal>'
SYNC_NAMES = "11  fdatasync(5</d>)    = 0"


def run(*lines: str, new: bool = False) -> Report:
    return check(lines, STORE, new=new)


def reason(*lines: str, new: bool = False) -> str:
    """The one violation of a trace with one acknowledgement."""
    report = run(*lines, new=new)
    assert report.acknowledgements == 1
    (violation,) = report.violations
    return violation


def test_flushed_then_acknowledged() -> None:
    report = run(TRY, WRITE, WRITE, SYNC, ACK)
    assert report.violations == []
    assert report.acknowledgements == 1
    assert (report.log.changes, report.log.flushes) == (2, 1)


def test_missing_flush() -> None:
    expected = "line 3: '3 create aa' is acknowledged, but 1 changes of /d/s.db-wal are not flushed"
    assert reason(TRY, WRITE, ACK) == expected


def test_flush_after_the_acknowledgement() -> None:
    assert "not flushed" in reason(TRY, WRITE, ACK, SYNC)


def test_change_after_the_flush() -> None:
    assert "1 changes" in reason(TRY, WRITE, SYNC, WRITE, ACK)


@pytest.mark.parametrize(
    "call",
    [
        '11  write(4</d/s.db-wal>, "x", 1) = 1',
        "11  ftruncate(4</d/s.db-wal>, 0) = 0",
        '11  pwritev(4</d/s.db-wal>, [{iov_base="x", iov_len=1}], 1, 0) = 1',
    ],
)
def test_other_calls_that_change_a_file(call: str) -> None:
    assert "not flushed" in reason(TRY, WRITE, SYNC, call, ACK)


def test_flush_of_the_other_file() -> None:
    assert "/d/s.db are not flushed" in reason(TRY, WRITE, SYNC, WRITE_DB, SYNC, ACK)
    assert run(TRY, WRITE, SYNC, WRITE_DB, SYNC_DB, ACK).violations == []


@pytest.mark.parametrize("result", ["-1 EIO (Input/output error)", "?"])
def test_flush_that_failed(result: str) -> None:
    failed = f"11  fdatasync(4</d/s.db-wal>)    = {result}"
    assert "not flushed" in reason(TRY, WRITE, failed, ACK)


def test_unfinished_flush_at_the_time_of_the_acknowledgement() -> None:
    start, end = "11  fdatasync(4</d/s.db-wal> <unfinished ...>", "11  <... fdatasync resumed>) = 0"
    assert "not flushed" in reason(TRY, WRITE, start, ACK, end)
    assert run(TRY, WRITE, start, end, ACK).violations == []


def test_acknowledgement_counts_from_its_start() -> None:
    start = '10  write(1<pipe:[7]>, "ack 3 create aa 17\\n", 19 <unfinished ...>'
    end = "10  <... write resumed>) = 19"
    assert reason(TRY, WRITE, start, SYNC, end).startswith("line 3: ")
    assert run(TRY, WRITE, SYNC, start, end).violations == []


def test_flush_that_began_before_the_write_returned() -> None:
    start = '12  pwrite64(4</d/s.db-wal>, "x", 1, 0 <unfinished ...>'
    end = "12  <... pwrite64 resumed>) = 1"
    assert "not flushed" in reason(TRY, start, SYNC, end, ACK)
    assert "not flushed" in reason(TRY, start, SYNC, ACK, end)
    assert run(TRY, start, end, SYNC, ACK).violations == []


def test_flushes_of_two_threads_each_cover_what_came_before_them() -> None:
    early = "12  fdatasync(4</d/s.db-wal> <unfinished ...>"
    early_end = "12  <... fdatasync resumed>) = 0"
    assert "1 changes" in reason(TRY, WRITE, early, WRITE, early_end, ACK)
    assert run(TRY, WRITE, early, WRITE, SYNC, early_end, ACK).violations == []


def test_acknowledgement_before_its_own_write() -> None:
    """Everything is flushed, but only because nothing was written yet."""
    assert "before anything was written" in reason(WRITE, SYNC, TRY, ACK, WRITE, SYNC)


def test_acknowledgement_of_what_nobody_tried() -> None:
    assert "no task tried it" in reason(WRITE, SYNC, ACK)


def test_names_of_new_files_are_flushed() -> None:
    made = (OPEN_DB, SYNC_NAMES, OPEN_LOG, TRY, WRITE, SYNC)
    assert "1 changes of /d are not flushed" in reason(*made, ACK, new=True)
    assert run(*made, SYNC_NAMES, ACK, new=True).violations == []
    assert run(*made, OPEN_LOG, SYNC_NAMES, OPEN_LOG, ACK, new=True).violations == []
    assert run(*made, ACK).violations == []


def test_writable_mapping_hides_writes() -> None:
    call = "11  mmap(NULL, 8, {}, {}, 4</d/s.db-wal>, 0) = 0xffff"
    assert "mapped for writing" in reason(
        TRY, call.format("PROT_READ|PROT_WRITE", "MAP_SHARED"), WRITE, SYNC, ACK
    )
    for harmless in (("PROT_READ", "MAP_SHARED"), ("PROT_READ|PROT_WRITE", "MAP_PRIVATE")):
        assert run(TRY, call.format(*harmless), WRITE, SYNC, ACK).violations == []


def test_other_files_and_notes_do_not_matter() -> None:
    others = (
        '11  pwrite64(5</d/s.db-shm>, "\\0", 1, 4095) = 1',
        '10  write(2</dev/pts/0>, "ack", 3) = 3',
        "10  --- SIGCHLD {si_signo=SIGCHLD} ---",
        "12  +++ exited with 0 +++",
        '10  openat(AT_FDCWD</>, "/etc/x", O_RDONLY) = -1 ENOENT (No such file or directory)',
    )
    report = run(TRY, WRITE, SYNC, *others, ACK, new=True)
    assert (report.acknowledgements, report.violations) == (1, [])


def test_timestamps_are_skipped() -> None:
    stamped = [f"{line[:4]}1760000000.000001 {line[4:]}" for line in (TRY, WRITE, SYNC, ACK)]
    assert run(*stamped).acknowledgements == 1


@pytest.mark.parametrize(
    "line",
    [
        "",
        "hello",
        "11  fdatasync(4</d/s.db-wal>",
        "11  <... fdatasync resumed>) = 0",
        '10  write(1<pipe:[7]>, "ack 3 create a"..., 90) = 90',
        '10  write(1<pipe:[7]>, "ack 3 create aa 1\\nack 4 create bb 2\\n", 36) = 36',
    ],
)
def test_what_is_not_understood_is_not_passed_over(line: str) -> None:
    with pytest.raises(ValueError, match="line 1"):
        run(line)
