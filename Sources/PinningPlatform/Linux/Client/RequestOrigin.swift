#if os(Linux)
  /// The requests to one host and port, and on which loop each of them runs.
  ///
  /// - A few at a time stay on the first loop, and so do all where one connection carries many
  ///   (HTTP/2). Over HTTP/1.1 more than a few are spread: one thread's TLS would be the bottleneck.
  final class RequestOrigin: Sendable {
    /// A loop's share.
    struct Place {
      let number: Int
      let lane: RequestLane
      /// How many requests the lane may let through at a time.
      let limit: Int
    }

    private struct State {
      var counts: [Int]
      var spreads = false
    }

    /// How many run on the first loop before others are used.
    private static let few = 3

    private let lanes: [RequestLane]
    private let limit: Int
    private let state: Locked<State>

    init(settings: RequestSettings) {
      lanes = (0..<settings.lanes).map { _ in RequestLane() }
      limit = settings.perOrigin
      state = Locked(State(counts: Array(repeating: 0, count: settings.lanes)))
    }

    /// Takes a place for one request.
    func enter() -> Place {
      let (number, spreads) = state.withLock { state in
        var best = 0
        if state.spreads, state.counts[0] >= Self.few {
          for other in 1..<state.counts.count where state.counts[other] < state.counts[best] {
            best = other
          }
        }
        state.counts[best] += 1
        return (best, state.spreads)
      }
      return Place(
        number: number, lane: lanes[number],
        limit: spreads ? max(1, limit / lanes.count) : limit)
    }

    /// Gives the place back; `spreads`: whether the answer came over a connection of its own, `nil`
    /// where none came.
    func leave(_ number: Int, spreads: Bool?) {
      state.withLock { state in
        state.counts[number] -= 1
        if let spreads { state.spreads = spreads && state.counts.count > 1 }
      }
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
