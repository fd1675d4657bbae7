#!/usr/bin/env python3
"""Installs the package on a machine of its own, where no Swift is, and tries what docs/install.md says.

    scripts/package-test.py PACKAGE.deb    as root
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from machine import Machine

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs/install.md").read_text()
LIST = "http://127.0.0.1:7500/api/v1/www.example.com.json"
VERIFY = f"ssl-pinning verify --json --key /var/lib/ssl-pinning/tls/pub.pem {LIST}"

# www.example.com, as the sample configuration has it, under an authority that this machine trusts.
SITE = """
echo 127.0.0.1 www.example.com >>/etc/hosts
openssl req -x509 -newkey rsa:2048 -nodes -days 9 -subj '/CN=Trial CA' -keyout ca.key -out ca.pem 2>/dev/null
openssl req -newkey rsa:2048 -nodes -subj /CN=site -keyout site.key -out site.csr 2>/dev/null
openssl x509 -req -days 9 -in site.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out site.pem \\
  -extfile <(echo subjectAltName=DNS:www.example.com) 2>/dev/null
install -m 644 ca.pem /usr/local/share/ca-certificates/trial.crt
update-ca-certificates >/dev/null 2>&1
systemd-run --quiet --unit=site openssl s_server -quiet -www -accept 443 -cert /srv/site.pem -key /srv/site.key
"""


def check(what, holds, detail=""):
    print(f"package: {what}: {'ok' if holds else 'FAILED'}")
    if not holds:
        sys.exit(str(detail))


def blocks(heading):
    """What is to be pasted below a heading of the page."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^```sh\n(.*?)^```$", section, re.M | re.S)


def field(package, name):
    return subprocess.run(["dpkg-deb", "--field", str(package), name], check=True, capture_output=True,
                          text=True).stdout.strip()


def newer(package, place):
    """The same package in a version after it."""
    tree, later = place / "tree", field(package, "Version") + "+1"
    subprocess.run(["dpkg-deb", "--raw-extract", str(package), str(tree)], check=True)
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*$", f"Version: {later}", control.read_text(), flags=re.M))
    # Another default for whoever installs it anew.
    sample = tree / "etc/ssl-pinning/config.yaml"
    sample.write_text(sample.read_text() + "# a line that the older package did not have\n")
    target = place / "newer.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(tree), str(target)], check=True,
                   stdout=subprocess.DEVNULL)
    shutil.rmtree(tree)
    return target


def service(machine, *names):
    shown = machine.run("systemctl show ssl-pinning -p " + ",".join(names)).stdout
    return dict(line.split("=", 1) for line in shown.splitlines())


def try_alone(machine, package):
    """The program, in a directory with the packages that it depends on, and theirs, and nothing else."""
    names = [name.split()[0] for name in field(package, "Depends").split(", ")]
    needed = [name for name in names if name not in ("adduser", "ca-certificates")]
    missing = [name for name in names if f"`{name}`" not in PAGE]
    check("docs/install.md names what it depends on", not missing, missing)
    known = subprocess.run(["dpkg-query", "-W", "-f", "${Package}\t${Pre-Depends}, ${Depends}\n"], check=True,
                           capture_output=True, text=True).stdout
    depends = dict(line.split("\t") for line in known.splitlines())
    found, waiting = set(), list(needed)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for group in depends[name].split(","):
            choices = [choice.split()[0].split(":")[0] for choice in group.split("|") if choice.strip()]
            waiting += [choice for choice in choices if choice in depends][:1]
    machine.run(f"""
        mkdir -p alone/usr/bin alone/usr/lib alone/usr/lib64 alone/usr/sbin alone/dev alone/proc
        for name in bin lib lib64 sbin; do ln -s usr/$name alone/$name; done
        dpkg -L {' '.join(sorted(found))} | sort -u | while read -r path; do
          [ -d "$path" ] && [ ! -L "$path" ] || echo "$path"
        done | tar -c -T - 2>/dev/null | tar -x -C alone --keep-directory-symlink
        dpkg-deb --fsys-tarfile package.deb | tar -x -C alone --keep-directory-symlink ./usr/bin/ssl-pinning
        mount --bind /dev alone/dev
        mount --bind /proc alone/proc
    """)
    alone = "chroot alone /usr/bin/ssl-pinning"
    version = machine.run(f"{alone} --version").stdout.strip()
    check("runs beside nothing but what it depends on", version == f"ssl-pinning {field(package, 'Version')}", version)
    made = machine.run(f"{alone} keys generate --out /keys").stdout
    check("makes keys there", made.startswith("MII"), made)


