"""Runs tests of a program that was built, and says what their verdict on a mutant is."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

# Seconds for the tests that one filter names. They take a few; a request that hangs ends by itself
# in 60.
PATIENCE = 180


def run(program, folder, filters, grace=None):
    """Runs tests in a folder; what the library reported, the exit status, and whether they had to be ended.
    With `grace` they are, so many seconds after one has failed."""
    events = program.parent / "events.json"
    events.unlink(missing_ok=True)
    command = [program, "--testing-library", "swift-testing", "--event-stream-version", "0",
               "--event-stream-output-path", events,
               "--experimental-maximum-parallelization-width", "4"]
    for tests in filters:
        command += ["--filter", tests]
    environment = {**os.environ, "SWIFT_BACKTRACE": "enable=no"}
    process = subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + PATIENCE * len(filters)
    try:
        while (left := until - time.monotonic()) > 0:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(min(left, 1))
                return reported(events), status, False
            if grace and judge(reported(events), None, False, False)[0] == "killed":
                until, grace = min(until, time.monotonic() + grace), None
        return reported(events), None, True
    finally:
        end(process)


def end(process):
    """Ends the tests and what they started. What cleans up after a process that is gone has the
    time to do so."""
    process.kill()
    process.wait()
    for patience in (5, 0):
        while left := in_session(process.pid):
            if patience <= 0:
                for each in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(each, signal.SIGKILL)
                break
            time.sleep(0.1)
            patience -= 0.1


def in_session(leader):
    found = []
    for process in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, session = process.read_text().rpartition(")")[2].split()[:4]
            if session == str(leader) and state != "Z":
                found.append(int(process.parent.name))
    return found


def reported(events):
    records = []
    for line in events.read_text(errors="replace").splitlines() if events.exists() else []:
        with contextlib.suppress(ValueError):  # the last line of a process that goes on, or was ended
            records.append(json.loads(line))
    return records


def judge(records, status, timed_out, hang_is_red):
    """('killed' | 'survived' | 'error', what to tell of it)."""
    names = {}
    failed, ended = [], 0
    for record in records:
        content = record.get("payload", {})
        if record.get("kind") == "test":
            names[content.get("id")] = content.get("displayName") or content.get("name")
        elif content.get("kind") == "issueRecorded":
            issue = content.get("issue", {})
            if not issue.get("isKnown") and issue.get("severity", "error") == "error":
                failed.append(content.get("testID"))
        elif content.get("kind") == "testEnded":
            ended += 1
    if failed:
        told = list(dict.fromkeys(names.get(test) or str(test) for test in failed))
        more = f" and {len(told) - 3} more" if len(told) > 3 else ""
        return "killed", "; ".join(f'"{name}"' for name in told[:3]) + more
    if timed_out:
        if hang_is_red:
            return "killed", "they never end"
        return "error", f"the tests did not end within {PATIENCE} s"
    if status is not None and status < 0:
        return "error", f"the tests crashed with signal {-status}"
    if not ended:
        return "error", "no test ran"
    if status:
        return "error", f"no issue was recorded, and the exit status is {status}"
    return "survived", f"{ended} tests and suites passed"


def self_test():
    def event(kind, **content):
        return {"kind": "event", "payload": {"kind": kind, **content}}

    named = {"kind": "test", "payload": {"id": "A.B/c()", "name": "c()", "displayName": "says c"}}
    issue = event("issueRecorded", testID="A.B/c()", issue={"isKnown": False})
    known = event("issueRecorded", testID="A.B/c()", issue={"isKnown": True})
    warning = event("issueRecorded", testID="A.B/c()", issue={"isKnown": False, "severity": "warning"})
    end = event("testEnded", testID="A.B/c()")
    cases = [
        ("killed", ([named, issue, end], 1, False, False)),
        ("killed", ([named, issue], -11, False, False)),
        ("killed", ([named, issue], None, True, False)),
        ("killed", ([named], None, True, True)),
        ("survived", ([named, end], 0, False, False)),
        ("survived", ([named, known, end], 0, False, False)),
        ("survived", ([named, warning, end], 0, False, True)),
        ("error", ([named], None, True, False)),
        ("error", ([named, end], -11, False, True)),
        ("error", ([named], 0, False, False)),
        ("error", ([], 1, False, False)),
        ("error", ([named, end], 1, False, False)),
    ]
    wrong = [(case, found) for wanted, case in cases if (found := judge(*case))[0] != wanted]
    wrong += [] if judge(*cases[0][1])[1] == '"says c"' else ["the test's own words are not told"]
    return wrong
