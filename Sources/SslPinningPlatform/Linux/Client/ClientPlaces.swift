#if os(Linux)
  import Synchronization

  /// How many requests of one client have a connection or a stream, over all of its loops.
  ///
  /// - Whatever the other loops leave a loop may have: all hosts of HTTP/2 are on one.
  /// - A few places are each loop's own, so that no other one can keep it waiting.
  /// - Open streams take at most seven eighths.
  final class ClientPlaces: Sendable {
    /// Each loop's own.
    private let own: Int
    /// All beyond those.
    private let shared: Int
    private let mostStreams: Int
    private let taken = Atomic(0)
    private let openStreams = Atomic(0)

    init(total: Int, loops: Int) {
      own = max(1, total / 16 / loops)
      // As many less as loops can find the last one free at the same time.
      shared = max(0, total - own * loops - (loops - 1))
      mostStreams = total - total / 8
    }

    /// Whether a loop that has so many may have another one.
    func hasRoom(beside active: Int) -> Bool {
      active < own || taken.load(ordering: .relaxed) < shared
    }

    var hasRoomForStream: Bool { openStreams.load(ordering: .relaxed) < mostStreams }

    /// A loop that has so many gets another one.
    func take(beside active: Int, forStream: Bool) {
      if active >= own { taken.wrappingAdd(1, ordering: .relaxed) }
      if forStream { openStreams.wrappingAdd(1, ordering: .relaxed) }
    }

    /// A loop that keeps so many gives one back.
    func giveBack(beside active: Int, fromStream: Bool) {
      if active >= own { taken.wrappingSubtract(1, ordering: .relaxed) }
      if fromStream { openStreams.wrappingSubtract(1, ordering: .relaxed) }
    }
  }
#endif
