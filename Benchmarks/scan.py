#!/usr/bin/env python3
"""Measures a round of looks at many endpoints: the registry server's schedule and observer
against a local nginx, the whole server from its start to its first document, the same server from
SIGHUP until it has looked at all of them again, and a peer, in turn. Prints a line for each; fails where the median of the rounds is slower than the peer, or
where anything needs more memory than it may.

    scan.py SCAN [--server SSL-PINNING] [--peer PROGRAM] [--count N] [--certificates N] [--rounds N]

A peer is a program that makes as many handshakes, started as
`PROGRAM scan -addr HOST:PORT -name NAME -ca FILE -n COUNT -c 64`, which prints
`handshakes_per_s=` and `cpu_s_per_1000=`."""

import argparse
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

DOMAIN = "scan.test"
MOST_MEGABYTES = 150


def openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def make_key(folder, name):
    openssl(folder, "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-out", f"{name}.key")


def issue(folder, name, subject, issuer, extensions):
    make_key(folder, name)
    with open(f"{folder}/{name}.ext", "w") as file:
        file.write(extensions)
    openssl(folder, "req", "-new", "-key", f"{name}.key", "-subj", f"/CN={subject}",
            "-out", f"{name}.csr")
    signer = ["-CA", f"{issuer}.pem", "-CAkey", f"{issuer}.key", "-CAcreateserial"]
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-days", "100", "-out", f"{name}.pem",
            "-extfile", f"{name}.ext",
            *(signer if issuer else ["-signkey", f"{name}.key"]))


AUTHORITY = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n"


def certificates(folder, count, number):
    """A root, an issuer, and so many leaves for the names; one alone is a wildcard's."""
    issue(folder, "root", "Scan Root", None, AUTHORITY)
    issue(folder, "issuer", "Scan Issuer", "root", AUTHORITY)
    sites = []
    for index in range(number):
        names = ([f"*.{DOMAIN}"] if number == 1 else
                 [f"h{i}.{DOMAIN}" for i in range(index, count, number)])
        issue(folder, f"site{index}", "scan", "issuer",
              "extendedKeyUsage=serverAuth\nsubjectAltName="
              + ",".join(f"DNS:{name}" for name in names) + "\n")
        with open(f"{folder}/chain{index}.pem", "w") as chain:
            for name in (f"site{index}", "issuer"):
                with open(f"{folder}/{name}.pem") as part:
                    chain.write(part.read())
        sites.append(names)
    return sites


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def configuration(folder, port, counting, sites):
    # Where there is one certificate it is shown to everybody.
    blocks = "".join(f"""
  server {{
    listen 127.0.0.1:{port} ssl{" backlog=4096" if index == 0 else ""};
    server_name {" ".join(names)};
    ssl_certificate chain{index}.pem;
    ssl_certificate_key site{index}.key;
    return 204;
  }}""" for index, names in enumerate(sites))
    temporary = "".join(f"  {kind}_temp_path {folder}/{kind};\n" for kind in
                        ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    return f"""daemon off;
{"user root;" if os.getuid() == 0 else ""}
worker_processes auto;
pid nginx.pid;
error_log stderr;
events {{ worker_connections 4096; multi_accept on; }}
http {{
  access_log off;
  server_names_hash_max_size 65536;
  server_names_hash_bucket_size 128;
  ssl_protocols TLSv1.2 TLSv1.3;
{temporary}{blocks}
  server {{ listen 127.0.0.1:{counting}; location / {{ stub_status; }} }}
}}
"""


def start_nginx(folder, sites):
    port, counting = free_port(), free_port()
    with open(f"{folder}/nginx.conf", "w") as file:
        file.write(configuration(folder, port, counting, sites))
    program = next((path for path in ("/usr/sbin/nginx", "/usr/bin/nginx", "/opt/homebrew/bin/nginx")
                    if os.access(path, os.X_OK)), "nginx")
    process = subprocess.Popen([program, "-p", folder, "-c", f"{folder}/nginx.conf", "-e", "stderr"])
    for _ in range(200):
        if os.path.exists(f"{folder}/nginx.pid"):
            return process, port, counting
        if process.poll() is not None:
            break
        time.sleep(0.05)
    process.terminate()
    process.wait()
    sys.exit("nginx did not start")


def figures(command):
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    sys.stderr.write(done.stderr)
    found = {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)\b", done.stdout)}
    made, wanted = re.search(r"ok=(\d+)/(\d+)", done.stdout).groups()
    if made != wanted:
        sys.exit(f"{command[0]}: {done.stdout}")
    return found


def connections(counting):
    """How many nginx has accepted, this question's among them."""
    with urllib.request.urlopen(f"http://127.0.0.1:{counting}/", timeout=30) as page:
        return int(page.read().split()[7])


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        ticks = file.read().rsplit(")", 1)[1].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def peak_megabytes(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1)) / 1024


