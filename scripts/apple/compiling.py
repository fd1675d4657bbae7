"""Compiles what an app links for Apple's triples, against the stubs, and indexes what it uses."""

import functools
import hashlib
import inspect
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import indexstore

ROOT = Path(__file__).resolve().parent.parent.parent
STUBS = Path(__file__).resolve().parent / "stubs"
OUT = ROOT / ".build" / "apple"
SWIFT = os.environ.get("SWIFT", "swift")

# Architectures by system. On arm64_32 (watches up to Series 8) a pointer has 32 bits.
ARCHITECTURES = {"ios": ["arm64"], "macos": ["arm64"], "tvos": ["arm64"],
                 "watchos": ["arm64_32", "arm64"], "visionos": ["arm64"]}
STANDARD = ["Swift", "_Concurrency", "_StringProcessing", "Synchronization"]
# In the order in which they import each other; a folder or a file of stubs each.
FRAMEWORKS = ["Darwin", "ObjectiveC", "Dispatch", "CoreFoundation", "Security", "Foundation",
              "CryptoKit", "Combine", "SwiftUI", "WebKit", "Alamofire"]
# What an app and its tests link, in the order of Package.swift, and the sample app, the listings and the
# probe of the first day,
# which are no part of the package and see only what is public.
TARGETS = ["CanonicalJSON", "SslPinningRules", "SslPinningPlatform", "SslPinning", "SslPinningTesting", "App",
           "Listings", "Probe"]
OUTSIDE = {"App": Path("App/Sources"), "Listings": Path(".build/apple/listings"),
           "Probe": Path("scripts/apple/probe/Sources")}
# What is not for every system: the sample app is one for iOS, and some systems lack a framework.
ONLY = {"App": ["ios"]}
LACKING = {"tvos": ["WebKit"], "watchos": ["WebKit"]}

OBJC = ["-enable-objc-interop", "-disable-objc-attr-requires-foundation-module"]
# visionOS follows availabilities that name iOS; the SDK says which version is which.
VERSIONS = {"17.1": "1.0", "17.4": "1.1", "17.5": "1.2", "18.0": "2.0", "18.4": "2.4", "26.0": "26.0"}
SDK = {"CanonicalName": "xros1.0", "Version": "1.0", "MaximumDeploymentTarget": "26.99",
       "VersionMap": {"iOS_visionOS": VERSIONS,
                      "visionOS_iOS": {new: old for old, new in VERSIONS.items()}}}

# What the standard library has on Apple's systems only and the compiler looks up by name there.
ADDED = """
@frozen public struct AutoreleasingUnsafeMutablePointer<Pointee> : Swift._Pointer {
  public let _rawValue: Builtin.RawPointer
  @_transparent public init(_ _rawValue: Builtin.RawPointer) { self._rawValue = _rawValue }
}
"""


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
def minimums():
    """The oldest version of each system that Package.swift promises."""
    found = {"visionos": (1, 0, 0)}  # SwiftPM's own, where a manifest names none.
    manifest = (ROOT / "Package.swift").read_text()
    for name, major, minor in re.findall(r"\.(\w+OS)\(\.v(\d+)(?:_(\d+))?\)", manifest):
        found[name.lower()] = (int(major), int(minor or 0), 0)
    return found


def triples():
    """The triples of the oldest systems, and the system of each."""
    return {f"{architecture}-apple-{'xros' if system == 'visionos' else system}"
            f"{'.'.join(map(str, minimums()[system][:2]))}": system
            for system, architectures in ARCHITECTURES.items() for architecture in architectures}


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
    architecture = re.sub(r"[\d.]+$", "", triple)
    for module in STANDARD:
        place = folder / f"{module}.swiftmodule"
        place.mkdir(parents=True)
        found = sorted((resources / "linux" / f"{module}.swiftmodule").glob("*.swiftinterface"))
        found = [path for path in found if ".private." not in path.name]
        if len(found) != 1:
            raise Failed(f"the toolchain has {len(found)} interfaces of {module}")
        interface = folder / f"{module}.swiftinterface"
        text = rewritten(found[0].read_text(), triple)
        interface.write_text(text + (ADDED if module == "Swift" else ""))
        run(programs / "swift-frontend", "-compile-module-from-interface", interface,
            "-o", place / f"{architecture}.swiftmodule", "-target", triple,
            "-module-name", module, *(["-parse-stdlib"] if module == "Swift" else []),
            "-disable-objc-interop", "-disable-availability-checking", "-I", folder,
            "-I", resources / "shims", "-Xcc", f"-I{resources / 'shims'}")
    # What code that is not optimised imports; nothing of it is needed to check types.
    empty = folder / "SwiftOnoneSupport.swift"
    empty.write_text("")
    run(programs / "swiftc", "-target", triple, "-O", "-parse-stdlib", "-parse-as-library",
        "-emit-module", "-module-name", "SwiftOnoneSupport", "-I", folder,
        "-emit-module-path", folder / "SwiftOnoneSupport.swiftmodule", empty)
    (folder / "complete").touch()
    return folder


