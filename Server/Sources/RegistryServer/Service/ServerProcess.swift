import Foundation
import HTTPServing
import SslPinningPlatform
import Synchronization
import TLSTools

/// What a process sets up for itself where the server is all that it does.
public enum ServerProcess {
  /// Hides its memory, since it holds keys. Keeps a SIGHUP for whoever listens later. Raises the limit of open files, which
  /// ``RegistryService/start()`` does too, has the allocator keep less than it would, and the resolver ask again after a
  /// second, five times, unless the environment has `RES_OPTIONS`: by itself it waits 5 s, longer than a probe waits for it,
  /// so that one lost packet would cost a probe (resolv.conf(5)).
  ///
  /// To be called first, since it changes nothing for threads that run already. Of 10 000 endpoints the
  /// first document takes 130 MB with it and 165 MB without.
  public static func prepare() {
    ProcessMemory.hide()
    EarlyHangUp.note()
    DescriptorLimit.raise()
    ProcessMemory.economise(arenas: 4)
    setenv("RES_OPTIONS", "timeout:1 attempts:5", 0)
  }
}

/// How many files and sockets this process may open, and what clients may take of them.
///
/// A client that is one too many waits. A probe that finds no descriptor fails, and a key that changes meanwhile is not
/// published. So the connections of clients are bounded by what the system allows.
enum DescriptorLimit {
  /// What probes, name lookups, the store and files may take. 256 probes at once have up to three sockets each, at addresses
  /// that do not answer: 790 were counted.
  static let reserve = 900
  /// Connections that a listener takes however low the limit is.
  static let fewest = 48
  /// Not without end: libraries allocate tables by it.
  private static let most = 65_536

  /// Raises the limit to the hard one that the system allows.
  ///
  /// - Returns: the limit from then on.
  @discardableResult static func raise() -> Int {
    let kind = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    var limit = rlimit()
    guard getrlimit(kind, &limit) == 0 else { return most }
    var raised = limit
    raised.rlim_cur = max(limit.rlim_cur, min(limit.rlim_max, rlim_t(most)))
    let isRaised = setrlimit(kind, &raised) == 0
    return Int(clamping: isRaised ? raised.rlim_cur : limit.rlim_cur)
  }

  /// How many connections a listener takes.
  ///
  /// - Parameters:
  ///   - wanted: how many it should take.
  ///   - all: how many all listeners should take.
  ///   - limit: of open files.
  static func connections(_ wanted: Int, of all: Int, within limit: Int) -> Int {
    let left = max(0, limit - reserve)
    return all <= left ? wanted : max(min(wanted, fewest), wanted * left / all)
  }

  /// Warns if there are fewer than there should be.
  static func warn(of configuration: ServerConfiguration, _ log: ServerLog) {
    let (limit, needed) = (raise(), configuration.connections + reserve)
    guard limit < needed else { return }
    let wanted = HTTPLimits().connections
    let taken = configuration.limits(wanted, within: limit).connections
    log.event(
      .warn, "descriptors_short",
      [
        "message":
          "the limit of open files is \(limit), so server.listen takes \(taken) connections instead of \(wanted):"
          + " the rest is for probes; hint: raise the hard limit to \(needed), as by LimitNOFILE of systemd,"
          + " --ulimit nofile of Docker, or ulimit -n in a start script"
      ])
  }
}

/// A SIGHUP while a process starts, when no ``TerminationSignal`` listens yet. By itself it would end the process.
enum EarlyHangUp {
  private static let hasCome = Atomic(false)

  /// Notes it from now on. It is not ignored: commands that this process runs would inherit that.
  static func note() {
    // Made here, since a handler must not.
    hasCome.store(false, ordering: .relaxed)
    signal(SIGHUP) { _ in EarlyHangUp.hasCome.store(true, ordering: .relaxed) }
  }

  /// Whether it came since it was asked last.
  static func take() -> Bool { hasCome.exchange(false, ordering: .relaxed) }
}

/// Listens for the signals that ask a process to end, from its creation on: one that comes before
/// anybody waits is not lost.
///
/// - SIGPIPE is ignored from then on: a closed log pipe or peer is an error code, never the end.
/// - SIGHUP is told and otherwise ignored: a terminal that closes, or a habit from other servers, must
///   not stop the watching without a word.
/// - After the first signal both have their usual effect again, so a second one ends a process that
///   hangs while it stops.
package final class TerminationSignal: Sendable {
  private struct State: @unchecked Sendable {
    var name: String?
    var waiting: CheckedContinuation<String, Never>?
    /// Kept for their events; touched under the lock only.
    var sources: [any DispatchSourceSignal] = []
  }

  private let state = Locked(State())
  private let hangUp: @Sendable () -> Void

  /// Listens when it returns. A signal that comes before has its usual effect, but for SIGHUP after
  /// ``ServerProcess/prepare()``: that is for ``catchUp()``.
  ///
  /// Sources are installed on another thread. The default effect is not taken away here: the source
  /// does that when it is installed, and ignoring the signal earlier would lose one that comes in
  /// between.
  ///
  /// - Parameter hangUp: is called for each SIGHUP.
  package init(hangUp: @escaping @Sendable () -> Void = {}) async {
    self.hangUp = hangUp
    signal(SIGPIPE, SIG_IGN)
    await listen(SIGHUP, hangUp)
    await listen(SIGTERM) { [weak self] in self?.note("SIGTERM") }
    await listen(SIGINT) { [weak self] in self?.note("SIGINT") }
  }

  deinit { state.withLock { Self.letGo(&$0) } }

  /// Makes up for a SIGHUP that came before this listened: what it is about may have been read before it came.
  package func catchUp() {
    if EarlyHangUp.take() { hangUp() }
  }

  /// Waits for SIGTERM or SIGINT and returns its name. One waiter at a time.
  package func wait() async -> String {
    await withCheckedContinuation { continuation in
      let name = state.withLock { state in
        if state.name == nil { state.waiting = continuation }
        return state.name
      }
      if let name { continuation.resume(returning: name) }
    }
  }

  /// Has the process end without a signal; `name` is what ``wait()`` returns.
  package func end(_ name: String) { note(name) }

  private func listen(_ number: Int32, _ note: @escaping @Sendable () -> Void) async {
    let source = DispatchSource.makeSignalSource(signal: number)
    source.setEventHandler(handler: note)
    state.withLock { $0.sources.append(source) }
    await withCheckedContinuation { continuation in
      source.setRegistrationHandler { continuation.resume() }
      source.resume()
    }
  }

  private func note(_ name: String) {
    let waiting = state.withLock { state in
      state.name = state.name ?? name
      Self.letGo(&state)
      return state.waiting.take()
    }
    waiting?.resume(returning: name)
  }

  private static func letGo(_ state: inout State) {
    for source in state.sources { source.cancel() }
    state.sources = []
    for number in [SIGTERM, SIGINT] { signal(number, SIG_DFL) }
    signal(SIGHUP, SIG_IGN)
  }
}
