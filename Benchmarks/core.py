"""Measures `core` beside canonicalizers from PyPI, in turns within one run.

    core.py CORE [ROUNDS [SECONDS]]

- Every figure is over CPU time of the process that does the work, and every round gives each
  program its turn, so that what else the machine does hits all of them. Only ratios mean something.
- Fails where the median ratio to jcs-admit is below 3.5, or where the outputs differ.
"""

import base64
import datetime
import hashlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jcs_admit
import orjson
import rfc8785

FLOOR = 3.5
HOSTS = 1000
CERTIFICATE = (Path(__file__).resolve().parent.parent
               / "Vectors/spki-pins/known/mozilla-GTS_Root_R1.der")
PEERS = {
    "jcs_admit": jcs_admit.admit,
    "rfc8785": lambda data: rfc8785.dumps(json.loads(data)),
    "orjson_sorted": lambda data: orjson.dumps(orjson.loads(data), option=orjson.OPT_SORT_KEYS),
}


def payload():
    """A format-1 payload as servers in the field write it: indented, members in order."""
    start = datetime.datetime(2026, 1, 1)
    keys = []
    for number in range(HOSTS):
        seen = start + datetime.timedelta(minutes=37 * number)
        digest = hashlib.sha256(b"key %d" % number).digest()
        keys.append({
            "date": seen.isoformat() + ".%09dZ" % (number * 7_919_993 % 10**9),
            "domainName": f"*.host-{number}.example.com",
            "expire": 1_800_000_000 + 3_600 * number,
            "fqdn": f"www.host-{number}.example.com",
            "key": base64.b64encode(digest).decode(),
        })
    return json.dumps({"keys": keys}, indent=2).encode()


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def figures(*command):
    lines = output(*command).decode().split()
    return {name: float(value) for name, value in (line.split("=") for line in lines)}


def peer_speed(canonicalize, data, seconds):
    calls, start = 0, time.process_time()
    while (elapsed := time.process_time() - start) < seconds:
        canonicalize(data)
        calls += 1
    return len(data) * calls / elapsed / 1e6


def line(values):
    return " ".join(f"{name}={value:.2f}" if value < 1000 else f"{name}={value:.0f}"
                    for name, value in values.items())


def signed_document(folder, core, data):
    """The payload under a fresh RSA-4096 key: the files of the document and of the public key."""
    private, public = folder / "prv.pem", folder / "pub.pem"
    canonical, document = folder / "canonical.json", folder / "document.json"
    output("openssl", "genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:4096",
           "-out", private)
    output("openssl", "pkey", "-in", private, "-pubout", "-out", public)
    canonical.write_bytes(output(core, "canonical", folder / "payload.json"))
    signature = output("openssl", "dgst", "-sha512", "-sign", private, canonical)
    document.write_text(json.dumps(
        {"payload": json.loads(data), "signature": base64.b64encode(signature).decode()}))
    return document, public


def main():
    core, *numbers = sys.argv[1:]
    rounds = int(numbers[0]) if numbers else 5
    seconds = float(numbers[1]) if len(numbers) > 1 else 1.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data, file = payload(), folder / "payload.json"
        file.write_bytes(data)
        ours = output(core, "canonical", file)
        for peer in ("jcs_admit", "rfc8785"):
            if PEERS[peer](data) != ours:
                print(f"bench-core: {peer} gives another canonical form")
                return 1
        print(f"payload: {HOSTS} keys, {len(data)} bytes, canonical form the same in all")
        seen = []
        for number in range(rounds):
            speeds = figures(core, "canonicalize", file, str(seconds))
            speeds |= {f"{peer}_mb_per_s": peer_speed(run, data, seconds)
                       for peer, run in PEERS.items()}
            speeds["ratio"] = speeds["canonicalize_mb_per_s"] / speeds["jcs_admit_mb_per_s"]
            seen.append(speeds)
            print(f"round {number + 1}: {line(speeds)}")
        print(line(figures(
            core, "registry", *signed_document(folder, core, data), CERTIFICATE, str(seconds))))
    median = {key: statistics.median(speeds[key] for speeds in seen) for key in seen[0]}
    print(line(median))
    if median["ratio"] < FLOOR:
        print(f"bench-core: {median['ratio']:.2f} times jcs-admit; at least {FLOOR} is wanted")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
