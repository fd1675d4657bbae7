#!/usr/bin/env python3
"""Does `swift package refresh-registry` keep the document of an app up to date? In a package that depends on this one:
it lists the plugin, takes a newer document from a server on this machine, leaves the file as it is on a replay, a
forgery, a wrong key and a file outside the package, finds the program in PATH or by --tool, and builds nothing of this
project for it.

    scripts/consumer/plugin.py     after `swift build`, whose ssl-pinning is the installed one here
"""

import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PLACE = ROOT / ".build/plugin-consumer"
PROGRAM = ROOT / ".build/debug/ssl-pinning"
SWIFT = os.environ.get("SWIFT", "swift")
MANIFEST = """// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "App",
  dependencies: [.package(name: "ssl-pinning", path: "ROOT")],
  targets: [.target(name: "App", resources: [.copy("registry.json")])]
)
"""


def fail(text):
    sys.exit(f"plugin: {text}")


def expect(truth, text, done=None):
    if not truth:
        fail(text + (f"\n{done.returncode}\n{done.stdout}{done.stderr}" if done else ""))
    print(f"plugin: {text}", flush=True)


def tool(*words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
    if done.returncode:
        fail(f"{words}: {done.stderr}")
    return done.stdout


class Served(http.server.BaseHTTPRequestHandler):
    document = b""

    def do_GET(self):
        found = self.path == "/app.json"
        self.send_response(200 if found else 404)
        body = Served.document if found else b""
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def sign(name, pin, *flags):
    """A document that goes on from the one before, if there is one."""
    (PLACE / "payload.json").write_text('{"keys": [{"domainName": "a.example", "key": "%s"}]}' % pin)
    key = PLACE / "keys/prv.pem"
    tool("sign", "--key", key, "--online-key", key, "--registry-name", "app.json", *flags,
         PLACE / "payload.json", "--out", PLACE / name)
    return (PLACE / name).read_bytes()


def main():
    if not PROGRAM.is_file():
        fail(f"no {PROGRAM.relative_to(ROOT)}; hint: swift build")
    shutil.rmtree(PLACE, ignore_errors=True)
    app, bin_folder = PLACE / "App", PLACE / "bin"
    (app / "Sources/App").mkdir(parents=True)
    bin_folder.mkdir()
    (app / "Package.swift").write_text(MANIFEST.replace("ROOT", str(ROOT)))
    (app / "Sources/App/App.swift").write_text("")
    tool("keys", "generate", "--algorithm", "rsa-2048", "--out", PLACE / "keys")
    pins = ["A" * 42 + "A=", "B" * 42 + "A="]
    first = sign("one.json", pins[0], "--first")
    second = sign("two.json", pins[0], "--previous", PLACE / "one.json", "--deny", pins[1])
    shipped = app / "Sources/App/registry.json"
    shipped.write_bytes(first)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Served)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/app.json"

    def refresh(document, *words, file="Sources/App/registry.json", key=PLACE / "keys/pub.pem", path=bin_folder,
                allowed=True):
        Served.document = document
        allow = ["--allow-writing-to-package-directory", "--allow-network-connections", "all"] if allowed else []
        caches = [f"--{name}-path={PLACE}/.swiftpm/{name}" for name in ("cache", "config", "security")]
        environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
        return subprocess.run(
            [SWIFT, "package", "--package-path", app, *caches, *allow, "refresh-registry", url, file,
             "--key", key, *words], capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)

    done = refresh(second)
    expect(done.returncode != 0 and "ssl-pinning in PATH" in done.stdout + done.stderr,
           "without an installed program it says so", done)
    done = refresh(second, "--tool", PROGRAM)
    expect(done.returncode == 0 and shipped.read_bytes() == second, "a newer document takes the place", done)
    built = re.findall(r"Compiling (?!plugin)\w+", done.stdout + done.stderr)
    folders = [path.name for path in (app / ".build").rglob("*.build") if path.is_dir() and "Pinning" in path.name]
    expect(not built and not folders, f"nothing of the SDK was built for it {built} {folders}")
    (bin_folder / "ssl-pinning").symlink_to(PROGRAM)
    expect(refresh(second).returncode == 0, "the program is found in PATH, and the same document is no fault")
    forged = second.replace(pins[0].encode(), pins[1].encode())
    for text, document, more in [
            ("a replay of the older document", first, {}), ("a forgery", forged, {}), ("no document", b"{}", {}),
            ("another key", second, {"key": PLACE / "other/pub.pem"}),
            ("a file outside the package", first, {"file": "../registry.json"})]:
        if more.get("key") and not more["key"].exists():
            tool("keys", "generate", "--algorithm", "rsa-2048", "--out", PLACE / "other")
        done = refresh(document, **more)
        expect(done.returncode != 0 and shipped.read_bytes() == second, f"{text}: refused, and the file is as it was")
    expect(not (PLACE / "registry.json").exists(), "nothing was written outside the package")
    shipped.unlink()
    done = refresh(first)
    expect(done.returncode == 0 and shipped.read_bytes() == first, "a first document needs none before it", done)
    done = refresh(second, allowed=False)
    asked = "wants permission" in done.stdout + done.stderr
    expect(asked and done.returncode != 0 and shipped.read_bytes() == first,
           "without the permissions that the manifest asks for, nothing is written", done)
    return 0


sys.exit(main())
