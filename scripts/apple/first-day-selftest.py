#!/usr/bin/env python3
"""Shows here what can be shown of first-day.sh without a Mac: its plan is the document's, it refuses what
it cannot do, and its servers give out tickets, take them back, and log it.

    first-day-selftest.py              all of that
    first-day-selftest.py PROBE        and a probe that is built already: scripts/apple/probe
"""

import os
import platform
import re
import shutil
import socket
import ssl
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "scripts/apple/first-day.sh"
DOCUMENT = ROOT / "docs/first-day-on-a-mac.md"
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \|", re.M)

# What the probe says on Linux, where no TLS session is resumed and a refusal carries its verdict.
ANSWERS = [r"4\tTLS 1\.[23], right pin: answered 200", r"5\tTLS 1\.[23], wrong pin: failed .*verdict: refused",
           r"6\thttp: failed", r"9\tTLS 1\.[23], [12]: answered 200",
           r"9\tTLS 1\.[23]: [1-9]\d* verdicts", r"10\tTLS 1\.[23], wrong pin after .*: failed"]


def client():
    """Two connections over each version of TLS, the second with the first one's ticket."""
    trusting = ssl.create_default_context(cadata=Path(os.environ["PROBE_ANCHOR"]).read_bytes())
    for version, port in (("1.2", "PROBE_TLS12"), ("1.3", "PROBE_TLS13")):
        session = None
        for name in ("first", "second"):
            with socket.create_connection(("127.0.0.1", int(os.environ[port])), 10) as plain:
                with trusting.wrap_socket(plain, server_hostname="localhost",
                                          session=session) as secure:
                    secure.sendall(f"GET /9-{name} HTTP/1.0\r\n\r\n".encode())
                    answer = secure.recv(4096).decode()
                    session = secure.session
            print(f"9\tTLS {version}, {name}: {answer.split()[1]}")


def results(*probe):
    """The lines of results.tsv, without the system."""
    done = subprocess.run([SCRIPT, "--probe", *probe], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"first-day: self-test: the servers do not start\n{done.stdout}{done.stderr}")
    return [line.rsplit("\t", 1)[0] for line in done.stdout.splitlines()]


def main():
    failures = []

    def expect(holds, otherwise):
        if not holds:
            failures.append(otherwise)

    plan = subprocess.run([SCRIPT, "--dry-run"], check=True, capture_output=True, text=True).stdout
    planned = [tuple(line.split("\t")[:2]) for line in plan.splitlines()]
    expect(planned == ROW.findall(DOCUMENT.read_text()),
           f"{DOCUMENT.name} and --dry-run have different plans")
    expect([number for number, _ in planned] == [str(n) for n in range(1, 25)], "not 24 tests")
    refused = [["no-step"]] + ([] if platform.system() == "Darwin" else [["build"]])
    for arguments in refused:
        done = subprocess.run([SCRIPT, *arguments], capture_output=True)
        expect(done.returncode != 0, f"{arguments} is not refused")
    if not shutil.which("nginx"):
        print("first-day: self-test: servers skipped, there is no nginx")
    else:
        seen = results(sys.executable, __file__, "client")
        for version in ("2", "3"):
            for name, resumed in (("first", "."), ("second", "r")):
                for line in (f"9\tTLS 1.{version}, {name}: 200",
                             f"9\tthe server saw 9-{name} over TLSv1.{version}, resumed: {resumed}"):
                    expect(line in seen, f"no line {line!r}")
    for probe in sys.argv[1:]:
        seen = results(probe)
        print("\n".join(seen))
        for answer in ANSWERS:
            expect(any(re.match(answer, line) for line in seen), f"no line like {answer!r}")
        expect(not any(line.startswith(("error", "5\tthe server", "6\tthe server", "10\tthe server"))
                       or line.endswith("resumed: r") for line in seen), "a request left")
    for failure in failures:
        print(f"first-day: self-test: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(client() if sys.argv[1:] == ["client"] else main())
