"""Measures a canonicalizer from PyPI, over this process's CPU time.

    canonicalizers.py jcs-admit|rfc8785|orjson FILE [SECONDS]     without SECONDS: writes what it makes of the file

orjson sorts members and is not RFC 8785: a bound for speed, no peer in function."""

import json
import sys
import time

import jcs_admit
import orjson
import rfc8785

PEERS = {
    "jcs-admit": jcs_admit.admit,
    "rfc8785": lambda data: rfc8785.dumps(json.loads(data)),
    "orjson": lambda data: orjson.dumps(orjson.loads(data), option=orjson.OPT_SORT_KEYS),
}

run = PEERS[sys.argv[1]]
with open(sys.argv[2], "rb") as file:
    data = file.read()
if len(sys.argv) == 3:
    sys.stdout.buffer.write(run(data))
    sys.exit()
calls, start = 0, time.process_time()
while (elapsed := time.process_time() - start) < float(sys.argv[3]):
    run(data)
    calls += 1
print(f"mb_per_s={len(data) * calls / elapsed / 1e6}")
