"""One file that takes too long to read does not stop a scan."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from downriver.capture.code import CodeJob
from downriver.capture.scan import scanner
from downriver.capture.scan.python import FileContext, PythonFile
from downriver.model.unread import UnreadReason
from downriver.reading_limits import OutOfTimeError, processor_time
from downriver.service import Lineage


def spin() -> None:
    while True:
        pass


def test_code_that_takes_too_long_is_stopped_and_the_timer_ends() -> None:
    before = signal.getsignal(signal.SIGPROF)
    with pytest.raises(OutOfTimeError), processor_time(1):
        spin()
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGPROF) is before


def test_an_outer_limit_stays_in_force() -> None:
    with pytest.raises(OutOfTimeError), processor_time(1), processor_time(1000):
        spin()


def test_other_threads_run_without_a_limit() -> None:
    done = []

    def work() -> None:
        with processor_time(1):
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]


def test_a_scan_reports_a_slow_file_and_reads_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_module = scanner.read_module

    def slow(file: PythonFile, context: FileContext) -> list[CodeJob]:
        if file.path == "slow.py":
            spin()
        return read_module(file, context)

    monkeypatch.setattr(scanner, "read_module", slow)
    monkeypatch.setenv("DOWNRIVER_CODE_SECONDS", "1")
    for name in ("first", "slow", "zlast"):
        (tmp_path / f"{name}.py").write_text(
            f"import pandas as pd\npd.read_csv('{name}_in.csv').to_csv('{name}_out.csv')\n"
        )
    with Lineage.open(str(tmp_path / "store")) as lineage:
        found = lineage.capture.scan(tmp_path)
    assert {job.path for job in found.jobs} == {"first.py", "zlast.py"}
    assert [(u.path, u.reason) for u in found.unread] == [("slow.py", UnreadReason.TOO_SLOW)]
