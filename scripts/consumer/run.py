#!/usr/bin/env python3
"""Does the README's manifest give an app what it promises? Clones this project with the tag of its version, as
from a repository's host, makes a package of the README's own listings, beside another package whose
modules are called CSQLite, CCurl, COpenSSL, CZlib and Pinning, builds it and runs it.

- It resolves by the README's lines, with the version that the program itself prints.
- It builds where of all system libraries only those of the two Debian packages are known that the README
  names, and no line of the build is a warning or names a library of the server.
- It runs: the snippet says that its placeholder is no signing key.
- Every listing of the documentation, and every call of docs/api.md (calls/), compiles without a warning in a
  second package, with what Xcode 26 sets for a new app: MainActor by default, MemberImportVisibility, and the
  features of approachable concurrency; in Swift 5 as in Swift 6 mode.

The controls: with a product for the server's program the same app does not resolve, and a type of the rules that
Exports.swift does not name is none of an app's.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "docs"))
import listings  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
HERE, PLACE = ROOT / "scripts/consumer", ROOT / ".build/consumer"
SWIFT = os.environ.get("SWIFT", "swift")
# What the two packages bring; the rest of the system's is hidden from the package manager.
KNOWN = ["openssl.pc", "libssl.pc", "libcrypto.pc", "libcurl.pc"]
UNWANTED = re.compile(
    r"warning|microhttpd|libpq|postgres|hiredis|libyaml|CYAML|RegistryServer|TLSTools", re.I)
PROGRESS = re.compile(r"\[\d+/\d+\] ")
OWN = re.compile(r"/app/Sources/|^ *\d* *\|")
ADDED = '    .library(name: "CanonicalJSON", targets: ["CanonicalJSON"]),\n'


# As Xcode 26's template for an app sets them; those that Swift 6 mode has anyway are left to it.
CALLS = """// swift-tools-version: 6.2
import PackageDescription

let template: [SwiftSetting] = [
  .defaultIsolation(MainActor.self),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  .enableUpcomingFeature("InferIsolatedConformances"),
]
let older: [SwiftSetting] = [
  .swiftLanguageMode(.v5),
  .enableUpcomingFeature("DisableOutwardActorInference"),
  .enableUpcomingFeature("GlobalActorIsolatedTypesUsability"),
  .enableUpcomingFeature("InferSendableFromCaptures"),
]
let products: [Target.Dependency] = [
  .product(name: "Neighbour", package: "neighbour"),
  .product(name: "SslPinning", package: "ssl-pinning"),
  .product(name: "SslPinningTesting", package: "ssl-pinning"),
]

let package = Package(
  name: "Calls",
  platforms: [.iOS(.v15), .macOS(.v12)],
  dependencies: [.package(url: "URL", from: "VERSION"), .package(path: "NEIGHBOUR")],
  targets: [
    .testTarget(name: "Calls6", dependencies: products, swiftSettings: template),
    .testTarget(name: "Calls5", dependencies: products, swiftSettings: template + older),
  ]
)
"""
# What a call of docs/api.md is called by: a method, a property, a type that is made.
CALL = re.compile(r"^  (?:@\w+ |static |mutating |nonisolated\(nonsending\) )*(?:func|var|let) (\w+)", re.M)
# Called by the language, not by name.
UNSPOKEN = {"hash", "makeAsyncIterator"}


def fail(text):
    sys.exit(f"consumer: {text}")


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def listing(text, beginning):
    """The block of Swift in the README that begins so."""
    for block in re.findall(r"^```swift\n(.*?)^```$", text, re.M | re.S):
        if block.startswith(beginning):
            return block
    return fail(f"the README has no listing that begins with {beginning!r}")


def version():
    source = (ROOT / "Server/Sources/RegistryServer/Service/ServerVersion.swift").read_text()
    return re.search(r'current = "([^"]+)"', source)[1]


def git(repository, *arguments):
    identity = ["-c", "user.name=consumer", "-c", "user.email=consumer@localhost"]
    return run("git", "-C", repository, *identity, *arguments)


def publish(repository, tag, change=lambda manifest: manifest):
    """A repository with this project as it is now, tagged."""
    repository.mkdir(parents=True)
    names = run("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    # What only the tests of this project read is left out: an app never needs it.
    for name in set(names.split("\0")) - {""}:
        if (ROOT / name).is_file() and not name.startswith(("Vectors/", "Benchmarks/")):
            (repository / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, repository / name)
    for target in ("scan", "bytes"):
        shutil.copytree(ROOT / "Benchmarks/Sources" / target, repository / "Benchmarks/Sources" / target)
    manifest = repository / "Package.swift"
    manifest.write_text(change(manifest.read_text()))
    git(repository, "init", "--quiet")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "as it is")
    git(repository, "tag", tag)


def make_app(place, readme, repository):
    """The README's package, its URL replaced by the clone's and the neighbour put beside it."""
    manifest = listing(readme, "// swift-tools-version")
    url = re.search(r'url: "([^"]+/ssl-pinning\.git)"', manifest)
    if not url:
        fail("the README's manifest names no …/ssl-pinning.git")
    manifest = manifest.replace(url[1], repository.as_uri())
    manifest, packages = re.subn(
        r'(\.package\(url: [^)]*\))', rf'\1,\n    .package(path: "{HERE / "neighbour"}")', manifest)
    manifest, products = re.subn(
        r'(\.product\(name: "SslPinning", package: "ssl-pinning"\))',
        r'\1, .product(name: "Neighbour", package: "neighbour")', manifest)
    if (packages, products) != (1, 1):
        fail("the README's manifest has not one package and one product in it")
    sources = place / "Sources" / re.search(r'executableTarget\(\s*name: "(\w+)"', manifest)[1]
    sources.mkdir(parents=True)
    (place / "Package.swift").write_text(manifest)
    (sources / "main.swift").write_text(listing(readme, "import SslPinning"))
    (sources / "Others.swift").write_text(
        "import Neighbour\n\nfunc others() -> [String] { versionsOfOthers() }\n")
    return sources.name


def make_calls(place, repository):
    """The listings of the documentation and `calls/`, as two test targets under Xcode's settings."""
    place.mkdir(parents=True)
    (place / "Package.swift").write_text(
        CALLS.replace("URL", repository.as_uri()).replace("VERSION", version())
        .replace("NEIGHBOUR", str(HERE / "neighbour")))
    for name in ("Calls5", "Calls6"):
        folder = place / "Tests" / name
        shutil.copytree(HERE / "calls", folder)
        for number, one in enumerate(listings.checked()):
            (folder / f"Listing{number}.swift").write_text(one.source(number))
    text = "\n".join(path.read_text() for path in sorted((place / "Tests/Calls6").iterdir()))
    surface = (ROOT / "docs/api.md").read_text().split("## Mentioned by these")[0]
    own = surface.split("## On Apple's systems besides")
    named = set(CALL.findall(own[0] + own[1].split("## `import")[1]))
    uncalled = sorted(name for name in named - UNSPOKEN if not re.search(rf"\b{name}\b", text))
    if uncalled:
        fail("calls/ and the listings never use " + ", ".join(uncalled))


