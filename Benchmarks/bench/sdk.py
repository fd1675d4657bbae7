"""The suites of what an app links. Each yields its cases, with their servers up."""

import http.server
import os
import shutil
import sys
import threading
from contextlib import contextmanager

import lists
import sites
import tools
from turns import Case, Measure

CERTIFICATE = tools.ROOT / "Vectors/spki-pins/known/mozilla-GTS_Root_R1.der"


def one_site(ports):
    servers = "".join(
        f"server {{ listen 127.0.0.1:{port} ssl{http2} backlog=4096; server_name localhost; TLS; root www; }}"
        for port, http2 in zip(ports, ("", " http2")))
    return f"http2_max_concurrent_streams 128; {servers}"


@contextmanager
def small_file(workers=1):
    """A server of one small file: its folder, and its URLs over HTTP/1.1 and HTTP/2."""
    with tools.folder() as place:
        sites.certificates(place)
        (place / "www").mkdir()
        (place / "www/1k.bin").write_bytes(os.urandom(1024))
        place.chmod(0o755)
        ports = tools.free_port(), tools.free_port()
        with sites.nginx(place, one_site(ports), workers):
            yield place, *(f"https://localhost:{port}/1k.bin" for port in ports)


@contextmanager
def client(shop):
    """Pinned requests beside Go's."""
    with small_file() as (place, *urls):
        pin, root = sites.pin(place), place / "root.pem"

        def case(name, url, requesters, series=""):
            asked = [f"{requesters}", f"{shop.seconds}"]
            return Case(
                name, f"`data(for:)`, {name.split('-')[1]}, {requesters} in flight",
                [Measure("requests_per_s", "/s", less=False, ratio=1 if requesters < 1000 else None),
                 Measure("p99_us", "µs", ratio=1 if requesters < 1000 else None),
                 Measure("cpu_ms_per_1000", "ms"), Measure("peak_rss_mb", "MB")],
                lambda: tools.figures(shop.sdk / "client", "--url", url, "--ca", root, "--pin", pin, "-c", asked[0],
                                      "--seconds", asked[1]),
                lambda: shop.go("client", url, root, pin, *asked), "Go net/http", series, requesters)

        names = [("h1", urls[0]), ("h2", urls[1])]
        cases = [case(f"client-{name}-{count}", url, count, f"in-flight-{name}")
                 for name, url in names for count in (1, 10, 32, 1000)]
        # What waking a processor costs a request: the same with processors that never sleep.
        awake = case("client-h1-1-awake", urls[0], 1)
        awake.what += ", processors kept awake"
        awake.ours, awake.peer = map(tools.kept_awake, (awake.ours, awake.peer))
        for measure in awake.measures:
            measure.ratio = None
        yield [*cases, awake]


@contextmanager
def session(shop):
    """A pinned URLSession beside the same one without pins, both under one authority: where the system's file of
    authorities is, for these two alone, ours."""
    with small_file() as (place, url, _):
        pin = sites.pin(place)
        space = ["unshare", "--mount", *([] if os.getuid() == 0 else ["--map-root-user"]), "sh", "-c",
                 'mount --bind "$0" /etc/ssl/certs/ca-certificates.crt && exec "$@"', place / "root.pem"]

        def run(road):
            return lambda: tools.figures(*space, shop.sdk / "client", "--url", url, "--pin", pin, "-c", "8", "--seconds",
                                         f"{shop.seconds / 2}", "--road", road)

        yield [Case("session", "pinned `URLSession`, 8 in flight",
                    [Measure("requests_per_s", "/s", less=False, ratio=0.97), Measure("cpu_ms_per_1000", "ms")],
                    run("session"), run("plain"), "the same without pins", pairs=4)]


