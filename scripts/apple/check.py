#!/usr/bin/env python3
"""Type-checks what an app links, the sample app, and the documentation's listings for Apple's
systems, for Apple's triples, on a machine without Apple's SDK.

- The standard library is the toolchain's own: its textual interfaces, rewritten for the triple
  and compiled again. What it says of availability is true for the triple.
- Frameworks are stubs under scripts/apple/stubs, written by hand from Apple's public
  documentation: their signatures are only as true as the stubs. So is Alamofire, for one listing.
- So this proves that the sources are consistent in themselves and with the stubs. It does not
  prove that they build with Xcode, and nothing is linked or run.

    check.py              check everything
    check.py --self-test  plant an error in a copy of every source file and expect each to be found

Everything generated lands under .build/apple.
"""

import functools
import hashlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "docs"))
import listings  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
STUBS = Path(__file__).resolve().parent / "stubs"
OUT = ROOT / ".build" / "apple"
SWIFT = os.environ.get("SWIFT", "swift")

# The oldest systems that Package.swift promises.
TRIPLES = ["arm64-apple-ios15.0", "arm64-apple-macos12.0"]
STANDARD = ["Swift", "_Concurrency", "_StringProcessing", "Synchronization"]
# In the order in which they import each other; a folder or a file of stubs each.
FRAMEWORKS = ["Darwin", "ObjectiveC", "Dispatch", "Foundation", "Security", "CryptoKit", "Combine",
              "SwiftUI", "WebKit", "Alamofire"]
# What an app and its tests link, in the order of Package.swift, and the sample app and the listings,
# which are no part of the package and see only what is public.
TARGETS = ["CanonicalJSON", "Pinning", "PinningPlatform", "SslPinning", "SslPinningTesting", "App",
           "Listings"]
OUTSIDE = {"App": Path("App/Sources"), "Listings": Path(".build/apple/listings")}

OBJC = ["-Xfrontend", "-enable-objc-interop",
        "-Xfrontend", "-disable-objc-attr-requires-foundation-module"]


# What the standard library has on Apple's systems only and the compiler looks up by name there.
ADDED = """
@frozen public struct AutoreleasingUnsafeMutablePointer<Pointee> : Swift._Pointer {
  public let _rawValue: Builtin.RawPointer
  @_transparent public init(_ _rawValue: Builtin.RawPointer) { self._rawValue = _rawValue }
}
"""

# Errors of other kinds than a wrong type: target, file, text, what takes its place.
FLAWS = [
    # A delegate method under a name that the session never calls.
    ("PinningPlatform", "Apple/SessionDelegate.swift",
     "didReceive challenge:", "didRecieve challenge:"),
    ("PinningPlatform", "Apple/SessionDelegate+Tasks.swift", "didFinishCollecting metrics:",
     "didFinishCollect metrics:"),
    # What the oldest promised system does not have.
    ("PinningPlatform", "Apple/SessionDelegate+Tasks.swift", "@available(macOS 13.0, iOS 16.0,",
     "@available(macOS 12.0, iOS 15.0,"),
    ("PinningPlatform", "Locked.swift", "import Foundation\n", "import Foundation\n\n"
     "private func planted() async throws { try await Task.sleep(for: .seconds(1)) }\n"),
    # A value that two threads would share.
    ("PinningPlatform", "Apple/TrustStoreSecurity.swift", "_ trust: HandedOver<SecTrust>, at",
     "_ trust: SecTrust, at"),
    ("App", "ContentView.swift", "Form {", "NavigationStack {"),
    # What no app may use: a symbol of the package's own.
    ("App", "Sessions.swift", "client.refusal(for: error)",
     'Optional(PinEvaluation(host: "", outcome: .matched, decision: .accept))'),
    ("Listings", "Recipes-2.swift", "didReceive challenge:", "didRecieve challenge:"),
    ("Listings", "Recipes-1.swift", "client.evaluate(trust, host: host)",
     "client.evaluate(trust, host: nil)"),
    # The model off the main actor.
    ("App", "RequestModel.swift", "@MainActor\n", ""),
]


class Failed(Exception):
    """A compiler's diagnostics."""


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(done.stderr.strip() or f"{command[0]} ended with {done.returncode}")
    return done


def sources(folder):
    return sorted(path for path in Path(folder).rglob("*.swift"))


def home(target):
    """The folder of a target's sources."""
    return OUTSIDE.get(target, Path("Sources") / target)


@functools.cache
def toolchain():
    """The toolchain's resources, its programs, and its version."""
    info = json.loads(run(SWIFT, "-print-target-info").stdout)
    resources = Path(info["paths"]["runtimeResourcePath"])
    return resources, resources.parent.parent / "bin", info["compilerVersion"]


def rewritten(interface, triple):
    """The interface of a Linux module as one of `triple`'s."""
    lines = []
    for line in interface.split("\n"):
        if line.startswith("// swift-module-flags"):
            line = re.sub(r"-target \S+", f"-target {triple}", line)
        # What is missing here is the C library of the other system, and code that only runs.
        line = re.sub(r"@backDeployed\(before:[^)]*\)\s*", "", line)
        line = line.replace("_swift_stdlib_gettid()", "UInt32(0)")
        if "_stdlib_remainderl" in line or "_stdlib_squareRootl" in line:
            line = "    fatalError()"
        if line.strip() != "import Glibc":
            lines.append(line)
    return "\n".join(lines)


