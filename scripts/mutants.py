#!/usr/bin/env python3
"""Does the suite notice when a rule is broken? Applies each patch of scripts/mutants/ to a copy
of the project, builds it, and runs the tests that its header names.

    scripts/mutants.py [PART-OF-A-NAME…]     all mutants, or those whose names have a part in them
    scripts/mutants.py --self-test

- A mutant is killed where it builds and a named test records an issue. A crash, a build that
  fails, and a filter that finds no test kill nothing: they are errors of the mutant. So is a
  time-out, unless the mutant's header `Hang:` says why it is red.
- First the control: without a patch all named tests pass.
- Copy and build folder stay in .build/mutants, so that only what changed is compiled again. Of the
  copy's manifest, only the test targets that a mutant's header names are built, with what these
  need: a change below must not compile the registry server for a test that never starts it.

Exit code 0: every mutant was killed, and (where all ran) every rule has one. 1: not so. 2: usage.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts/checks"))
sys.dont_write_bytecode = True
import checklib  # noqa: E402
import mutantlib  # noqa: E402

PLACE = ROOT / ".build/mutants"
TREE, BUILD, EVENTS = PLACE / "tree", PLACE / "build", PLACE / "events.json"
SWIFT = os.environ.get("SWIFT", "swift")
STRICT = ["--explicit-target-dependency-import-check", "error"]
TESTS = BUILD / "debug/ssl-pinningPackageTests.xctest"
# Seconds for the tests of one mutant. They take a few; a request that hangs ends by itself in 60.
PATIENCE = 180
# The lower a module, the more is compiled again for it: neighbours share that.
MODULES = ["CanonicalJSON", "SslPinningRules", "CSslPinningShims", "SslPinningPlatform", "SslPinning",
           "TLSTools", "RegistryCore", "RegistryStores", "RegistryServer", "ssl-pinning"]


class Failure(Exception):
    """What cannot be judged."""


def copy_project():
    """Writes what differs, and only that: the build goes by times."""
    names = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True).stdout.decode().split("\0")
    wanted = {name for name in names if name and (ROOT / name).is_file()}
    for folder, _, files in os.walk(TREE):
        for file in files:
            path = Path(folder, file)
            if str(path.relative_to(TREE)) not in wanted:
                path.unlink()
    for name in wanted:
        put(name, (ROOT / name).read_bytes())


def put(name, content):
    path = TREE / name
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod((ROOT / name).stat().st_mode & 0o777)


def named_targets(mutant):
    """The test targets that the header names."""
    return tuple(sorted(set(re.findall(r"\b(\w+Tests)\\\.", mutant.header("Tests")))))


def manifest(tests):
    """The project's manifest, cut down to these test targets and what they need; whole for none."""
    whole = (ROOT / "Package.swift").read_bytes()
    if not tests:
        return whole
    told = subprocess.run([SWIFT, "package", "dump-package"], cwd=ROOT, check=True,
                          capture_output=True).stdout
    needs = {target["name"]: [next(iter(each.values()))[0] for each in target["dependencies"]]
             for target in json.loads(told)["targets"]}
    wanted, left = set(), list(tests)
    while left:
        name = left.pop()
        if name not in wanted:
            wanted.add(name)
            left += needs[name]
    names = ", ".join(f'"{name}"' for name in sorted(wanted))
    return whole + (f"\nlet wanted: Set<String> = [{names}]\n"
                    "package.targets.removeAll { !wanted.contains($0.name) }\n"
                    "package.products.removeAll()\n").encode()


def build():
    done = subprocess.run(
        [SWIFT, "build", "--scratch-path", BUILD, "--build-tests", *STRICT],
        cwd=TREE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if " error: " in line]
        raise Failure("does not build: " + "; ".join(errors[:3] or done.stdout.splitlines()[-3:]))


def all_tests():
    done = subprocess.run([TESTS, "--testing-library", "swift-testing", "--list-tests"],
                          cwd=TREE, capture_output=True, text=True)
    if not done.stdout.strip():
        raise Failure("no tests are listed")
    return done.stdout.splitlines()