def try_service(machine):
    """The three commands, and what came of them."""
    machine.run(SITE)
    shown = machine.run("".join(blocks("From the package to a signed list"))).stdout
    check("from the package to a signed list by the lines of docs/install.md",
          "\nMII" in shown and "\nformat 1   valid\n" in shown, shown)
    pin = machine.run("ssl-pinning pin site.pem | head -n 1 | cut -d ' ' -f 1").stdout.strip()
    check("the list has the key that the site shows", pin in machine.run(VERIFY).stdout)
    state = service(machine, "ActiveState", "StatusText", "WatchdogUSec", "NotifyAccess", "MainPID", "User")
    check("is active, and says where it listens",
          state["ActiveState"] == "active" and state["StatusText"] == "listening on 127.0.0.1:7500", state)
    status = machine.run(f"cat /proc/{state['MainPID']}/status").stdout
    rights = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    user = machine.run("id -u ssl-pinning").stdout.strip()
    check("runs as its user, without a right to anything",
          rights["Uid"].split() == [user] * 4 and rights["NoNewPrivs"] == "1" and rights["Seccomp"] == "2"
          and all(int(rights[name], 16) == 0 for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")), rights)
    limits = machine.run(f"cat /proc/{state['MainPID']}/limits").stdout
    check("leaves no core dump", re.search(r"^Max core file size +0 +0 ", limits, re.M), limits)
    exposure = machine.run("systemd-analyze security ssl-pinning | tail -n 1").stdout
    level = re.search(r"(\d+\.\d+)", exposure)
    check("docs/install.md has what systemd-analyze security counts", level and f"counts {level[1]} of 10" in PAGE, exposure)
    verified = machine.run("systemd-analyze verify /lib/systemd/system/ssl-pinning.service").stdout
    check("systemd-analyze verify finds nothing", not verified, verified)
    asked = machine.run("""
        mkdir -p /run/systemd/system/clock.service.d
        sed 's/^ExecStart=.*/ExecStart=python3 -c "import ctypes; c = ctypes.CDLL(None); exit(c.adjtimex(bytes(512)) < 0)"/;
             s/^Type=.*/Type=oneshot/; /^Restart/d; /^WatchdogSec/d' \
          /lib/systemd/system/ssl-pinning.service >/run/systemd/system/clock.service
        systemctl daemon-reload
        systemctl start clock && systemctl show clock -p Result
    """, check=False).stdout
    check("the service may ask whether the clock is synchronised", asked.strip() == "Result=success", asked)
    private = machine.run("stat -c '%U %G %a' /etc/ssl-pinning/config.yaml /var/lib/ssl-pinning "
                          "/var/lib/ssl-pinning/tls/prv.pem").stdout.splitlines()
    check("configuration and keys are nobody else's",
          private == ["root ssl-pinning 640", "ssl-pinning ssl-pinning 750", "ssl-pinning ssl-pinning 600"], private)
    machine.run("".join(blocks("Run it")))
    print("package: the lines under \"Run it\": ok")


def try_drop_in(machine):
    """What the page lets the service do besides."""
    machine.write("etc/systemd/system/ssl-pinning.service.d/trial.conf", re.search(r"```ini\n(.*?)```", PAGE, re.S)[1])
    machine.run("""
        cp /etc/ssl-pinning/config.yaml good.yaml
        sed 's/^  listen: .*/  listen: 127.0.0.1:80/' good.yaml >/etc/ssl-pinning/config.yaml
        echo 'publish: {dir: /srv/registry}' >>/etc/ssl-pinning/config.yaml
        install -d -o ssl-pinning /srv/registry
        systemctl daemon-reload
        systemctl restart ssl-pinning
    """)
    machine.run(f"curl -fsS --retry 20 --retry-all-errors --retry-delay 1 {LIST.replace(':7500', '')} >list")
    copy = machine.run("for i in $(seq 50); do [ ! -e registry/www.example.com.json ] || break; sleep 0.1; done; "
                       "runuser -u nobody -- cmp list registry/www.example.com.json", check=False)
    check("with the drop-in of docs/install.md it has port 80, and copies that anybody reads", copy.returncode == 0,
          copy.stdout)
    machine.run("rm -r /etc/systemd/system/ssl-pinning.service.d; cat good.yaml >/etc/ssl-pinning/config.yaml; "
                "systemctl daemon-reload; systemctl restart ssl-pinning")


def try_changes(machine):
    """Reloading, and a process that hangs."""
    before = service(machine, "MainPID")["MainPID"]
    machine.run("cp /etc/ssl-pinning/config.yaml good.yaml; echo 'keys: [' >>/etc/ssl-pinning/config.yaml; "
                "systemctl reload ssl-pinning")
    told = machine.run("for i in $(seq 50); do journalctl -u ssl-pinning | grep configuration_refused && break; sleep 0.1; done")
    after = service(machine, "MainPID", "ActiveState")
    check("a configuration that is no good changes nothing",
          "configuration_refused" in told.stdout and after == {"MainPID": before, "ActiveState": "active"}, after)
    machine.run("cat good.yaml >/etc/ssl-pinning/config.yaml; systemctl reload ssl-pinning")
    version = statement(machine)
    # Nobody is there to give a sign of life. Not a minute here, but two seconds.
    machine.run("""
        mkdir -p /etc/systemd/system/ssl-pinning.service.d
        printf '[Service]\\nWatchdogSec=2\\nTimeoutAbortSec=1\\nRestartSec=100ms\\n' \
          >/etc/systemd/system/ssl-pinning.service.d/trial.conf
        systemctl daemon-reload
        systemctl restart ssl-pinning
        kill -STOP $(systemctl show ssl-pinning -p MainPID --value)
        for i in $(seq 300); do
          [ "$(systemctl show ssl-pinning -p NRestarts --value)" = 0 ] || break
          sleep 0.1
        done
        until systemctl is-active ssl-pinning; do sleep 0.1; done
    """)
    check("a process that hangs is started anew", service(machine, "NRestarts")["NRestarts"] == "1")
    check("and serves the list from its store", statement(machine) >= version)
    machine.run("rm -r /etc/systemd/system/ssl-pinning.service.d; systemctl daemon-reload; systemctl restart ssl-pinning; sleep 1")
    check("and is not restarted while nothing hangs", service(machine, "NRestarts")["NRestarts"] == "0")


def statement(machine):
    """The version of the list's statement."""
    document = json.loads(machine.run(f"for i in $(seq 100); do curl -fsS {LIST} && break; sleep 0.2; done").stdout
                          .split("curl:")[-1].split("\n")[-1])
    return document["statement"]["version"]


def try_life(machine):
    """Upgrade, removal, coming back, purge."""
    machine.run("echo '# mine' >>/etc/ssl-pinning/config.yaml")
    version, before = statement(machine), service(machine, "MainPID")["MainPID"]
    machine.run("dpkg --force-confdef --install newer.deb")
    config = machine.run("cat /etc/ssl-pinning/config.yaml; stat -c '%U %G %a' /etc/ssl-pinning/config.yaml").stdout
    check("an upgrade keeps the configuration", "# mine\nroot ssl-pinning 640\n" in config, config)
    after = service(machine, "MainPID", "ActiveState")
    check("and restarts the service", after["ActiveState"] == "active" and after["MainPID"] not in ("0", before), after)
    check("which goes on with its store", statement(machine) >= version)
    machine.run("dpkg --remove ssl-pinning")
    left = machine.run("set +e; systemctl is-active ssl-pinning; ls /usr/bin/ssl-pinning /lib/systemd/system/ssl-pinning.service; "
                       "ls /etc/ssl-pinning /var/lib/ssl-pinning", check=False).stdout
    check("removal stops it, and leaves configuration and state",
          left.startswith("inactive\n") and left.count("No such file") == 2 and "config.yaml" in left
          and "registry.db" in left and "tls" in left, left)
    machine.run("dpkg --install newer.deb; systemctl start ssl-pinning")
    check("installed again, it goes on", statement(machine) >= version)
    purged = machine.run("set +e; dpkg --purge ssl-pinning; ls -d /etc/ssl-pinning /etc/systemd/system/*/ssl-pinning.service; "
                         "ls /var/lib/ssl-pinning/tls", check=False).stdout
    check("purge deletes the configuration, and keeps the keys and says so",
          purged.count("No such file") == 2 and "prv.pem" in purged and "kept /var/lib/ssl-pinning" in purged, purged)


def try_files(machine, package):
    """What stands where."""
    check("every file is as it was packed", not machine.run("dpkg --verify ssl-pinning").stdout)
    names = machine.run("dpkg-deb --contents package.deb").stdout
    check("everything is root's", all(" root/root " in line for line in names.splitlines()), names)
    pages = machine.run("man -w ssl-pinning ssl-pinning-up ssl-pinning-keys-generate").stdout
    check("man finds the pages", pages.count("/usr/share/man/man1/ssl-pinning") == 3, pages)
    offered = machine.run("""
        source /usr/share/bash-completion/completions/ssl-pinning
        COMP_WORDS=(ssl-pinning keys gen) COMP_CWORD=2
        _ssl_pinning && echo "${COMPREPLY[@]}"
    """).stdout
    check("bash completes", offered == "generate\n", offered)


def main(package):
    if os.getuid() != 0:
        sys.exit("package: not tried, because this is not root; hint: sudo scripts/package-test.py")
    swift = shutil.which(os.environ.get("SWIFT", "swift"))
    # .../usr/bin/swift: the toolchain is two levels up, unless it is the system's own.
    toolchain = str(Path(swift).parent.parent.parent) if swift else ""
    with tempfile.TemporaryDirectory() as place, Machine("" if toolchain == "/" else toolchain) as machine:
        machine.write("srv/package.deb", package.read_bytes())
        machine.write(f"srv/{package.name}", package.read_bytes())
        machine.write("srv/newer.deb", newer(package, Path(place)).read_bytes())
        check("no Swift is there", machine.run("command -v swift || echo none").stdout == "none\n")
        try_alone(machine, package)
        try_service(machine)
        try_files(machine, package)
        try_drop_in(machine)
        try_changes(machine)
        try_life(machine)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} PACKAGE.deb")
    main(Path(sys.argv[1]))
