#!/usr/bin/env python3
"""Does the suite notice when a rule is broken? Applies each patch of scripts/mutants/ to a copy
of the project, builds it, and runs the tests that its header names.

    scripts/mutants.py [PART-OF-A-NAME…]     all mutants, or those whose names have a part in them
    scripts/mutants.py --resume [PART…]      without those that an earlier run killed
    scripts/mutants.py --build [PART…]       by whole builds alone
    scripts/mutants.py --self-test

- A mutant is killed where it builds and a named test records an issue. A crash, a build that
  fails, and a filter that finds no test kill nothing: they are errors of the mutant. So is a
  time-out, unless the mutant's header `Hang:` says why it is red.
- First the control: without a patch all named tests pass.
- A patch that changes bodies of functions alone needs no build (checks/relink.py). The next one is
  compiled while the tests of this one run. The others come last, and are built.
- Copy and build folder stay in .build/mutants, so that only what changed is compiled again. Of the
  copy's manifest, only the test targets that a mutant's header names are built, with what these
  need: a change below must not compile the registry server for a test that never starts it.
- An earlier verdict holds for --resume while the patch, the files it changes and those of the named
  suites are the same. It knows nothing of what else has changed: a whole run does.

Exit code 0: every mutant was killed, and (where all ran) every rule has one. 1: not so. 2: usage.
"""

import functools
import hashlib
import itertools
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts/checks"))
sys.dont_write_bytecode = True
import checklib  # noqa: E402
import mutantlib  # noqa: E402
import relink  # noqa: E402
import testrun  # noqa: E402

PLACE = ROOT / ".build/mutants"
TREE, BUILD, VERDICTS = PLACE / "tree", PLACE / "build", PLACE / "verdicts.json"
SWIFT = os.environ.get("SWIFT", "swift")
STRICT = ["--explicit-target-dependency-import-check", "error"]
TESTS = "ssl-pinningPackageTests.xctest"
# Seconds that the other tests have once one has recorded an issue: it is killed, whatever they find.
GRACE = 10
# The lower a module, the more is compiled again for it: neighbours share that.
MODULES = ["CanonicalJSON", "SslPinningRules", "CSslPinningShims", "SslPinningPlatform", "SslPinning",
           "TLSTools", "PolicyFormats", "RegistryCore", "RegistryStores", "RegistryServer", "ssl-pinning"]


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


@functools.cache
def dependencies():
    told = subprocess.run([SWIFT, "package", "dump-package"], cwd=ROOT, check=True,
                          capture_output=True).stdout
    return {target["name"]: [next(iter(each.values()))[0] for each in target["dependencies"]]
            for target in json.loads(told)["targets"]}


def needed(tests):
    """These test targets and all that they need."""
    wanted, left = set(), list(tests)
    while left:
        name = left.pop()
        if name not in wanted:
            wanted.add(name)
            left += dependencies()[name]
    return wanted


@functools.cache
def manifest(tests):
    """The project's manifest, cut down to these test targets and what they need; whole for none."""
    whole = (ROOT / "Package.swift").read_bytes()
    if not tests:
        return whole
    names = ", ".join(f'"{name}"' for name in sorted(needed(tests)))
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


def all_tests(programs):
    done = subprocess.run([programs / TESTS, "--testing-library", "swift-testing", "--list-tests"],
                          cwd=TREE, capture_output=True, text=True)
    if not done.stdout.strip():
        raise Failure("no tests are listed")
    return done.stdout.splitlines()


def all_tests(programs):
    done = subprocess.run([programs / TESTS, "--testing-library", "swift-testing", "--list-tests"],
                          cwd=TREE, capture_output=True, text=True)
    if not done.stdout.strip():
        raise Failure("no tests are listed")
    return done.stdout.splitlines()


def module(mutant):
    parts = sorted(filter(None, map(checklib.target_of, mutant.hunks)))
    return MODULES.index(parts[0]) if parts and parts[0] in MODULES else len(MODULES)


def apply(mutant, folder):
    """Applies its patch to the files of a folder."""
    applied = subprocess.run(
        ["git", "apply", "-"], cwd=folder, input=mutant.text, capture_output=True, text=True,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(PLACE)})
    if applied.returncode:
        raise Failure("does not apply: " + applied.stderr.strip())


def verdict_on(mutant, programs):
    run = testrun.run(programs / TESTS, TREE, [mutant.header("Tests")], GRACE)
    return testrun.judge(*run, bool(mutant.header("Hang")))