def options(name, triple, modules):
    """What the compiler is told for every module; `modules` holds those that it imports."""
    shims = toolchain()[0] / "shims"
    settings = OUT / "sdk" / "SDKSettings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    if not settings.exists() or settings.read_text() != json.dumps(SDK):
        settings.write_text(json.dumps(SDK))
    vision = ["-sdk", settings.parent] if "-xros" in triple else []
    return ["-target", triple, *vision, "-parse-as-library",
            "-module-name", name, "-I", standard_library(triple), "-I", modules, "-I", shims,
            "-Xcc", f"-I{shims}"]


def language(name):
    package = [] if name in OUTSIDE else ["-package-name", "ssl-pinning"]
    # The documentation's listings, as a new app of Xcode 26 compiles them.
    new = ["-default-isolation", "MainActor", "-enable-upcoming-feature", "MemberImportVisibility",
           "-enable-upcoming-feature", "InferIsolatedConformances",
           "-enable-upcoming-feature", "NonisolatedNonsendingByDefault"] if name == "Listings" else []
    return ["-swift-version", "6", "-warnings-as-errors", *package, *new]


def compile_module(name, files, triple, modules, *flags):
    """Writes the module beside those that it imports, after all diagnostics of the compiler."""
    if not files:
        raise Failed(f"{name} has no sources")
    run(toolchain()[1] / "swiftc", "-wmo", "-emit-module",
        "-emit-module-path", modules / f"{name}.swiftmodule", *options(name, triple, modules),
        *(part for flag in OBJC for part in ("-Xfrontend", flag)), *flags, *files)


def stubs(triple, folder, place=STUBS):
    """The modules of the stubs."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FRAMEWORKS:
        if name not in LACKING.get(triples()[triple], []) and (place / name).is_dir():
            compile_module(name, sources(place / name), triple, folder, "-swift-version", "5",
                           "-suppress-warnings", "-Xfrontend", "-disable-availability-checking")


def declared(triple, modules, folder):
    """The symbol graphs of the stubs, as `facts.symbols` reads them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in FRAMEWORKS:
        if (modules / f"{name}.swiftmodule").exists():
            run(toolchain()[1] / "swift-symbolgraph-extract", "-module-name", name,
                "-target", triple, "-I", standard_library(triple), "-I", modules,
                "-minimum-access-level", "public", "-output-dir", folder)


def files_of(name, triple, root):
    """A target's sources for a system: of the listings, those whose frameworks it has."""
    lacking = LACKING.get(triples()[triple], []) if name == "Listings" else []
    return [path for path in sources(root / home(name))
            if not any(f"import {framework}\n" in path.read_text() for framework in lacking)]


def targets(triple):
    return [name for name in TARGETS if triples()[triple] in ONLY.get(name, ARCHITECTURES)]


def indexed(name, triple, root, modules, store):
    """Type-checks a target and says what it uses, over modules that are there."""
    files = files_of(name, triple, root)
    shutil.rmtree(store, ignore_errors=True)
    store.mkdir(parents=True)
    outputs = store / "outputs"
    outputs.write_text("".join(f"{path}.o\n" for path in files))
    resources, programs, _ = toolchain()
    run(programs / "swift-frontend", "-typecheck", *options(name, triple, modules), *OBJC,
        *language(name), "-index-store-path", store / "store", "-index-ignore-stdlib",
        "-index-unit-output-path-filelist", outputs, *files)
    return indexstore.uses(resources.parent / "libIndexStore.so", store / "store")


def check(triple, root, only=None, keep=False):
    """Checks the targets under `root`, over the modules of the last check where they are kept;
    raises Failed with the compiler's words."""
    folder = OUT / triple / "modules"
    if not keep:
        standard_library(triple)
        shutil.rmtree(folder, ignore_errors=True)
        stubs(triple, folder)
    for name in only or targets(triple):
        compile_module(name, files_of(name, triple, root), triple, folder, *language(name))