@contextmanager
def canonicalize(shop):
    with tools.folder() as place:
        core, file = shop.sdk / "core", lists.Documents(place, shop.sdk / "core").payload(1000)
        script, seconds = tools.PEERS / "canonicalizers.py", f"{shop.seconds / 4}"
        ours = tools.output(core, "canonical", file)
        for name in ("jcs-admit", "rfc8785"):
            if tools.output(sys.executable, script, name, file) != ours:
                sys.exit(f"bench: {name} gives another canonical form")

        def case(name, what, peer, reach=None):
            return Case(f"canonicalize-{name}", "canonicalize 1 000 keys",
                        [Measure("mb_per_s", "MB/s", less=False, ratio=reach)],
                        lambda: tools.figures(core, "canonicalize", file, seconds), peer, what)

        yield [case(name, what, lambda name=name: tools.figures(sys.executable, script, name, file, seconds), reach)
               for name, what, reach in (("orjson", "orjson, sorted: not RFC 8785", 1.5), ("jcs-admit", "jcs-admit", 1),
                                         ("rfc8785", "rfc8785", 1))] + [
            case("go", "Go encoding/json: not RFC 8785", lambda: shop.go("canonicalize", file, seconds), 1)]


@contextmanager
def lists_(shop):
    """From bytes to a policy."""
    with tools.folder() as place:
        core = shop.sdk / "core"
        documents, seconds = lists.Documents(place, core), f"{shop.seconds / 4}"

        def case(hosts, most):
            def files():
                return documents.document(hosts), documents.public

            return Case(
                f"list-{hosts}", f"a list of {hosts:_} hosts, bytes to policy".replace("_", " "),
                [Measure("list_ms", "ms", most=most), Measure("peak_times_document", "", most=4 if hosts == 10_000 else None),
                 Measure("peak_mb", "MB")],
                lambda: tools.figures(core, "list", *files(), seconds), lambda: shop.go("list", *files(), seconds),
                "Go: sort, RSA-4096, decode", "list", hosts)

        yield [case(hosts, most) for hosts, most in ((10, None), (1000, 2), (10_000, 20), (100_000, None))] + [
            Case("parts", "of a list of 1 000 hosts",
                 [Measure(key, "ms") for key in ("parse_ms", "sha512_ms", "signature_ms", "verify_and_policy_ms")],
                 lambda: tools.figures(core, "parts", documents.document(1000), documents.public, seconds))]


@contextmanager
def verdict(shop):
    def case(hosts):
        return Case(f"verdict-{hosts}", f"a verdict that matches, {hosts:_} hosts".replace("_", " "),
                    [Measure("verdict_ns", "ns", most=800 if hosts > 10 else None)],
                    lambda: tools.figures(shop.sdk / "core", "verdict", hosts, CERTIFICATE, shop.seconds / 4),
                    lambda: shop.go("verdict", hosts, shop.seconds / 4), "a Go map", "verdict", hosts)

    yield [case(hosts) for hosts in (10, 1000, 100_000)]


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextmanager
def start(shop):
    """`initialize` of a process that finds 1 000 hosts stored. Nobody answers at the list's address."""
    with tools.folder() as place:
        documents = lists.Documents(place, shop.sdk / "core")
        name = documents.document(1000).name
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), lambda *given: Silent(*given, directory=str(place)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        run = [shop.sdk / "start", f"http://127.0.0.1:{server.server_port}/{name}", documents.public, place / "state"]
        tools.figures(*run)
        server.shutdown()
        server.server_close()
        yield [Case(name, f"`initialize`, 1 000 hosts stored, no network, {whose}", [Measure("initialize_ms", "ms", most=5)],
                    lambda anchor=anchor: tools.figures(*run, *anchor), pairs=4)
               for name, whose, anchor in (("start", "the system's authorities", []),
                                           ("start-anchor", "one anchor of its own", [CERTIFICATE]))]


@contextmanager
def size(shop):
    """What is left of a program after `strip`."""
    def stripped(name):
        with tools.folder() as place:
            shutil.copy(shop.sdk / name, place)
            tools.output("strip", place / name)
            return (place / name).stat().st_size / 1e6

    yield [Case("size", "what the SDK adds to a stripped program",
                [Measure("added_mb", "MB", most=1.5), Measure("whole_mb", "MB")],
                lambda: {"added_mb": stripped("start") - stripped("bare"), "whole_mb": stripped("start")}, pairs=0)]
