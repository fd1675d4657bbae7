#if os(Linux)
  import Synchronization

  /// The requests to one host and port, and on which loop each of them runs.
  ///
  /// - A few at a time stay on the first loop, and so do all where one connection carries many
  ///   (HTTP/2). Over HTTP/1.1 more than a few are spread: one thread's TLS would be the bottleneck.
  /// - Streams, which end when their reader likes, have places of their own: however many are open,
  ///   what is answered as a whole has its places.
  final class RequestOrigin: Sendable {
    /// A loop's share, taken until the transfer's end.
    struct Place {
      let number: Int
      let lane: RequestLane
      fileprivate let origin: RequestOrigin

      /// How many requests the lane may let through at a time, by what is known now.
      var limit: Int { lane.isForStreams ? origin.streamLimit(of: lane) : origin.laneLimit }

      /// Its request gets a socket or a stream. On the loop's thread.
      func begin() {
        lane.active += 1
        if lane.isForStreams { origin.openStreams.wrappingAdd(1, ordering: .relaxed) }
      }

      /// Its request has none any more. On the loop's thread.
      func end() {
        lane.active -= 1
        if lane.isForStreams { origin.openStreams.wrappingSubtract(1, ordering: .relaxed) }
      }

      /// Gives the place back.
      func leave() { lane.taken.wrappingSubtract(1, ordering: .relaxed) }
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
    private let streamLanes: [RequestLane]
    private let limit: Int
    private let openStreams = Atomic(0)
    private let sharing = Atomic(Sharing.unknown)
    /// Which connections its requests may use, on every loop: see ``ConnectionColours``.
    let mark = Atomic<Int64>(0)
    /// Until when each of its requests opens a connection of its own.
    let apartUntil = Atomic<Int64>(0)
    let colours = ColourUses()

    init(settings: RequestSettings) {
      lanes = (0..<settings.lanes).map { _ in RequestLane(isForStreams: false, dial: OriginDial()) }
      streamLanes = lanes.map { RequestLane(isForStreams: true, dial: $0.dial) }
      limit = settings.perOrigin
    }

    /// Takes a place for one request, on the emptiest lane where they are spread.
    func enter(streams: Bool) -> Place {
      let lanes = streams ? streamLanes : lanes
      var number = 0
      if isSpread {
        var fewest = lanes[0].taken.load(ordering: .relaxed)
        if fewest >= Self.few {
          for other in 1..<lanes.count {
            let taken = lanes[other].taken.load(ordering: .relaxed)
            if taken < fewest { (number, fewest) = (other, taken) }
          }
        }
      }
      lanes[number].taken.wrappingAdd(1, ordering: .relaxed)
      return Place(number: number, lane: lanes[number], origin: self)
    }

    /// Whether its answers come over a connection each.
    var isSpread: Bool { sharing.load(ordering: .relaxed) == .spread }

    /// Remembers whether an answer came over a connection of its own.
    func learn(spreads: Bool) {
      let shown = spreads && lanes.count > 1 ? Sharing.spread : .shared
      if sharing.load(ordering: .relaxed) != shown { sharing.store(shown, ordering: .relaxed) }
    }

    /// While nothing is known the first lane gets its share alone: it would still have all of them
    /// when the others begin on theirs.
    private var laneLimit: Int {
      sharing.load(ordering: .relaxed) == .shared ? limit : max(1, limit / lanes.count)
    }

    /// Whatever the other lanes leave: in a share of its own a stream could wait for ever for those
    /// before it, with room beside.
    private func streamLimit(of lane: RequestLane) -> Int {
      limit - (openStreams.load(ordering: .relaxed) - lane.active)
    }
  }

  /// The requests to one host and port on one loop: its streams, or the others. Touched on that
  /// loop's thread only but for `taken`, hence unchecked.
  final class RequestLane: @unchecked Sendable {
    let isForStreams: Bool
    /// The host's on this loop: both lanes have it.
    let dial: OriginDial
    /// Requests that were given a place here and have not ended.
    let taken = Atomic(0)
    /// Requests that have a socket or a stream, or are about to get one.
    var active = 0
    var limit = 1
    /// Waiting ones, oldest first, from `first` on.
    private var queue: [ClientRequest] = []
    private var first = 0
    /// How many of the queue have been cancelled, or were late.
    private var gone = 0
    /// Whether the loop has this lane on its list of those that wait for others.
    var isStarved = false
    /// When an answer last came over a connection that had carried others before.
    var heardAt: Int64 = 0

    init(isForStreams: Bool, dial: OriginDial) {
      self.isForStreams = isForStreams
      self.dial = dial
    }

    var hasWaiting: Bool { first < queue.count }

    func append(_ request: ClientRequest) { queue.append(request) }

    /// Has it be the next.
    func putBack(_ request: ClientRequest) { queue.insert(request, at: first) }

    func popFirst() -> ClientRequest? {
      while first < queue.count {
        let next = queue[first]
        first += 1
        if first == queue.count || first > 1024 {
          queue.removeFirst(first)
          first = 0
        }
        if next.phase == .waiting { return next }
        gone -= 1
      }
      return nil
    }

    /// One of the queue has ended. It stays there until its turn, or until half of them are such:
    /// behind open streams there may be no turn.
    func passOver() {
      gone += 1
      guard gone >= 32, gone * 2 > queue.count - first else { return }
      queue = queue[first...].filter { $0.phase == .waiting }
      first = 0
      gone = 0
    }
  }
#endif