def by_build(mutant):
    """Judges one mutant, and takes it back."""
    put("Package.swift", manifest(named_targets(mutant)))
    kept = {file: (TREE / file).read_bytes() for file in mutant.hunks if (TREE / file).is_file()}
    try:
        apply(mutant, TREE)
        build()
        return verdict_on(mutant, BUILD / "debug")
    except Failure as failure:
        return "error", str(failure)
    finally:
        for file, content in kept.items():
            put(file, content)


def programs_of(tests):
    """What must be linked for these targets: themselves, and each program that they start."""
    return [TESTS, *(name for name in needed(tests) if (BUILD / "debug" / f"{name}.product").is_dir())]


def relinked(mutant, plan, place):
    """Links what its tests need; raises Doubt or Failure."""
    patched = relink.emptied(place) / "patched"
    for file in mutant.hunks:
        (patched / file).parent.mkdir(parents=True, exist_ok=True)
        (patched / file).write_bytes((TREE / file).read_bytes())
    apply(mutant, patched)
    plan.put_together(programs_of(named_targets(mutant)), plan.swapped_objects(patched, place), place)


def verdicts(mutants, plan):
    """(mutant, (verdict, what to tell of it)) one by one. Without a plan each is built."""
    places, doubtful = queue.SimpleQueue(), []
    for name in ("here", "there"):
        places.put(PLACE / name)

    def prepare(mutant):
        place = places.get()
        try:
            relinked(mutant, plan, place)
            return place, True
        except (relink.Doubt, Failure, OSError):
            return place, False

    ahead = ThreadPoolExecutor(1)
    try:
        for mutant, (place, isReady) in zip(mutants, ahead.map(prepare, mutants if plan else [])):
            try:
                if isReady:
                    yield mutant, verdict_on(mutant, place)
                else:
                    doubtful.append(mutant)
            finally:
                places.put(place)
    finally:
        ahead.shutdown(cancel_futures=True)
    for mutant in doubtful if plan else mutants:
        yield mutant, by_build(mutant)


def control(mutants, is_relinked):
    """Builds all, and runs the tests that must kill where nothing is broken. How the build goes about
    it, what to tell, and {name: why nothing can be said of this mutant}."""
    tests = tuple(sorted({name for mutant in mutants for name in named_targets(mutant)}))
    put("Package.swift", manifest(tests))
    build()
    plan, programs = None, BUILD / "debug"
    if is_relinked:
        plan, programs = relink.Plan(TREE, BUILD), relink.emptied(PLACE / "control")
        plan.put_together(programs_of(tests), {}, programs)
    listed = all_tests(programs)
    filters = list(dict.fromkeys(mutant.header("Tests") for mutant in mutants))
    unfit = {each: "no test has such a name" for each in filters
             if not any(re.search(each, test) for test in listed)}
    filters = [each for each in filters if each not in unfit]
    # Once more if need be: a mutant must not be blamed for a busy machine, nor the control.
    told = "there is none"
    for attempt in (1, 2) if filters else ():
        records, *end = testrun.run(programs / TESTS, TREE, filters)
        verdict, told = testrun.judge(records, *end, False)
        if verdict == "survived":
            break
        print(f"control: attempt {attempt}: {verdict}: {told}", flush=True)
        failed = [content.get("testID", "") for record in records
                  if (content := record.get("payload", {})).get("kind") == "issueRecorded"]
        filters = [each for each in filters if any(re.search(each, test) for test in failed)]
        if not filters:
            raise Failure(told)
    else:
        unfit.update((each, "its tests fail without any patch") for each in filters)
    return plan, told, {mutant.name: unfit[mutant.header("Tests")] for mutant in mutants
                        if mutant.header("Tests") in unfit}


