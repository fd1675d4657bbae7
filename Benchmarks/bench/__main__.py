"""Runs suites of measurements, ours and the peers in turn, and writes what came of it.

    bench [--rows NAME,…] [--rounds N] [--seconds S]    Benchmarks/results, docs/performance.md and its plots
    bench --smoke                                       against Benchmarks/floors.json: fails below a floor"""

import argparse
import json
import os
import sys
import time
from datetime import date
from pathlib import Path

import instructions
import report
import sdk
import server
import tools
import turns

SUITES = {
    "client": sdk.client, "session": sdk.session, "list": sdk.lists_, "canonicalize": sdk.canonicalize,
    "verdict": sdk.verdict, "start": sdk.start, "size": sdk.size,
    "serve": server.serve, "probes": server.probes, "bytes": server.bytes_,
}
FLOORS = tools.ROOT / "Benchmarks/floors.json"
RESULTS = tools.ROOT / "Benchmarks/results"


def measure(name, shop, rounds, wanted=None):
    """The results of a suite, or of those cases of it that are wanted."""
    with SUITES[name](shop) as cases:
        cases = [case for case in cases if wanted is None or case.name in wanted]
        turns.in_turns(cases, rounds)
        return [turns.result(case, one) for case in cases for one in case.measures]


def smoke(shop):
    """Says what is below its floor, or above its ceiling."""
    limits, complaints = json.loads(FLOORS.read_text()), []
    for name, floors in limits["ratios"].items():
        wanted = {key.split(" ")[0] for key in floors}
        found = {f"{line['case']} {line['measure']}": line for line in measure(name, shop, 3, wanted)}
        for key, floor in floors.items():
            ratio = found[key]["ratio"]["median"]
            print(f"{key}: {ratio:.2f} times {found[key]['peer']}, floor {floor}")
            if ratio < floor:
                complaints.append(f"{key} is {ratio:.2f} times {found[key]['peer']}; its floor is {floor}")
    counts = instructions.all_(shop)
    for name, ceiling in limits["instructions"].items():
        print(f"{name}: {counts[name]:_}, ceiling {ceiling:_}".replace("_", " "))
        if counts[name] > ceiling:
            complaints.append(f"{name} takes {counts[name]}; its ceiling is {ceiling}")
    return complaints


def main():
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("--rows", default=",".join([*SUITES, "instructions"]))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("programs", nargs=3, type=Path, help="folders of the SDK's and the server's; the Go peer")
    options = parser.parse_args()
    names = options.rows.split(",")
    if unknown := [name for name in names if name not in SUITES and name != "instructions"]:
        sys.exit(f"bench: no such row: {', '.join(unknown)}; hint: {', '.join(SUITES)}")
    begin = time.monotonic()
    if options.smoke:
        complaints = smoke(tools.Shop(*options.programs, seconds=0.4, endpoints=1000))
        for complaint in complaints:
            print(f"bench-smoke: {complaint}")
        print(f"bench-smoke: {time.monotonic() - begin:.0f} s")
        return 1 if complaints else 0
    shop = tools.Shop(*options.programs, seconds=options.seconds, endpoints=10_000)
    RESULTS.mkdir(exist_ok=True)
    for name in names:
        print(f"{name}:", file=sys.stderr)
        facts = {"date": date.today().isoformat(), **tools.machine(sys.executable)}
        lines = ([{"case": key, "count": value} for key, value in instructions.all_(shop).items()]
                 if name == "instructions" else measure(name, shop, options.rounds))
        facts["load_after"] = round(os.getloadavg()[0], 2)
        (RESULTS / f"{name}.json").write_text(
            json.dumps({"machine": facts, "lines": lines}, indent=1, ensure_ascii=False) + "\n")
    report.write(RESULTS)
    print(f"bench: {time.monotonic() - begin:.0f} s; docs/performance.md is written")
    return 0


sys.exit(main())
