#!/usr/bin/env python3
"""Type-checks what an app links, the sample app, and the documentation's listings for Apple's
systems, for Apple's triples, on a machine without Apple's SDK; and holds every symbol of Apple's
that they use against what Apple declares of it.

- The standard library is the toolchain's own: its textual interfaces, rewritten for the triple
  and compiled again. What it says of availability is true for the triple.
- Frameworks are stubs under scripts/apple/stubs, written by hand. facts.tsv has a row for every
  symbol of theirs that is used: Apple's declaration, its availability on each system, and the
  document that says so. A symbol without a row, and a stub that says otherwise than its row, fail.
- So this proves that the sources are consistent in themselves and with those rows. It does not
  prove that they build with Xcode, and nothing is linked or run. On arm64_32 pointers have 32 bits
  here, but `Int` keeps 64: the standard library was written for 64.

    check.py              check everything
    check.py --self-test  plant errors in a copy of every source file and expect each to be found

Everything generated lands under .build/apple.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "docs"))
import compiling  # noqa: E402
import facts  # noqa: E402
import listings  # noqa: E402
import selftest  # noqa: E402
from compiling import OUT, OUTSIDE, ROOT, TARGETS, Failed  # noqa: E402


def checked(triple):
    """What a system's sources use, after they were compiled for it. Raises Failed."""
    compiling.check(triple, ROOT)
    modules = OUT / triple / "modules"
    return [use for name in compiling.targets(triple)
            for use in compiling.indexed(name, triple, ROOT, modules, OUT / triple / "index" / name)]


def attempt(triple):
    try:
        return triple, checked(triple), None
    except Failed as failure:
        return triple, [], failure


def compare(uses):
    """Prints what differs from facts.tsv; says how many faults there are."""
    first = next(iter(compiling.triples()))
    compiling.declared(first, OUT / first / "modules", OUT / "declared")
    rows = facts.rows(facts.FACTS.read_text())
    symbols = facts.symbols(OUT / "declared")
    used = facts.by_symbol(uses, ROOT, compiling.FRAMEWORKS, TARGETS, symbols)
    faults, unused = facts.judge(rows, symbols, used, compiling.minimums())
    for fault in faults:
        print(f"check-apple: facts: {fault}")
    if unused:
        print("check-apple: facts: warning: nothing uses "
              + ", ".join(".".join(row.key) for row in unused))
    if not faults:
        print(f"check-apple: facts: ok, {len(rows) - len(unused)} declarations are as Apple's; of "
              f"{sum(row.source == 'no document' for row in rows)} no document was found")
    return len(faults)


def main():
    listings.write_apple(ROOT / OUTSIDE["Listings"])
    if sys.argv[1:] == ["--self-test"]:
        return selftest.run()
    if sys.argv[1:]:
        print(f"usage: {Path(sys.argv[0]).name} [--self-test]", file=sys.stderr)
        return 2
    uses, failed = [], 0
    with ThreadPoolExecutor(2) as pool:
        for triple, found, failure in pool.map(attempt, compiling.triples()):
            print(f"check-apple: {triple}: "
                  + (f"FAILED\n{failure}" if failure else "ok (type-checked against stubs)"))
            uses += found
            failed += failure is not None
    try:
        failed += 0 if failed else compare(uses)
    except facts.Malformed as malformed:
        print(f"check-apple: {malformed}")
        failed = 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
