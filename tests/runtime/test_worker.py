from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from kdsl.runtime.worker import Worker, WorkerDied, WorkerError, WorkerTimeout, close_all, worker

FUNCTIONS = "tests.runtime.worker_functions"


@pytest.fixture
def process() -> Iterator[Worker]:
    each = Worker("test", {"FLAVOUR": "plain"})
    yield each
    each.close()


def process_id(each: Worker) -> int:
    pid = each.call(f"{FUNCTIONS}:process_id", {}).values["pid"]
    assert isinstance(pid, int)
    return pid


def alive(pid: int) -> bool:
    """Running, not merely unreaped. A leader can be a zombie while its threads are still ending."""
    process = Path(f"/proc/{pid}")
    try:
        state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        return state not in "ZX" or len(list((process / "task").iterdir())) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_dead(pid: int, seconds: float = 5) -> bool:
    deadline = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


OWN_DTYPES = ["bool", "int8", "uint64", "float16", "float32", "complex64"]
REGISTERED_DTYPES = [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4]


@pytest.mark.parametrize("dtype", [*OWN_DTYPES, *REGISTERED_DTYPES])
def test_arrays_come_back_bit_for_bit(process: Worker, dtype: str | type) -> None:
    array = np.arange(-3, 3).reshape(2, 3).T.astype(dtype)  # not contiguous
    reply = process.call(f"{FUNCTIONS}:echo", {"text": "h\u00e9"}, {"../a": array, "scalar": array[0, 0].reshape(())})
    assert reply.values == {"text": "h\u00e9", "dtypes": {"../a": array.dtype.name, "scalar": array.dtype.name}}
    assert reply.arrays["../a"].dtype == array.dtype
    assert reply.arrays["../a"].tobytes() == array.tobytes()
    assert reply.arrays["scalar"].shape == ()


def test_nan_payloads_and_empty_arrays_survive(process: Worker) -> None:
    bits = np.array([0x7FC1, 0xFFFF, 0x8000, 0x0001], np.uint16)
    arrays = {"nan": bits.view(ml_dtypes.bfloat16), "empty": np.zeros((0, 3), np.float32)}
    reply = process.call(f"{FUNCTIONS}:echo", {}, arrays)
    assert reply.arrays["nan"].view(np.uint16).tolist() == bits.tolist()
    assert reply.arrays["empty"].shape == (0, 3)


@pytest.mark.parametrize("array", [np.array([object()]), np.array(["text"]), np.zeros(2, ">f4")])
def test_an_array_that_would_need_pickle_is_not_sent(process: Worker, array: np.ndarray) -> None:
    with pytest.raises(TypeError, match="'bad'"):
        process.call(f"{FUNCTIONS}:echo", {}, {"bad": array})
    assert process.call(f"{FUNCTIONS}:echo", {"still": "working"}).values["still"] == "working"


def test_the_process_is_reused_and_has_its_environment(process: Worker) -> None:
    first, second = (process.call(f"{FUNCTIONS}:process_id", {}).values for _ in range(2))
    assert first == second
    assert first["pid"] != os.getpid()
    assert first["flavour"] == "plain"


def test_an_exception_arrives_with_its_kind_and_message_and_the_worker_lives_on(process: Worker) -> None:
    before = process_id(process)
    with pytest.raises(WorkerError) as caught:
        process.call(f"{FUNCTIONS}:fail", {"message": "no such layout"})
    assert (caught.value.kind, caught.value.message, str(caught.value)) == (
        "ValueError",
        "no such layout",
        "no such layout",
    )
    assert "worker_functions.py" in caught.value.detail
    assert process_id(process) == before


@pytest.mark.parametrize(("given", "line"), [(7, 7), (None, None), ("7", None), (True, None)])
def test_an_exception_that_knows_a_line_hands_it_over(process: Worker, given: object, line: int | None) -> None:
    with pytest.raises(WorkerError) as caught:
        process.call(f"{FUNCTIONS}:fail_at", {"line": given})
    assert (caught.value.kind, caught.value.line) == ("PlacedError", line)


def test_an_exception_without_a_line_has_none(process: Worker) -> None:
    with pytest.raises(WorkerError) as caught:
        process.call(f"{FUNCTIONS}:fail", {"message": "no such layout"})
    assert caught.value.line is None