def run(filters):
    """Runs tests; what the library reported, the exit status, and whether they had to be ended."""
    EVENTS.unlink(missing_ok=True)
    command = [TESTS, "--testing-library", "swift-testing", "--event-stream-version", "0",
               "--event-stream-output-path", EVENTS,
               "--experimental-maximum-parallelization-width", "4"]
    for tests in filters:
        command += ["--filter", tests]
    environment = {**os.environ, "SWIFT_BACKTRACE": "enable=no"}
    process = subprocess.Popen(command, cwd=TREE, env=environment, start_new_session=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    timed_out = False
    try:
        status = process.wait(PATIENCE * len(filters))
    except subprocess.TimeoutExpired:
        timed_out = True
        status = None
    finally:
        # What the tests started ends with them, however they end.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    records = []
    for line in EVENTS.read_text(errors="replace").splitlines() if EVENTS.exists() else []:
        try:
            records.append(json.loads(line))
        except ValueError:
            pass  # the last line of a process that was ended
    return records, status, timed_out


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


def module(mutant):
    parts = sorted(filter(None, map(checklib.target_of, mutant.hunks)))
    return MODULES.index(parts[0]) if parts and parts[0] in MODULES else len(MODULES)


def try_out(mutant, manifest):
    """Judges one mutant, and takes it back."""
    put("Package.swift", manifest)
    try:
        applied = subprocess.run(
            ["git", "apply", ROOT / mutant.path], cwd=TREE, capture_output=True, text=True,
            env={**os.environ, "GIT_CEILING_DIRECTORIES": str(PLACE)})
        if applied.returncode:
            return "error", "does not apply: " + applied.stderr.strip()
        build()
        return judge(*run([mutant.header("Tests")]), bool(mutant.header("Hang")))
    except Failure as failure:
        return "error", str(failure)
    finally:
        for file in mutant.hunks:
            put(file, (ROOT / file).read_bytes())


def control(mutants):
    put("Package.swift", manifest({name for mutant in mutants for name in named_targets(mutant)}))
    filters = list(dict.fromkeys(mutant.header("Tests") for mutant in mutants))
    build()
    tests = all_tests()
    for mutant in mutants:
        if not any(re.search(mutant.header("Tests"), test) for test in tests):
            raise Failure(f"{mutant.name}: no test matches {mutant.header('Tests')}")
    # Once more if need be: a mutant must not be blamed for a busy machine, nor the control.
    for attempt in (1, 2):
        verdict, told = judge(*run(filters), False)
        if verdict == "survived":
            return told
        print(f"control: attempt {attempt}: {verdict}: {told}", flush=True)
    raise Failure("the tests fail without any patch")


def main(parts):
    texts = {str(path.relative_to(ROOT)): path.read_text()
             for path in sorted((ROOT / mutantlib.FOLDER).glob("*.patch"))}
    mutants = [mutantlib.parse(path, text) for path, text in texts.items()]
    missing = [rule for rule in mutantlib.RULES if rule not in {m.rule for m in mutants}]
    mutants = [m for m in mutants if not parts or any(part in m.name for part in parts)]
    mutants.sort(key=lambda mutant: (named_targets(mutant), module(mutant)))
    if not mutants:
        print("mutants: none has such a name", file=sys.stderr)
        return 2
    began = time.monotonic()
    PLACE.mkdir(parents=True, exist_ok=True)
    copy_project()
    try:
        print(f"control: {control(mutants)} ({time.monotonic() - began:.0f} s)", flush=True)
    except Failure as failure:
        print(f"control: FAILED: {failure}")
        return 1
    counts = {"killed": 0, "survived": 0, "error": 0}
    manifests = {tests: manifest(tests) for tests in set(map(named_targets, mutants))}
    for mutant in mutants:
        start = time.monotonic()
        verdict, told = try_out(mutant, manifests[named_targets(mutant)])
        counts[verdict] += 1
        word = {"killed": "killed by", "survived": "SURVIVED:", "error": "ERROR:"}[verdict]
        print(f"{mutant.name}: {word} {told} ({time.monotonic() - start:.0f} s)", flush=True)
    for rule in missing if not parts else []:
        print(f"no mutant for {rule}: {mutantlib.RULES[rule]}")
    errors = f", {counts['error']} in error" if counts["error"] else ""
    print(f"mutants: {counts['killed']} killed, {counts['survived']} survived{errors} "
          f"({(time.monotonic() - began) / 60:.0f} min)")
    isGood = counts["killed"] == len(mutants) and (parts or not missing)
    return 0 if isGood else 1


def self_test():
    """What kills and what does not."""
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
    for each in wrong:
        print(f"mutants.py: self-test: {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    if any(argument.startswith("-") for argument in sys.argv[1:]):
        print("usage: mutants.py [--self-test | PART-OF-A-NAME...]", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1:]))
