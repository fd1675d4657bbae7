#if os(Linux)
  import Synchronization

  /// The requests to one host and port, and on which loop each of them runs.
  ///
  /// - A few at a time stay on the first loop, and so do all where one connection carries many
  ///   (HTTP/2). Over HTTP/1.1 more than a few are spread: one thread's TLS would be the bottleneck.
  final class RequestOrigin: Sendable {
    /// A loop's share.
    struct Place {
      let number: Int
      let lane: RequestLane
      fileprivate let origin: RequestOrigin

      /// How many requests the lane may let through at a time, by what is known now.
      var limit: Int { origin.laneLimit }
    }

    /// What the answers so far have shown.
    private enum Sharing: UInt8, AtomicRepresentable {
      case unknown
      /// Many requests over one connection.
      case shared
      /// A connection each.
      case spread
    }

    /// How many run on the first loop before others are used.
    private static let few = 3

    private let lanes: [RequestLane]
    private let limit: Int
    private let count = Atomic(0)
    private let turn = Atomic(0)
    private let sharing = Atomic(Sharing.unknown)

    init(settings: RequestSettings) {
      lanes = (0..<settings.lanes).map { _ in RequestLane() }
      limit = settings.perOrigin
    }

    /// Takes a place for one request.
    func enter() -> Place {
      let running = count.wrappingAdd(1, ordering: .relaxed).newValue
      let isSpread = sharing.load(ordering: .relaxed) == .spread && running > Self.few
      let number =
        isSpread ? (turn.wrappingAdd(1, ordering: .relaxed).newValue & Int.max) % lanes.count : 0
      return Place(number: number, lane: lanes[number], origin: self)
    }

    /// Gives the place back; `spreads`: whether the answer came over a connection of its own, `nil`
    /// where none came.
    func leave(spreads answer: Bool?) {
      count.wrappingSubtract(1, ordering: .relaxed)
      guard let answer else { return }
      let shown = answer && lanes.count > 1 ? Sharing.spread : .shared
      if sharing.load(ordering: .relaxed) != shown { sharing.store(shown, ordering: .relaxed) }
    }

    /// While nothing is known the first lane gets its share alone: it would still have all of them
    /// when the others begin on theirs.
    private var laneLimit: Int {
      sharing.load(ordering: .relaxed) == .shared ? limit : max(1, limit / lanes.count)
    }
  }

  /// The requests to one host and port on one loop. Touched on that loop's thread only, hence
  /// unchecked.
  final class RequestLane: @unchecked Sendable {
    /// Requests that have a socket or a stream, or are about to get one.
    var active = 0
    var limit = 1
    /// Waiting ones, oldest first, from `first` on.
    private var queue: [ClientRequest] = []
    private var first = 0
    /// Whether the loop has this lane on its list of those that wait for others.
    var isStarved = false

    var hasWaiting: Bool { first < queue.count }

    func append(_ request: ClientRequest) { queue.append(request) }

    func popFirst() -> ClientRequest? {
      while first < queue.count {
        let next = queue[first]
        first += 1
        if first == queue.count || first > 1024 {
          queue.removeFirst(first)
          first = 0
        }
        // Cancelled and late ones stay in the queue until here.
        if next.phase == .waiting { return next }
      }
      return nil
    }
  }
#endif