def look_again(process, counting, count):
    """From SIGHUP, with the reading of the configuration, to the last look at all of them."""
    before, used, questions = connections(counting), processor_seconds(process.pid), 0
    start = time.monotonic()
    process.send_signal(signal.SIGHUP)
    while connections(counting) - before - questions <= count:
        if process.poll() is not None or time.monotonic() - start > 120:
            sys.exit("the server does not look again")
        questions += 1
        time.sleep(0.02)
    seconds = time.monotonic() - start
    used = processor_seconds(process.pid) - used
    # What is written afterwards needs memory too.
    time.sleep(2)
    return {"handshakes_per_s": count / seconds, "cpu_s_per_1000": used / count * 1000,
            "peak_rss_mb": peak_megabytes(process.pid)}


def serve(program, folder, port, counting, count):
    """Starts the server on an empty store; its first round ends when everything is seen and published.
    The second one is what becomes of SIGHUP."""
    listen = free_port()
    with tempfile.TemporaryDirectory() as state:
        keys = "".join(f"  - {{fqdn: h{index}.{DOMAIN}, file: all.json, port: {port}, "
                       f"address: 127.0.0.1}}\n" for index in range(count))
        with open(f"{state}/config.yaml", "w") as file:
            file.write(f"""keys:
{keys}server: {{listen: "127.0.0.1:{listen}"}}
storage: {{type: sqlite, dsn: "{state}/registry.db"}}
tls: {{dir: "{state}", anchors: "{folder}/root.pem", timeout: 30s}}
log: {{level: error}}
""")
        openssl(state, "genrsa", "-out", "prv.pem", "2048")
        process = subprocess.Popen(
            [program, "up", "--config-file", f"{state}/config.yaml"], stdout=subprocess.PIPE)
        try:
            # It says so when everything was read: the first round begins.
            process.stdout.readline()
            start = time.monotonic()
            while not is_ready(listen):
                if process.poll() is not None:
                    sys.exit("the server ended")
                time.sleep(0.02)
            seconds = time.monotonic() - start
            first = {"handshakes_per_s": count / seconds,
                     "cpu_s_per_1000": processor_seconds(process.pid) / count * 1000,
                     "peak_rss_mb": peak_megabytes(process.pid)}
            # The quick looks after the first ones are over.
            time.sleep(1)
            return first, look_again(process, counting, count)
        finally:
            process.terminate()
            process.wait()


def is_ready(port):
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).status == 200
    except (urllib.error.URLError, OSError):
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scan")
    parser.add_argument("--server")
    parser.add_argument("--peer")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--certificates", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rounds, servers, reloads, peers = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        sites = certificates(folder, options.count, options.certificates)
        process, port, counting = start_nginx(folder, sites)
        try:
            for _ in range(options.rounds):
                rounds.append(figures([options.scan, str(port), str(options.count), DOMAIN,
                                       f"{folder}/root.pem"]))
                if options.server:
                    first, again = serve(options.server, folder, port, counting, options.count)
                    servers.append(first)
                    reloads.append(again)
                if options.peer:
                    peers.append(figures(
                        [options.peer, "scan", "-addr", f"127.0.0.1:{port}", "-name", f"h0.{DOMAIN}",
                         "-ca", f"{folder}/root.pem", "-n", str(options.count), "-c", "64"]))
        finally:
            process.terminate()
            process.wait()

    def median(measured, name):
        return statistics.median(one[name] for one in measured)

    print(f"endpoints={options.count} certificates={options.certificates} rounds={options.rounds}")
    is_slower = is_larger = False
    for name, measured in (("peer", peers), ("scan", rounds), ("server", servers),
                           ("reload", reloads)):
        if not measured:
            continue
        line = [name, f"handshakes_per_s={median(measured, 'handshakes_per_s'):.0f}",
                f"cpu_s_per_1000={median(measured, 'cpu_s_per_1000'):.3f}"]
        if name != "peer":
            memory = max(one["peak_rss_mb"] for one in measured)
            line.append(f"peak_rss_mb={memory:.0f}")
            # What a reload takes is told, not judged: it reads the configuration as well.
            is_judged = name != "reload"
            is_larger = is_larger or is_judged and memory > MOST_MEGABYTES
            if peers:
                pairs = [own["handshakes_per_s"] / peer["handshakes_per_s"]
                         for own, peer in zip(measured, peers)]
                ratio = statistics.median(pairs)
                line.append(f"ratio={ratio:.2f} (from {min(pairs):.2f} to {max(pairs):.2f})")
                is_slower = is_slower or is_judged and ratio < 1
        print(*line)
    if is_slower:
        sys.exit("slower than the peer")
    if is_larger:
        sys.exit(f"more than {MOST_MEGABYTES} MB")


main()
