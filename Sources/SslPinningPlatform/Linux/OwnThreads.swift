#if os(Linux)
  import Foundation
  import SslPinningRules

  /// Threads for what blocks, apart from the process-wide pools, which anybody may fill.
  ///
  /// So many at a time at most; what comes on top waits for its turn.
  final class OwnThreads: Sendable {
    private struct State {
      var running = 0
      var waiting: [@Sendable () -> Void] = []
    }

    private let limit: Int
    private let state = Locked(State())

    init(limit: Int) { self.limit = limit }

    func run(_ work: @escaping @Sendable () -> Void) {
      let isNew = state.withLock { state in
        state.waiting.append(work)
        guard state.running < limit else { return false }
        state.running += 1
        return true
      }
      // Chains are validated on it, and streams are the app's own code.
      guard isNew, !DetachedThread.start(stackBytes: 1 << 20, { self.serve() }) else { return }
      // No thread is to be had: better late, from the pool, than never.
      DispatchQueue.global().async { self.serve() }
    }

    private func serve() {
      while let work = next() { work() }
    }

    private func next() -> (@Sendable () -> Void)? {
      state.withLock { state in
        guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
        state.running -= 1
        return nil
      }
    }
  }

  /// A thread of our own. Not Foundation's `Thread`, which says nothing where none could be started: whoever
  /// waits for what it was to do would wait for ever.
  package enum DetachedThread {
    private final class Body {
      let run: @Sendable () -> Void
      init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// - Returns: whether it was started.
    package static func start(stackBytes: Int, _ body: @escaping @Sendable () -> Void) -> Bool {
      var attributes = pthread_attr_t()
      guard pthread_attr_init(&attributes) == 0 else { return false }
      defer { pthread_attr_destroy(&attributes) }
      pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
      pthread_attr_setstacksize(&attributes, stackBytes)
      var thread = pthread_t()
      let held = Unmanaged.passRetained(Body(body))
      let code = pthread_create(
        &thread, &attributes,
        { argument in
          if let argument { Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run() }
          return nil
        }, held.toOpaque())
      if code != 0 { held.release() }
      return code == 0
    }
  }
#endif
