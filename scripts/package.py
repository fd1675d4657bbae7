#!/usr/bin/env python3
"""Builds the Debian package of the server and the tools: a program that needs no Swift on the machine it runs on.

    scripts/package.py             build the program for release, then the package, and say where it is
    scripts/package.py --program P pack this program, which was built as the first line does it

- The version stands in ServerVersion.swift, and nowhere else.
- What the package depends on is computed from the libraries that the program is linked with (dpkg-shlibdeps).
- Completions and manual pages are made by the program itself.
- The same program and commit give the same package, byte for byte: times in it are that of the commit.
"""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRATCH = ROOT / ".build-release"
VERSION = ROOT / "Server/Sources/RegistryServer/Service/ServerVersion.swift"
# Statically linked with Swift and Foundation, and without a path of the machine that built it.
BUILD = ["--explicit-target-dependency-import-check", "error", "-c", "release", "--static-swift-stdlib",
         "--disable-local-rpath", "--product", "ssl-pinning", "--scratch-path", str(SCRATCH)]

CONTROL = """Package: ssl-pinning
Version: {version}
Architecture: {architecture}
Maintainer: the authors of ssl-pinning <ssl-pinning@localhost>
Installed-Size: {size}
Depends: {depends}, adduser, ca-certificates
Section: net
Priority: optional
Description: registry of pinned TLS keys, and its tools
 Apps trust only servers whose public key is on a signed list. The server watches
 endpoints, signs the keys that they show and publishes the list, so that keys
 rotate without a release of the app. The tools check, sign and use such lists,
 and make certificates of an authority of one's own.
"""


def output(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def version():
    return re.search(r'static let current = "([^"]+)"', VERSION.read_text())[1]


def build():
    """The program, built for release: minutes."""
    swift = os.environ.get("SWIFT", "swift")
    subprocess.run([swift, "build", *BUILD], check=True, cwd=ROOT)
    return Path(output(swift, "build", *BUILD, "--show-bin-path", cwd=ROOT).strip()) / "ssl-pinning"


def put(tree, name, content, mode=0o644):
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(mode)


def zipped(content):
    return gzip.compress(content, 9, mtime=0)


def libraries(program):
    """What dpkg-shlibdeps says that the program needs."""
    with tempfile.TemporaryDirectory() as place:
        put(Path(place), "debian/control", "Source: ssl-pinning\n\nPackage: ssl-pinning\nArchitecture: any\n")
        # Its warnings are of libraries that Foundation names and the program does not call.
        answer = output("dpkg-shlibdeps", "-O", "--warnings=0", str(program), cwd=place)
    return answer.strip().removeprefix("shlibs:Depends=")


def refuse_build_paths(program):
    dynamic = output("readelf", "-d", str(program))
    if "RUNPATH" in dynamic or "RPATH" in dynamic or "libswift" in dynamic or "libFoundation" in dynamic:
        sys.exit(f"package: {program} leads to the Swift of this machine; hint: readelf -d")


def fill(tree, program):
    """All that is installed."""
    usr = tree / "usr"
    put(usr, "bin/ssl-pinning", program.read_bytes(), 0o755)
    tool = str(usr / "bin/ssl-pinning")
    subprocess.run(["strip", "--strip-all", tool], check=True)
    refuse_build_paths(tool)
    for shell, name in (("bash", "bash-completion/completions/ssl-pinning"),
                        ("zsh", "zsh/vendor-completions/_ssl-pinning"),
                        ("fish", "fish/vendor_completions.d/ssl-pinning.fish")):
        put(usr / "share", name, output(tool, "completion", shell))
    with tempfile.TemporaryDirectory() as pages:
        subprocess.run([tool, "manual", pages], check=True)
        for page in Path(pages).iterdir():
            put(usr / "share/man/man1", f"{page.name}.gz", zipped(page.read_bytes()))
    sources = ROOT / "packaging"
    put(tree, "lib/systemd/system/ssl-pinning.service", (sources / "ssl-pinning.service").read_bytes())
    for unit in ("ssl-pinning-announce.service", "ssl-pinning-announce.timer"):
        put(tree, f"lib/systemd/system/{unit}", (sources / unit).read_bytes())
    put(usr, "share/ssl-pinning/announce-renewed", (sources / "announce-renewed").read_bytes(), 0o755)
    put(tree, "etc/ssl-pinning/config.yaml", (sources / "config.yaml").read_bytes())
    put(usr, "share/doc/ssl-pinning/copyright", (sources / "copyright").read_bytes())
    put(usr, "share/doc/ssl-pinning/changelog.gz", zipped((ROOT / "CHANGELOG.md").read_bytes()))


def describe(tree, program):
    """What dpkg reads: DEBIAN/."""
    files = sorted(path for path in tree.rglob("*") if path.is_file())
    size = sum(-(-path.stat().st_size // 1024) for path in files)
    sums = "".join(f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(tree)}\n" for path in files)
    architecture = output("dpkg", "--print-architecture").strip()
    put(tree, "DEBIAN/md5sums", sums)
    put(tree, "DEBIAN/conffiles", "/etc/ssl-pinning/config.yaml\n")
    put(tree, "DEBIAN/control", CONTROL.format(
        version=version(), architecture=architecture, size=size, depends=libraries(program)))
    for name in ("postinst", "prerm", "postrm"):
        put(tree, f"DEBIAN/{name}", (ROOT / "packaging" / name).read_bytes(), 0o755)
    return f"ssl-pinning_{version()}_{architecture}.deb"


def pack(program):
    os.umask(0o022)
    tree = SCRATCH / "package"
    shutil.rmtree(tree, ignore_errors=True)
    fill(tree, program)
    place = SCRATCH / "deb"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    package = place / describe(tree, tree / "usr/bin/ssl-pinning")
    for path in tree.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)
    commit = output("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(tree), str(package)], check=True,
                   env={**os.environ, "SOURCE_DATE_EPOCH": commit}, stdout=subprocess.DEVNULL)
    print(f"{package.relative_to(ROOT)}: {package.stat().st_size / 1e6:.1f} MB")
    print(output("dpkg-deb", "--field", str(package), "Installed-Size", "Depends"), end="")
    return package


if __name__ == "__main__":
    if sys.argv[1:2] == ["--program"] and len(sys.argv) == 3:
        pack(Path(sys.argv[2]))
    elif len(sys.argv) == 1:
        pack(build())
    else:
        sys.exit(f"usage: {sys.argv[0]} [--program PROGRAM]")
