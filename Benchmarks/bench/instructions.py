"""Instructions of the pure functions under callgrind: time is too noisy to hold a change against.

- A call's are those of a longer run less those of a shorter one, so that the program's start cancels out.
- Hash seeds are fixed, and debug information is stripped: valgrind 3.19 cannot read what Swift 6 writes. Programs
  with an asynchronous `main` crash it when the main thread ends, so `core` has none.
- valgrind's processor knows AVX2 and no SHA extensions: code of OpenSSL's counts differently than on the machine."""

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import lists
import sdk
import tools


def counted(program, *arguments):
    def total(calls):
        done = tools.output("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, *arguments,
                            f"{calls}x", env={**os.environ, "SWIFT_DETERMINISTIC_HASHING": "1"}, stderr_too=True)
        return int(re.search(r"Collected : (\d+)", done.decode())[1])

    few, many = 4, 12
    return (total(many) - total(few)) // (many - few)


def allocations(program, *arguments):
    """Of one call, by valgrind's count of them."""
    def total(calls):
        done = tools.output("valgrind", "--leak-check=no", "--undef-value-errors=no", program, *arguments, f"{calls}x",
                            env={**os.environ, "SWIFT_DETERMINISTIC_HASHING": "1"}, stderr_too=True)
        return int(re.search(r"total heap usage: ([\d,]+) allocs", done.decode())[1].replace(",", ""))

    return round((total(1100) - total(100)) / 1000, 2)


def all_(shop):
    """{function: count}"""
    with tools.folder() as place, ThreadPoolExecutor(os.cpu_count()) as workers:
        documents, core = lists.Documents(place, shop.sdk / "core"), place / "core"
        shutil.copy(shop.sdk / "core", core)
        tools.output("strip", "--strip-debug", core)
        document, payload = documents.document(1000), documents.payload(1000)
        waiting = {
            "canonicalize": workers.submit(counted, core, "canonicalize", payload),
            "list": workers.submit(counted, core, "list", document, documents.public),
            "verdict": workers.submit(counted, core, "verdict", 1000, sdk.CERTIFICATE),
            "verdict_allocations": workers.submit(allocations, core, "verdict", 1000, sdk.CERTIFICATE),
        }
        return {name: job.result() for name, job in waiting.items()}