class Record:
    """The verdicts of this run and earlier ones, by what each depends on."""

    def __init__(self):
        lines = VERDICTS.read_text().splitlines() if VERDICTS.exists() else []
        self.verdicts = {line["digest"]: line["verdict"] for line in map(json.loads, lines)}
        self.tests = {}

    def digest(self, mutant):
        """Of the patch, the files it changes, and those of the suites it names."""
        parts = [mutant.text.encode()]
        parts += [(TREE / file).read_bytes() for file in mutant.hunks if (TREE / file).is_file()]
        suites = re.compile(rb"\b(?:struct|class|enum|actor|extension) (?:%s)\b"
                            % "|".join(re.findall(r"\w+", mutant.header("Tests"))).encode())
        for target in named_targets(mutant):
            if target not in self.tests:
                self.tests[target] = [path.read_bytes() for folder in checklib.TESTS
                                      for path in sorted((TREE / folder / target).rglob("*.swift"))]
            parts += filter(suites.search, self.tests[target])
        return hashlib.sha256(b"\0".join(parts)).hexdigest()

    def is_killed(self, mutant):
        return self.verdicts.get(self.digest(mutant)) == "killed"

    def add(self, mutant, verdict):
        with VERDICTS.open("a") as file:
            print(json.dumps({"name": mutant.name, "verdict": verdict, "digest": self.digest(mutant)}),
                  file=file)


def main(parts, is_relinked=True, is_resumed=False):
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
    record = Record()
    earlier = [mutant for mutant in mutants if record.is_killed(mutant)] if is_resumed else []
    mutants = [mutant for mutant in mutants if mutant not in earlier]
    counts = {"killed": len(earlier), "survived": 0, "error": 0}
    try:
        plan, told, unfit = control(mutants, is_relinked) if mutants else (None, "nothing is left", {})
        print(f"control: {told} ({time.monotonic() - began:.0f} s)", flush=True)
    except (Failure, relink.Doubt) as failure:
        print(f"control: FAILED: {failure}")
        return 1
    start = time.monotonic()
    judged = verdicts([mutant for mutant in mutants if mutant.name not in unfit], plan)
    unjudged = ((mutant, ("error", unfit[mutant.name])) for mutant in mutants if mutant.name in unfit)
    for mutant, (verdict, told) in itertools.chain(unjudged, judged):
        record.add(mutant, verdict)
        counts[verdict] += 1
        word = {"killed": "killed by", "survived": "SURVIVED:", "error": "ERROR:"}[verdict]
        print(f"{mutant.name}: {word} {told} ({time.monotonic() - start:.0f} s)", flush=True)
        start = time.monotonic()
    for rule in missing if not parts else []:
        print(f"no mutant for {rule}: {mutantlib.RULES[rule]}")
    errors = f", {counts['error']} in error" if counts["error"] else ""
    before = f" ({len(earlier)} of them earlier)" if earlier else ""
    print(f"mutants: {counts['killed']} killed{before}, {counts['survived']} survived{errors} "
          f"({(time.monotonic() - began) / 60:.0f} min)")
    isGood = counts["killed"] == len(mutants) + len(earlier) and (parts or not missing)
    return 0 if isGood else 1


def digests_that_stay():
    """What of a sample can change without a new verdict, against what may."""
    global TREE
    sample = {"Sources/A/B.swift": "b", "Tests/ATests/C.swift": "struct CTests {}",
              "Tests/ATests/D.swift": "struct DTests {}"}
    header = "Rule: r\nDisables: d\nTests: ATests\\.CTests/\n\n--- a/Sources/A/B.swift\n+++ b/Sources/A/B.swift\n"
    problems, real = [], TREE
    with tempfile.TemporaryDirectory() as folder:
        TREE = Path(folder)

        def digest(changed=None, patch="@@ -1 +1 @@\n-b\n+c\n"):
            for file, text in sample.items():
                (TREE / file).parent.mkdir(parents=True, exist_ok=True)
                (TREE / file).write_text(text + " " * (file == changed))
            return Record().digest(mutantlib.parse("a.patch", header + patch))

        for changed, stays in zip([*sample, None], (False, False, True, True)):
            if (digest(changed) == digest()) != stays:
                problems.append(f"the digest without {changed} {'changes' if stays else 'stays'}")
        if digest(patch="@@ -1 +1 @@\n-b\n+d\n") == digest():
            problems.append("the digest of another patch stays")
    TREE = real
    return problems


def self_test():
    """What kills and what does not, and what needs no build and no new verdict."""
    wrong = testrun.self_test() + digests_that_stay() + relink.self_test()
    for each in wrong:
        print(f"mutants.py: self-test: {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    options = {word for word in sys.argv[1:] if word.startswith("-")}
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    if options - {"--resume", "--build"}:
        print("usage: mutants.py [--self-test | [--resume] [--build] PART-OF-A-NAME...]", file=sys.stderr)
        sys.exit(2)
    sys.exit(main([word for word in sys.argv[1:] if word not in options],
                  "--build" not in options, "--resume" in options))
