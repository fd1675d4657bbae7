"""The suites of what an operator installs."""

import re
import signal
import ssl
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager

import sites
import tools
from turns import Case, Measure

# The server's own trust of what it serves over https is none of this.
ANYBODY = ssl.create_default_context()
ANYBODY.check_hostname, ANYBODY.verify_mode = False, ssl.CERT_NONE


@contextmanager
def endpoints():
    """nginx under every name below bench.test: its folder, its port, and one that counts."""
    with tools.folder() as place:
        sites.certificates(place)
        port, counting = tools.free_port(), tools.free_port()
        with sites.nginx(place, f"""
            server {{ listen 127.0.0.1:{port} ssl backlog=4096; TLS; return 204; }}
            server {{ listen 127.0.0.1:{counting}; location / {{ stub_status; }} }}"""):
            yield place, port, counting


def answer(url, path="/", **headers):
    return urllib.request.urlopen(urllib.request.Request(url + path, headers=headers), timeout=30, context=ANYBODY)


class Registry:
    """`ssl-pinning up` on an empty store, with so many endpoints in one document."""

    def __init__(self, stack, shop, place, port, count, tls=False):
        state = stack.enter_context(tools.folder())
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{tools.free_port()}"
        keys = "".join(f"  - {{fqdn: h{index}.{sites.DOMAIN}, domainName: h{index}.{sites.DOMAIN}, file: all.json, "
                       f"port: {port}, address: 127.0.0.1}}\n" for index in range(count))
        certificate = f', certificate: "{place}/chain.pem", private_key: "{place}/site.key"' if tls else ""
        (state / "config.yaml").write_text(f"""keys:
{keys}server: {{listen: "{self.url.split('/')[2]}"{certificate}}}
storage: {{type: sqlite, dsn: "{state}/registry.db"}}
tls: {{dir: "{state}", anchors: "{place}/root.pem", timeout: 30s}}
log: {{level: error}}
""")
        sites.openssl(state, "genrsa", "-out", "prv.pem", "2048")
        # Into a file: nobody reads what it says.
        said = stack.enter_context(open(state / "said", "wb"))
        self.process = stack.enter_context(tools.running(
            shop.server / "ssl-pinning", "up", "--config-file", state / "config.yaml", stdout=said))
        # It says so when everything was read: the first round begins.
        tools.wait_until(lambda: (state / "said").stat().st_size, "the server did not start", self.process)
        begin = time.monotonic()
        tools.wait_until(self.is_ready, "the server has nothing to serve", self.process)
        self.seconds = time.monotonic() - begin

    def is_ready(self):
        try:
            return answer(self.url, "/readyz").status == 200
        except (urllib.error.URLError, OSError):
            return False

    @property
    def processor_seconds(self):
        return tools.processor_seconds(self.process.pid)

    @property
    def peak_megabytes(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) / 1024


@contextmanager
def serve(shop):
    """A document of about 2 KB, and nginx with a file of the same bytes."""
    with endpoints() as (place, port, _), ExitStack() as stack:
        registries = [Registry(stack, shop, place, port, 6, tls) for tls in (False, True)]
        (place / "peer/www").mkdir(parents=True)
        place.chmod(0o755)
        (place / "peer/www/all.json").write_bytes(answer(registries[0].url, "/api/v1/all.json").read())
        plain, secure = tools.free_port(), tools.free_port()
        for file in ("chain.pem", "site.key"):
            (place / "peer" / file).write_bytes((place / file).read_bytes())
        peer = stack.enter_context(sites.nginx(place / "peer", "".join(f"""
            server {{ listen 127.0.0.1:{listen} backlog=4096; {tls}
              location / {{ root www; default_type application/json; add_header Cache-Control "public, max-age=60"; }} }}"""
                                        for listen, tls in ((plain, ""), (f"{secure} ssl", "TLS;")))))
        theirs = f"http://127.0.0.1:{plain}", f"https://127.0.0.1:{secure}"
        paths, seconds = ("/api/v1/all.json", "/all.json"), max(1, round(shop.seconds))
        length = len(answer(theirs[0], paths[1]).read())

        def wrk(url, path):
            def run():
                said = tools.output("wrk", "-t1", "-c32", f"-d{seconds}s", "--latency", url + path).decode()
                rate = float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])
                if "Non-2xx" in said or "Socket errors" in said or not rate:
                    raise SystemExit(f"bench: {said}")
                number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)\b", said).groups()
                return {"requests_per_s": rate, "p99_us": float(number) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]}
            return run

        def unchanged(url, path):
            etag = answer(url, path).headers["ETag"]
            return lambda: shop.go("unchanged", url.split("/")[2], path, etag, 32, seconds)

        def charged(process, run):
            def counted():
                before = tools.processor_seconds(process.pid)
                found = run()
                used = tools.processor_seconds(process.pid) - before
                return found | {"cpu_us_per_request": used / (found["requests_per_s"] * seconds) * 1e6}
            return counted

        yield [Case(f"serve-{name}", f"serve {what}, 32 connections",
                    [Measure("requests_per_s", "/s", less=False, ratio=1), Measure("p99_us", "µs"),
                     Measure("cpu_us_per_request", "µs")],
                    charged(registries[tls].process, load(registries[tls].url, paths[0])),
                    charged(peer, load(theirs[tls], paths[1])), "nginx")
               for name, what, tls, load in (
                   ("http", f"{length:_} bytes over HTTP".replace("_", " "), 0, wrk), ("304", "304 over HTTP", 0, unchanged),
                   ("tls", f"{length:_} bytes over TLS".replace("_", " "), 1, wrk))]


