#if os(Linux)
  import Foundation
  import SslPinningRules

  /// Threads for what blocks, apart from the process-wide pools, which anybody may fill.
  ///
  /// So many at a time at most, and so many for one owner; what comes on top waits for its turn.
  final class OwnThreads: Sendable {
    private let turns: Locked<ThreadTurns<@Sendable () -> Void>>

    /// - Parameter share: the most threads of one owner; `nil`: all of them.
    init(limit: Int, share: Int? = nil) {
      turns = Locked(ThreadTurns(limit: limit, share: share ?? limit))
    }

    func run(for owner: UInt64 = 0, _ work: @escaping @Sendable () -> Void) {
      guard turns.withLock({ $0.begin(work, for: owner) }) else { return }
      let serve: @Sendable () -> Void = { [self] in
        var next: (owner: UInt64, work: @Sendable () -> Void)? = (owner, work)
        while let (owner, work) = next {
          work()
          next = turns.withLock { $0.end(for: owner) }
        }
      }
      // Chains are validated on it, and streams are the app's own code.
      guard !DetachedThread.start(stackBytes: 1 << 20, serve) else { return }
      // No thread is to be had: better late, from the pool, than never.
      DispatchQueue.global().async(execute: serve)
    }
  }

  /// What runs, and what waits, of the work that several owners bring.
  ///
  /// - Work waits only where all threads are taken, or its owner's share is.
  /// - What came first goes first, but for what waits for its owner's share alone.
  struct ThreadTurns<Work> {
    private let limit: Int
    private let share: Int
    private var total = 0
    private var running: [UInt64: Int] = [:]
    private var waiting: [(owner: UInt64, work: Work)] = []

    init(limit: Int, share: Int) {
      (self.limit, self.share) = (limit, share)
    }

    /// - Returns: whether the work runs at once; it waits otherwise.
    mutating func begin(_ work: Work, for owner: UInt64) -> Bool {
      guard hasRoom(for: owner) else {
        waiting.append((owner, work))
        return false
      }
      take(for: owner)
      return true
    }

    /// Ends an owner's work.
    ///
    /// - Returns: what runs in its place. There is never room for more: one place became free.
    mutating func end(for owner: UInt64) -> (owner: UInt64, work: Work)? {
      let left = running[owner, default: 1] - 1
      running[owner] = left > 0 ? left : nil
      total -= 1
      for index in waiting.indices where hasRoom(for: waiting[index].owner) {
        let next = waiting.remove(at: index)
        take(for: next.owner)
        return next
      }
      return nil
    }

    private func hasRoom(for owner: UInt64) -> Bool {
      total < limit && running[owner, default: 0] < share
    }

    private mutating func take(for owner: UInt64) {
      total += 1
      running[owner, default: 0] += 1
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