def build(place, environment, *arguments):
    # Caches of its own: a tag that has moved since the last run is no attack.
    options = [f"--{name}-path={place}/.swiftpm/{name}" for name in ("cache", "config", "security")]
    return subprocess.run(
        [SWIFT, "build", "--package-path", place, *options, *arguments], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, env=environment)


def hide_system_libraries(place):
    """An environment in which pkg-config knows what the two packages bring, and nothing else."""
    known, programs = place / "pkgconfig", place / "bin"
    known.mkdir(parents=True)
    programs.mkdir()
    for folder in run("pkg-config", "--variable", "pc_path", "pkg-config").strip().split(":"):
        for name in KNOWN:
            if (Path(folder) / name).exists() and not (known / name).exists():
                (known / name).symlink_to(Path(folder) / name)
    (programs / "pkg-config").write_text(f"#!/bin/sh\necho {known}\n")
    (programs / "pkg-config").chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    environment.pop("PKG_CONFIG_PATH", None)
    return environment


def control(readme, environment):
    """With a product that reaches the server, its C modules meet those of the neighbour."""
    repository = PLACE / "control/ssl-pinning.git"
    product = '    .executable(name: "ssl-pinning", targets: ["ssl-pinning"]),\n'
    publish(repository, version(), lambda manifest: manifest.replace(ADDED, ADDED + product))
    make_app(PLACE / "control/app", readme, repository)
    done = build(PLACE / "control/app", environment)
    if done.returncode == 0 or "CSQLite" not in done.stdout:
        fail(f"the control resolves, so this proves nothing\n{done.stdout}")
    print("consumer: with a product of the server: refused, as it should be", flush=True)


def main():
    readme = (ROOT / "README.md").read_text()
    shutil.rmtree(PLACE, ignore_errors=True)
    environment = hide_system_libraries(PLACE)
    control(readme, environment)
    publish(PLACE / "ssl-pinning.git", version())
    app = PLACE / "app"
    name = make_app(app, readme, PLACE / "ssl-pinning.git")
    done = build(app, environment)
    if done.returncode:
        fail(f"the README's app does not build\n{done.stdout}")
    # The snippet makes two sessions and uses neither: that the compiler tells.
    told = [line for line in done.stdout.splitlines()
            if UNWANTED.search(line) and not OWN.search(line) and not PROGRESS.match(line)]
    if told:
        fail("an app's build tells of what is not its own:\n" + "\n".join(told))
    print("consumer: resolved, and built without a word about the server", flush=True)
    ran = subprocess.run([app / ".build/debug" / name], capture_output=True, text=True, timeout=60)
    if ran.returncode or "signing key" not in ran.stdout:
        fail(f"the README's app does not run as it should: {ran.returncode}\n{ran.stdout}{ran.stderr}")
    print(f"consumer: ran: {ran.stdout.strip()}", flush=True)
    calls = PLACE / "calls"
    make_calls(calls, PLACE / "ssl-pinning.git")
    done = build(calls, environment, "--build-tests")
    # A listing may make what it has no use for. That is all that may be told of.
    told = sorted({line for line in done.stdout.splitlines()
                   if re.search(r"^\S.*(?:warning|error): ", line) and "[#no-usage]" not in line})
    if done.returncode or told:
        fail("under Xcode's settings not every call compiles\n" + ("\n".join(told) or done.stdout))
    print(f"consumer: under Xcode's settings {len(listings.checked())} listings and calls/ compile", flush=True)
    (calls / "Tests/Calls6/Planted.swift").write_text("import SslPinning\nfunc planted(_: KeySetChain) {}\n")
    done = build(calls, environment, "--build-tests")
    if done.returncode == 0 or "cannot find type 'KeySetChain'" not in done.stdout:
        fail(f"an app sees a type of the rules that is not exported\n{done.stdout}")
    print("consumer: a type of the rules that is not exported: not found, as it should be")
    return 0


sys.exit(main())
