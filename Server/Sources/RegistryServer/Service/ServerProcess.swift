import Foundation
import SslPinningPlatform
import TLSTools

/// What a process sets up for itself where the server is all that it does.
public enum ServerProcess {
  /// Hides its memory, since it holds keys. Raises the limit of open files, which
  /// ``RegistryService/run(reading:manager:whenListening:)`` does too, has the allocator keep less than it would, and the resolver ask again after a second, five times, unless the
  /// environment has `RES_OPTIONS`: by itself it waits 5 s, longer than a probe waits for it, so that one lost
  /// packet would cost a probe (resolv.conf(5)).
  ///
  /// To be called first, since it changes nothing for threads that run already. Of 10 000 endpoints the
  /// first document takes 130 MB with it and 165 MB without.
  public static func prepare() {
    ProcessMemory.hide()
    DescriptorLimit.raise()
    ProcessMemory.economise(arenas: 4)
    setenv("RES_OPTIONS", "timeout:1 attempts:5", 0)
  }
}

/// How many files and sockets this process may open.
enum DescriptorLimit {
  /// Raises the limit to the hard one that the system allows.
  ///
  /// The usual soft limit of 1024 is below what clients alone may take of the server
  /// (``HTTPLimits/connections``): whoever opens as many idle connections would leave none to probe
  /// endpoints with, and a key that changes meanwhile would not be published.
  static func raise() {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
    // Not without end: libraries allocate tables by it.
    let wanted = min(limit.rlim_max, 65_536)
    guard limit.rlim_cur < wanted else { return }
    limit.rlim_cur = wanted
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }
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

  /// Listens when it returns. A signal that comes before has its usual effect.
  ///
  /// Sources are installed on another thread. The default effect is not taken away here: the source
  /// does that when it is installed, and ignoring the signal earlier would lose one that comes in
  /// between.
  ///
  /// - Parameter hangUp: is called for each SIGHUP.
  package init(hangUp: @escaping @Sendable () -> Void = {}) async {
    signal(SIGPIPE, SIG_IGN)
    await listen(SIGHUP, hangUp)
    await listen(SIGTERM) { [weak self] in self?.note("SIGTERM") }
    await listen(SIGINT) { [weak self] in self?.note("SIGINT") }
  }

  deinit { state.withLock { Self.letGo(&$0) } }

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