def standard_library(triple):
    """The folder with the standard library's modules for `triple`, built where it is missing."""
    resources, programs, version = toolchain()
    recipe = version + "".join(
        inspect.getsource(part) for part in [rewritten, standard_library]) + str(STANDARD) + ADDED
    key = hashlib.sha256(recipe.encode()).hexdigest()[:16]
    folder = OUT / triple / f"standard-{key}"
    if (folder / "complete").exists():
        return folder
    shutil.rmtree(OUT / triple, ignore_errors=True)
    architecture = triple.split("-")[0] + "-apple-" + re.sub(
        r"[\d.]+$", "", triple.split("-")[2])
    for module in STANDARD:
        home = folder / f"{module}.swiftmodule"
        home.mkdir(parents=True)
        found = sorted((resources / "linux" / f"{module}.swiftmodule").glob("*.swiftinterface"))
        found = [path for path in found if ".private." not in path.name]
        if len(found) != 1:
            raise Failed(f"the toolchain has {len(found)} interfaces of {module}")
        interface = folder / f"{module}.swiftinterface"
        text = rewritten(found[0].read_text(), triple)
        interface.write_text(text + (ADDED if module == "Swift" else ""))
        run(programs / "swift-frontend", "-compile-module-from-interface", interface,
            "-o", home / f"{architecture}.swiftmodule", "-target", triple,
            "-module-name", module, *(["-parse-stdlib"] if module == "Swift" else []),
            "-disable-objc-interop", "-disable-availability-checking", "-I", folder,
            "-I", resources / "shims", "-Xcc", f"-I{resources / 'shims'}")
    (folder / "complete").touch()
    return folder


def compile_module(name, files, triple, standard, modules, *flags):
    if not files:
        raise Failed(f"{name} has no sources")
    resources, programs, _ = toolchain()
    shims = resources / "shims"
    run(programs / "swiftc", "-target", triple, "-O", "-wmo", "-parse-as-library", "-emit-module",
        "-emit-module-path", modules / f"{name}.swiftmodule", "-module-name", name,
        *OBJC, "-I", standard, "-I", modules, "-I", shims,
        "-Xcc", f"-I{shims}", *flags, *files)


def stubs(triple, standard):
    folder = OUT / triple / "stubs"
    folder.mkdir(parents=True, exist_ok=True)
    for name in FRAMEWORKS:
        if not (STUBS / name).is_dir():
            continue
        compile_module(name, sources(STUBS / name), triple, standard, folder,
                       "-swift-version", "5", "-suppress-warnings")
    return folder


def check(triple, root, only=None, keep=False):
    """Checks the targets under `root`, over the modules of the last check where they are kept;
    raises Failed with the compiler's words."""
    standard = standard_library(triple)
    folder = OUT / triple / "modules"
    if not keep:
        framework = stubs(triple, standard)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(framework, folder)
    for name in only or TARGETS:
        package = [] if name in OUTSIDE else ["-package-name", "ssl-pinning"]
        compile_module(name, sources(root / home(name)), triple, standard, folder,
                       "-swift-version", "6", "-warnings-as-errors", *package)


def plant(path, error):
    """Adds `error` to a source file, inside its platform condition if it has one."""
    lines = path.read_text().rstrip("\n").split("\n")
    lines.insert(len(lines) - 1 if lines[-1] == "#endif" else len(lines), error)
    path.write_text("\n".join(lines) + "\n")


def self_test():
    """A planted type error in any file that an app links must be found, in that file."""
    triple = TRIPLES[0]
    missed = []
    with tempfile.TemporaryDirectory() as copy:
        for number, name in enumerate(TARGETS):
            # One target at a time: an error in one would keep the next from being looked at.
            folder = Path(copy) / home(name)
            shutil.copytree(ROOT / home(name), folder)
            files = [path for path in sources(folder)
                     if not path.read_text().startswith("#if os(Linux)")]
            for path in files:
                plant(path, 'private let planted: Int = "a text"')
            try:
                check(triple, Path(copy), only=[name], keep=number > 0)
                missed += files
            except Failed as failure:
                missed += [path for path in files if f"{path}:" not in str(failure)]
            shutil.rmtree(folder)
            check(triple, ROOT, only=[name], keep=number > 0)
        for name, file, old, new in FLAWS:
            folder = Path(copy) / home(name)
            shutil.copytree(ROOT / home(name), folder)
            path = folder / file
            text = path.read_text()
            path.write_text(text.replace(old, new, 1))
            try:
                if old in text:
                    check(triple, Path(copy), only=[name], keep=True)
                missed.append(path)
            except Failed as failure:
                missed += [] if f"{path}:" in str(failure) else [path]
            shutil.rmtree(folder)
    for path in missed:
        print(f"check-apple: self-test: the error planted in {path.name} was not found")
    if not missed:
        print("check-apple: self-test: ok, planted errors are found, in every file")
    return 1 if missed else 0


def main():
    listings.write_apple(ROOT / OUTSIDE["Listings"])
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if sys.argv[1:]:
        print(f"usage: {Path(sys.argv[0]).name} [--self-test]", file=sys.stderr)
        return 2
    failed = 0
    for triple in TRIPLES:
        try:
            check(triple, ROOT)
            print(f"check-apple: {triple}: ok (type-checked against stubs)")
        except Failed as failure:
            print(f"check-apple: {triple}: FAILED\n{failure}")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
