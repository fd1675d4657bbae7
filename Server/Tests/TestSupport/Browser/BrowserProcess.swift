import Foundation

/// Debian's chromedriver, and whatever it starts, under a supervisor that ends all of them.
///
/// - A browser is a dozen processes, some in groups of their own, and chromedriver forgets them when it
///   is killed. The supervisor is the reaper of all its descendants, so it finds every one, whoever its
///   parent was, and ends it by its id.
/// - It does so on SIGTERM, when chromedriver ends, and when this process is gone, however it went: a
///   browser that is shared by all tests has no last reference to go by.
/// - Profile, cache and temporary files are in a directory of its own, removed at the end.
final class BrowserProcess: Sendable {
  /// Where chromedriver answers.
  let port: UInt16
  private let supervisor: ChildProcess

  static func start() async throws -> BrowserProcess {
    // Not one that chromedriver looks for: it takes one of IPv6 that IPv4 may have in use.
    let port = try freePort()
    let supervisor = try ChildProcess(
      "python3", ["-c", script, "\(getpid())", "chromedriver", "--port=\(port)"],
      lastSignal: SIGTERM)
    try await supervisor.waitForOutput(containing: "started successfully on port ")
    return BrowserProcess(port: port, supervisor: supervisor)
  }

  private init(port: UInt16, supervisor: ChildProcess) {
    self.port = port
    self.supervisor = supervisor
  }

  /// What chromedriver said.
  var log: String { supervisor.stdout + supervisor.stderr }

  private static let script = #"""
    import ctypes, os, select, shutil, signal, subprocess, sys, tempfile

    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    parent = int(sys.argv[1])
    try:
        watched = os.pidfd_open(parent)
    except ProcessLookupError:
        sys.exit(1)
    if os.getppid() != parent:
        sys.exit(1)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)

    def descendants():
        parents = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat") as file:
                    parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
            except OSError:
                pass
        found = [os.getpid()]
        for pid in found:
            found += [child for child, its in parents.items() if its == pid]
        return found[1:]

    home = tempfile.mkdtemp(prefix="pinning-browser.")
    try:
        environment = dict(os.environ, HOME=home, TMPDIR=home)
        driver = subprocess.Popen(
            sys.argv[2:], stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
        waiting = select.poll()
        waiting.register(watched, select.POLLIN)
        waiting.register(wake, select.POLLIN)
        over = False
        while not over:
            over = any(handle == watched for handle, _ in waiting.poll())
            if not over:
                over = any(byte != signal.SIGCHLD for byte in os.read(wake, 64))
            try:
                while (ended := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                    over = over or ended == driver.pid
            except ChildProcessError:
                over = True
    finally:
        while True:
            for pid in descendants():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                break
        shutil.rmtree(home, ignore_errors=True)
    """#
}