@contextmanager
def probes(shop):
    """A round over all endpoints by the registry server's own schedule and prober, and the whole server: from an empty
    store to its first document; from SIGHUP to the last probe, with the reading of the configuration."""
    with endpoints() as (place, port, counting):
        root = place / "root.pem"

        def go(count):
            return shop.go("scan", f"127.0.0.1:{port}", sites.DOMAIN, root, count)

        def accepted():
            """How many connections nginx has accepted, this question's among them."""
            return int(answer(f"http://127.0.0.1:{counting}").read().split()[7])

        def case(count):
            judged = count == shop.endpoints
            return Case(f"probes-{count}", f"a round of probes, {count:_} endpoints".replace("_", " "),
                        [Measure("handshakes_per_s", "/s", less=False),
                         Measure("cpu_s_per_1000", "s", ratio=1 if judged else None),
                         Measure("peak_rss_mb", "MB", most=150 if judged else None)],
                        lambda: tools.figures(shop.server / "scan", port, count, sites.DOMAIN, root),
                        lambda: go(count), "Go crypto/tls", "probes", count)

        def first_document():
            with ExitStack() as stack:
                registry = Registry(stack, shop, place, port, shop.endpoints)
                return rates(registry, registry.seconds, 0)

        def after_sighup():
            with ExitStack() as stack:
                registry = Registry(stack, shop, place, port, shop.endpoints)
                # The quick probes after the first ones are over.
                time.sleep(1)
                used, before, questions = registry.processor_seconds, accepted(), 0
                begin = time.monotonic()
                registry.process.send_signal(signal.SIGHUP)

                def is_over():
                    nonlocal questions
                    questions += 1
                    return accepted() - before - questions >= shop.endpoints

                tools.wait_until(is_over, "the server does not probe again", registry.process)
                seconds = time.monotonic() - begin
                # What is written afterwards needs memory, too.
                time.sleep(1)
                return rates(registry, seconds, used)

        def rates(registry, seconds, used):
            return {"handshakes_per_s": shop.endpoints / seconds, "peak_rss_mb": registry.peak_megabytes,
                    "cpu_s_per_1000": (registry.processor_seconds - used) / shop.endpoints * 1000}

        measures = [("handshakes_per_s", "/s", False), ("cpu_s_per_1000", "s", True), ("peak_rss_mb", "MB", True)]
        yield [case(count) for count in (1, 100, shop.endpoints)] + [
            Case(f"server-{name}", what, [Measure(*measure) for measure in measures], run,
                 lambda: go(shop.endpoints), "Go crypto/tls")
            for name, what, run in (("first", "the server, from an empty store to its first document", first_document),
                                    ("sighup", "the server, from SIGHUP to its last probe", after_sighup))]


@contextmanager
def bytes_(shop):
    """What a client fetches on a day without a change, and on one with."""
    with tools.folder() as place:
        sites.openssl(place, "genrsa", "-out", "prv.pem", "4096")

        def case(hosts):
            def run():
                found = tools.figures(shop.server / "bytes", place, hosts)
                return {f"{key}_kb": value / 1000 for key, value in found.items()}
            return Case(f"bytes-{hosts}", f"bytes a day, {hosts:_} hosts".replace("_", " "),
                        [Measure("statement_gzip_kb", "kB", most=1 if hosts == 1000 else None),
                         Measure("changed_gzip_kb", "kB"), Measure("whole_gzip_kb", "kB")], run, pairs=0)

        yield [case(hosts) for hosts in (10, 1000, 10_000)]