def test_temporary_files_of_a_killed_worker_go_with_it(process: Worker) -> None:
    values = process.call(f"{FUNCTIONS}:leave_files", {}).values
    left = [Path(path) for path in values["left"]]
    assert all(path.exists() and path.parent == Path(values["scratch"]) for path in left)
    os.kill(process_id(process), 9)
    process.close()
    assert not any(path.exists() for path in left)
    assert not Path(values["scratch"]).parent.exists()


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (f"{FUNCTIONS}:unsendable", "TypeError"),
        (f"{FUNCTIONS}:leave", "SystemExit"),
        (f"{FUNCTIONS}:missing", "AttributeError"),
        ("no_such_module:f", "ModuleNotFoundError"),
    ],
)
def test_a_call_that_cannot_work_is_an_error_not_a_death(process: Worker, function: str, kind: str) -> None:
    with pytest.raises(WorkerError) as caught:
        process.call(function, {})
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("abort", "was killed by SIGABRT"),
        ("segfault", "was killed by SIGSEGV"),
        ("exit_at_once", "exited with status 7"),
    ],
)
def test_a_death_is_reported_and_the_next_call_has_a_new_process(process: Worker, function: str, reason: str) -> None:
    before = process_id(process)
    with pytest.raises(WorkerDied, match=reason) as caught:
        process.call(f"{FUNCTIONS}:{function}", {})
    assert ("something fatal" in caught.value.detail) == (function == "abort")
    assert process_id(process) != before


def test_a_worker_that_dies_between_calls_is_replaced(process: Worker) -> None:
    before = process_id(process)
    os.kill(before, 9)
    assert wait_until_dead(before)
    assert process_id(process) != before


@pytest.mark.parametrize("function", ["sleep", "chatter"])
def test_a_call_past_its_time_is_killed(process: Worker, function: str) -> None:
    before = process_id(process)
    started = time.monotonic()
    with pytest.raises(WorkerTimeout, match=r"0\.5 s"):
        process.call(f"{FUNCTIONS}:{function}", {"seconds": 60}, timeout=0.5)
    assert time.monotonic() - started < 10
    assert wait_until_dead(before)
    assert process_id(process) != before


def test_closing_every_pipe_cannot_hang_the_owner(process: Worker) -> None:
    started = time.monotonic()
    with pytest.raises(WorkerDied, match="was killed by SIGKILL"):
        process.call(f"{FUNCTIONS}:close_every_pipe", {})
    assert time.monotonic() - started < 10


def test_a_memory_hog_is_killed_at_its_limit() -> None:
    hog = Worker("hog", memory_bytes=512 << 20)
    try:
        with pytest.raises(WorkerDied, match=r"memory limit \(0\.5 GiB\)"):
            hog.call(f"{FUNCTIONS}:hog", {}, timeout=60)
    finally:
        hog.close()


def test_printing_cannot_forge_or_block_the_reply(process: Worker) -> None:
    reply = process.call(f"{FUNCTIONS}:print_much", {})
    assert reply.values == {"answer": 42, "input": ""}


def test_close_ends_a_call_in_progress_and_removes_the_folder(process: Worker) -> None:
    folder = Path(process.call(f"{FUNCTIONS}:process_id", {}).values["folder"])
    assert folder.stat().st_mode & 0o077 == 0
    failures: list[BaseException] = []

    def call() -> None:
        try:
            process.call(f"{FUNCTIONS}:sleep", {"seconds": 60})
        except WorkerDied as error:
            failures.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    time.sleep(0.3)
    process.close()
    thread.join(timeout=10)
    assert len(failures) == 1
    assert not folder.exists()


def test_threads_take_turns_and_a_worker_outlives_the_thread_that_started_it(process: Worker) -> None:
    answers: list[tuple[int, int]] = []

    def call(number: int) -> None:
        reply = process.call(f"{FUNCTIONS}:echo", {"number": number}, {"a": np.full(1000, number)})
        answers.append((reply.values["number"], int(reply.arrays["a"].sum()) // 1000))

    threads = [threading.Thread(target=call, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [(number, number) for number in range(6)]
    assert process_id(process) == process_id(process)


def test_the_pool_shares_by_name_and_environment() -> None:
    assert worker("a", {"X": "1"}) is worker("a", {"X": "1"})
    assert worker("a", {"X": "1"}) is not worker("a", {"X": "2"})
    pid = process_id(worker("a", {"X": "1"}))
    close_all()
    assert wait_until_dead(pid)


OWNER = f"""
import sys
from kdsl.runtime.worker import worker
worker("orphan").call("{FUNCTIONS}:sleep", {{"seconds": float(sys.argv[2]), "pid_file": sys.argv[1]}})
"""


@pytest.mark.parametrize("busy", [True, False])
def test_a_worker_dies_with_its_owner(tmp_path: Path, busy: bool) -> None:
    """Killed in the middle of a call, and ended normally with the worker idle."""
    pid_file = tmp_path / "pid"
    # TMPDIR: an owner that is killed cannot remove its worker's folder.
    paths = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": paths, "TMPDIR": str(tmp_path)}
    arguments = [sys.executable, "-c", OWNER, str(pid_file), "60" if busy else "0"]
    owner = subprocess.Popen(arguments, env=environment)
    if busy:
        deadline = time.monotonic() + 20
        while not (pid_file.exists() and pid_file.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert alive(int(pid_file.read_text()))
        owner.kill()
    assert owner.wait(timeout=20) == (-9 if busy else 0)
    assert wait_until_dead(int(pid_file.read_text()))
