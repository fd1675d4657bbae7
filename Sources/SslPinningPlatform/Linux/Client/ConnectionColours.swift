#if os(Linux)
  import CSslPinningShims
  import Synchronization

  /// Keeps new requests off connections that libcurl thinks well of and that may be dead.
  ///
  /// libcurl puts a request onto whatever connection to its host can carry it: one that went silent and
  /// that others still wait on, one that the network lost while nobody used it, one that is being made and
  /// hangs. Nothing tells it to leave such a one alone. So connections have colours: if one is in doubt, its
  /// host gets the next colour on all loops, and later requests neither see older connections nor wait for
  /// them. Requests that are on one already stay on it.
  ///
  /// A colour is given again only once libcurl uses none of its connections any more (``RequestOrigin``'s
  /// ``ColourUses``): else it would lead back to those in doubt. If all are in use, each request opens a connection of
  /// its own until one is free, or until libcurl has given up those in doubt.
  ///
  /// An origin's mark is its colour (the lowest three bits) and when it came (milliseconds, above them). 0 is
  /// the mark of an origin without a connection in doubt.
  enum ConnectionColours {
    /// Milliseconds after which the first dial that others wait for counts as hanging. A slow network costs a
    /// second connection, no request.
    private static let patience: Int64 = 2000
    /// Milliseconds after which an origin gets colour 0 back: other colours cost a reset for each request.
    /// libcurl uses no connection that was idle for 118 seconds.
    static let longest: Int64 = 180_000

    static func colour(of mark: Int64) -> UInt32 { UInt32(truncatingIfNeeded: mark & 7) }

    /// The mark that a request begins with.
    static func mark(
      for request: ClientRequest, among active: [ClientRequest], at now: Int64
    ) -> Int64 {
      let origin = request.target.origin
      let mark = origin.mark.load(ordering: .relaxed)
      guard mark != 0, now - mark >> 3 > longest else { return mark }
      // A request that has waited since before keeps its connection in use, however long that is silent.
      let isLeft = active.allSatisfy {
        $0 === request || $0.target.origin !== origin || colour(of: $0.mark) == colour(of: mark)
      }
      guard isLeft else { return mark }
      return origin.mark.compareExchange(expected: mark, desired: 0, ordering: .relaxed).exchanged
        ? 0 : origin.mark.load(ordering: .relaxed)
    }

    /// Gives an origin the next colour unless somebody else did since `mark`: of many requests that are late
    /// with one network, one changes it.
    static func change(_ origin: RequestOrigin, from mark: Int64, at now: Int64) {
      guard let next = origin.colours.next(after: colour(of: mark), at: now) else {
        if origin.mark.load(ordering: .relaxed) == mark {
          origin.apartUntil.store(now + ColourUses.idle, ordering: .relaxed)
        }
        return
      }
      let (isNext, _) = origin.mark.compareExchange(
        expected: mark, desired: now << 3 | Int64(next), ordering: .relaxed)
      if isNext { origin.apartUntil.store(0, ordering: .relaxed) }
    }

    /// The requests that libcurl has wait for somebody else's connection, and that are to be begun anew.
    static func held(
      among active: [ClientRequest], beside queued: some Collection<ClientRequest>, at now: Int64
    ) -> [ClientRequest] {
      let waiting = Dictionary(grouping: active.filter(\.waitsForDial), by: \.origin)
      let dials = active.filter(\.isDialing)
      // Hanging dials of others than the newest colour, once a connection of that stands: the network is back.
      let left = dials.filter {
        let mark = $0.target.origin.mark.load(ordering: .relaxed)
        return $0.isLeft && $0.mark != mark && $0.place.lane.dial.stands == mark
      }
      let anew = left + forgotten(waiting, among: active, at: now)
      guard dials.contains(where: { now - $0.begunAt >= patience }) else { return anew }
      return anew + behind(dials, waiting, Set(queued.map(\.origin)), at: now)
    }

    /// Those whose host has a connection by now, or that nobody opens one for.
    ///
    /// libcurl from 8 on wakes one request for each transfer that ends and each connection that comes, whatever
    /// they wait for. If that one waits again, behind another dial, nothing wakes the others once that is gone.
    /// So they are begun anew as often as it takes: soon, then with the patience that a dial has.
    private static func forgotten(
      _ waiting: [ObjectIdentifier: [ClientRequest]], among active: [ClientRequest], at now: Int64
    ) -> [ClientRequest] {
      guard !waiting.isEmpty else { return [] }
      let standing = Set(active.filter(\.hasConnection).map(\.origin))
      let dialed = Set(active.filter(\.isDialing).map(\.origin))
      return waiting.filter { standing.contains($0.key) || !dialed.contains($0.key) }
        .flatMap(\.value)
        .filter { now - $0.begunAt >= ($0.wasMoved ? patience : patience / 10) }
    }

    /// Those behind dials that hang.
    ///
    /// On a slow line each further dial makes the others slower, and libcurl would open one for each of them.
    /// So the first goes ahead (``OriginDial``), and the others follow once its connection, or any other,
    /// stands. Each dial has twice the patience of the one before, up to eight seconds: one that was given up
    /// long ago says little of the network now, and a host that is back must be found before requests end.
    private static func behind(
      _ dials: [ClientRequest], _ waiting: [ObjectIdentifier: [ClientRequest]],
      _ queued: Set<ObjectIdentifier>, at now: Int64
    ) -> [ClientRequest] {
      var held: [ClientRequest] = []
      for (id, dials) in Dictionary(grouping: dials, by: \.origin) {
        let origin = dials[0].target.origin
        let new = dials.filter { !$0.isLeft }
        let patience = patience << Int64(min(dials.count - new.count, 2))
        guard new.allSatisfy({ now - $0.begunAt >= patience }) else { continue }
        let waiting = waiting[id] ?? []
        guard !waiting.isEmpty || !origin.isSpread && queued.contains(id) else { continue }
        if !new.isEmpty {
          for dial in new { dial.isLeft = true }
          change(origin, from: origin.mark.load(ordering: .relaxed), at: now)
        }
        let mark = origin.mark.load(ordering: .relaxed)
        let older = waiting.filter { $0.mark != mark }
        // libcurl may have one of the newest colour wait for a dial of another.
        if older.isEmpty { waiting.first?.dialsNext = true }
        held += older.isEmpty ? Array(waiting.prefix(1)) : older
      }
      return held
    }
  }

  /// Which colours of a host libcurl may still use a connection of. Colour 0 is left out: it comes back only
  /// after ``ConnectionColours/longest``.
  final class ColourUses: Sendable {
    /// Milliseconds after which libcurl uses no connection that nobody used: it says 118 seconds.
    static let idle: Int64 = 120_000

    private struct Use {
      var requests = 0
      var endedAt: Int64?
    }

    private let uses = Mutex([Use](repeating: Use(), count: Int(PP_COLOURS)))

    /// A request of this colour begins.
    func enter(_ colour: UInt32) {
      guard colour != 0 else { return }
      uses.withLock { $0[Int(colour)].requests += 1 }
    }

    /// A request that had entered ends.
    func exit(_ colour: UInt32, at now: Int64) {
      guard colour != 0 else { return }
      uses.withLock {
        $0[Int(colour)].requests -= 1
        $0[Int(colour)].endedAt = now
      }
    }

    /// The next colour that no connection in doubt can have.
    func next(after colour: UInt32, at now: Int64) -> UInt32? {
      let others = UInt32(PP_COLOURS) - 1
      return uses.withLock { uses in
        (0..<others).lazy.map { (colour + $0) % others + 1 }.first { next in
          let use = uses[Int(next)]
          return next != colour && use.requests == 0
            && use.endedAt.map { now - $0 > Self.idle } != false
        }
      }
    }
  }

  /// The one dial of a host on a loop that requests of a colour beyond 0 wait for. Touched on that loop's
  /// thread only, hence unchecked.
  final class OriginDial: @unchecked Sendable {
    private weak var ahead: ClientRequest?
    /// The newest mark of which a connection stood.
    private(set) var stands: Int64 = 0

    /// Whether others are to wait for it: not where each has a connection of its own.
    var isUnderWay: Bool {
      ahead.map { $0.isDialing && !$0.isLeft && !$0.target.origin.isSpread } ?? false
    }

    /// Whether a request that begins opens a connection, whoever else opens one; it goes ahead then, unless
    /// each has a connection of its own.
    func goesAhead(_ request: ClientRequest) -> Bool {
      guard ConnectionColours.colour(of: request.mark) != 0 else { return false }
      if request.target.origin.isSpread { return true }
      guard stands != request.mark else { return false }
      ahead = request
      return true
    }

    /// Looks at a request that dialled. Whichever connection stands first is the one for all; one that was
    /// given up takes them off no other that stands.
    func look(at request: ClientRequest) {
      guard request === ahead || request.isLeft, request.hasConnection else { return }
      let mark = request.target.origin.mark.load(ordering: .relaxed)
      let (wasLeft, isLate) = (request.isLeft, request.isLeft && stands == mark)
      request.isLeft = false
      guard !isLate else { return }
      ahead = nil
      stands = request.mark
      if wasLeft { request.target.origin.mark.store(stands, ordering: .relaxed) }
    }
  }

  extension ClientRequest {
    fileprivate var origin: ObjectIdentifier { ObjectIdentifier(target.origin) }

    fileprivate var hasConnection: Bool { slot?.raw.pointee.connection != nil }

    /// Also one whose connection died. It needs another one only if it may be sent again.
    private var hasNoConnection: Bool {
      guard let slot else { return false }
      return slot.raw.pointee.connection == nil && mayStartAnew
    }

    /// Whether it is opening a connection, or about to.
    fileprivate var isDialing: Bool {
      hasNoConnection && (dialsItself || slot?.raw.pointee.is_dialing == true)
    }

    /// Whether it waits for a connection that somebody else opens.
    fileprivate var waitsForDial: Bool { hasNoConnection && !isDialing }
  }
#endif
