"""A machine for trying a package on: the Debian that this is, with a systemd of its own, in namespaces.

- Files are those of this machine below a layer of their own (overlayfs): what is written there is gone with it.
- Network, processes, mounts, host name and control groups are private, and nothing leads outside. /proc/sys and /sys
  can only be read.
- Needs root, for overlayfs and for systemd as the first process.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

# Of a whole system's start only what a service needs.
MASKED = ["systemd-sysctl.service", "systemd-modules-load.service", "systemd-remount-fs.service",
          "systemd-random-seed.service", "systemd-timesyncd.service", "systemd-udevd.service",
          "systemd-udev-trigger.service", "systemd-binfmt.service", "sys-kernel-debug.mount",
          "sys-kernel-tracing.mount", "sys-kernel-config.mount", "sys-fs-fuse-connections.mount",
          "dev-hugepages.mount", "dev-mqueue.mount"]

SETUP = r"""
set -eu
base=$1 hidden=$2
root=$base/root
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=/,upperdir=$base/upper,workdir=$base/work" "$root"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
if [ -n "$hidden" ]; then mount -t tmpfs -o ro tmpfs "$root$hidden"; fi
hostname trial
ip link set lo up
mkdir "$root/run/before"
cd "$root"
pivot_root . run/before
umount -l /run/before
exec env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd --system --unit=basic.target --show-status=no </dev/null >/dev/null 2>&1
"""


class Machine:
    """Runs from `with` to the end of its block."""

    def __init__(self, hidden=""):
        """`hidden` is a directory that is empty there."""
        self.hidden = hidden

    def __enter__(self):
        self.base = Path(tempfile.mkdtemp(prefix="package-", dir="/var/tmp"))
        for name in ("upper/etc/systemd/system", "work", "root"):
            (self.base / name).mkdir(parents=True)
        for unit in MASKED:
            (self.base / "upper/etc/systemd/system" / unit).symlink_to("/dev/null")
        groups = Path("/sys/fs/cgroup/unified")
        self.group = (groups if groups.is_dir() else groups.parent) / self.base.name
        self.group.mkdir()
        self.outside = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec unshare --mount --net --pid --fork --uts --ipc '
             '--cgroup --kill-child bash -c "$1" bash "$2" "$3"', str(self.group), SETUP, str(self.base), self.hidden],
            stdin=subprocess.DEVNULL)
        self.first = None
        try:
            self.await_start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def await_start(self):
        for _ in range(300):
            if self.outside.poll() is not None:
                raise SystemExit("package: cannot make a machine; hint: it needs root, overlayfs and systemd")
            children = Path(f"/proc/{self.outside.pid}/task/{self.outside.pid}/children").read_text().split()
            self.first = children[0] if children else None
            if self.first and Path(f"/proc/{self.first}/comm").read_text() == "systemd\n":
                if self.run("systemctl is-system-running", check=False).stdout.strip() in ("running", "degraded"):
                    return
            time.sleep(0.2)
        raise SystemExit("package: systemd does not start on a machine of its own")

    def run(self, script, check=True, **variables):
        """Runs lines of bash there as root."""
        settings = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
                    "DEBIAN_FRONTEND": "noninteractive", "SYSTEMD_PAGER": "", **variables}
        done = subprocess.run(
            ["nsenter", "--target", self.first, "--mount", "--net", "--pid", "--uts", "--ipc", "--cgroup", "--wdns=/srv",
             "env", "-i", *(f"{name}={value}" for name, value in settings.items()), "bash", "-euo", "pipefail", "-c",
             script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
        if check and done.returncode != 0:
            raise SystemExit(f"package: failed with {done.returncode}: {script}\n{done.stdout}")
        return done

    def write(self, name, content):
        """Writes a file there."""
        path = Path(f"/proc/{self.first}/root/{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def __exit__(self, *_):
        # All that runs there ends with the first process, and that one with unshare.
        if self.first:
            try:
                os.kill(int(self.first), signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.outside.kill()
        self.outside.wait()
        for _ in range(50):
            left = sorted((path for path in self.group.rglob("*") if path.is_dir()), reverse=True)
            try:
                for path in [*left, self.group]:
                    path.rmdir()
                break
            except OSError:
                time.sleep(0.1)
        shutil.rmtree(self.base, ignore_errors=True)
