#!/usr/bin/env python3
"""Does a program pin however it is linked, beside other users of libcurl? Builds the package beside this file
with the dynamic and the static standard library, each lazily bound and under full RELRO, and runs it
against a server of its own: beside a plugin with libcurl's GnuTLS flavour, and beside one with a
second copy of the OpenSSL flavour, which is the program's own.

The control: with another pin than the server's, the program has to fail. So it has, and to say that it
cannot pin, where a library that is loaded first takes one of libcurl's functions for itself.
"""

import base64
import functools
import hashlib
import http.server
import os
import platform
import ssl
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE, PLACE = ROOT / "scripts/linking", ROOT / ".build/linking"
SWIFT = os.environ.get("SWIFT", "swift")
LAZY = ["-Xlinker", "-z", "-Xlinker", "lazy"]
FULL_RELRO = ["-Xlinker", "-z", "-Xlinker", "relro", "-Xlinker", "-z", "-Xlinker", "now"]
STATIC = ["--static-swift-stdlib"]
WAYS = {
    "dynamic standard library, lazy": LAZY,
    "dynamic standard library, full RELRO": FULL_RELRO,
    "static standard library, lazy": STATIC + LAZY,
    "static standard library, full RELRO": STATIC + FULL_RELRO,
}

# What libcurl writes into each of its multi handles, and looks for: its CURL_MULTI_HANDLE.
MULTI_MARK = b"\x1e\xab\x0b\x00"


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, **options).stdout


def make_certificates(place):
    """A root and a server under it; returns the server's pin."""
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=root",
        "-keyout", place / "root.key", "-out", place / "root.pem")
    run("openssl", "x509", "-in", place / "root.pem", "-outform", "DER", "-out", place / "root.der")
    run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=server",
        "-keyout", place / "server.key", "-out", place / "server.csr")
    (place / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    run("openssl", "x509", "-req", "-in", place / "server.csr", "-CA", place / "root.pem",
        "-CAkey", place / "root.key", "-CAcreateserial", "-days", "2", "-extfile", place / "names",
        "-out", place / "server.pem")
    key = run("openssl", "pkey", "-in", place / "server.key", "-pubout", "-outform", "DER")
    return "sha256/" + base64.b64encode(hashlib.sha256(key).digest()).decode()


def make_plugin(place, tls):
    """The program's own use of libcurl, linked to another one that is built on this TLS library."""
    source, plugin = PACKAGE / "Sources/OwnCurl", place / f"{tls}.so"
    library = ["-l:libcurl-gnutls.so.4"]
    if tls == "OpenSSL":
        installed = run("clang", "-print-file-name=libcurl.so.4", text=True).strip()
        code, copy = Path(installed).read_bytes(), place / "libcopy.so.4"
        if platform.machine() == "x86_64" and MULTI_MARK not in code:
            sys.exit(f"linking: {installed} marks its handles in a way that is not known here")
        # It calls itself otherwise, or the linker would take it for the one that is loaded. It marks
        # its handles otherwise, or a call that lands in the wrong one of the two would work as well;
        # only x86-64 has the mark in one piece.
        copy.write_bytes(code.replace(b"libcurl.so.4", b"libcopy.so.4")
                         .replace(MULTI_MARK, b"\x1e\xab\x0c\x00"))
        library = [copy, f"-Wl,-rpath,{place}"]
    run("clang", "-shared", "-fPIC", f"-I{source}/include", "-o", plugin, source / "own_curl.c",
        *library)
    return plugin


class Hello(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):  # noqa: N802 (the library's name)
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", f"https://localhost:{self.path[4:]}/")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, place):
        super().__init__(("127.0.0.1", 0), Hello)
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(place / "server.pem", place / "server.key")

    def finish_request(self, request, client_address):
        with self.tls.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, client_address)

    def handle_error(self, *_):
        pass  # who refuses a server leaves in the middle of the handshake


def build(flags):
    scratch = PLACE / ("static" if flags[:1] == STATIC else "dynamic")
    command = [SWIFT, "build", "--package-path", PACKAGE, "--scratch-path", scratch,
               "--product", "linking", *flags]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"linking: does not build\n{done.stdout}")
    return scratch / "debug/linking"


def main():
    failed = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        pin = make_certificates(place)
        plugins = {tls: make_plugin(place, tls) for tls in ("GnuTLS", "OpenSSL")}
        (place / "thief.c").write_text("void *curl_multi_init(void) { return (void *)0; }\n")
        thief = place / "thief.so"
        run("clang", "-shared", "-fPIC", "-o", thief, place / "thief.c")
        server, other_origin = Server(place), Server(place)
        for each in (server, other_origin):
            threading.Thread(target=each.serve_forever, daemon=True).start()
        attempt = functools.partial(subprocess.run, capture_output=True, text=True, timeout=120)
        for way, flags in WAYS.items():
            program = build(flags)

            def command(pin, tls="GnuTLS", program=program):
                return [program, str(server.server_port), pin, place / "root.der",
                        place / "root.pem", str(other_origin.server_port), plugins[tls], tls]
            faults = []
            for tls in plugins:
                done = attempt(command(pin, tls))
                if done.returncode != 0 or done.stdout != "ok\n":
                    faults.append(f"beside {tls}, exit code {done.returncode}: {done.stderr}")
            other = "sha256/" + base64.b64encode(bytes(32)).decode()
            control = attempt(command(other))
            if control.returncode == 0 or "is not pinned" not in control.stderr:
                faults.append(f"with another pin: {control.stderr}")
            mixed = attempt(command(pin), env={**os.environ, "LD_PRELOAD": str(thief)})
            if mixed.returncode == 0 or "cannot pin: curl_multi_" not in mixed.stderr:
                faults.append(f"with a function taken: {mixed.stderr}")
            print(f"linking: {way}: {'FAILED' if faults else 'ok'}", flush=True)
            if faults:
                failed.append(way)
                print(*faults, sep="\n", file=sys.stderr)
        for each in (server, other_origin):
            each.shutdown()
    return 1 if failed else 0


sys.exit(main())
