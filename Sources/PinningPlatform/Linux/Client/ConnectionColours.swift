#if os(Linux)
  import CPlatformShims
  import Synchronization

  /// Keeps new requests off connections that libcurl thinks well of and that may be dead.
  ///
  /// libcurl puts a request onto whatever connection to its host can carry it: one that went silent and
  /// that others still wait on, one that the network lost while nobody used it, one that is being made and
  /// hangs. Nothing tells it to leave such a one alone. So connections have colours: if one is in doubt, its
  /// host gets the next colour on all loops, and later requests neither see older connections nor wait for
  /// them. Requests that are on one already stay on it.
  ///
  /// An origin's mark is its colour (the lowest three bits) and when it came (milliseconds, above them). 0 is
  /// the mark of an origin without a connection in doubt.
  enum ConnectionColours {
    /// Milliseconds after which a dial that others wait for counts as hanging. A slow network costs a second
    /// connection, no request.
    private static let patience: Int64 = 2000
    /// Milliseconds after which an origin gets colour 0 back: other colours cost a reset for each request and
    /// keep requests from waiting for a connection to share. libcurl uses none that was idle for 118 seconds.
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
    /// with one network, one changes it. Otherwise eight of them would lead back to the connections in doubt.
    static func change(_ origin: RequestOrigin, from mark: Int64, at now: Int64) {
      let next = Int64(colour(of: mark)) % Int64(PP_COLOURS - 1) + 1
      _ = origin.mark.compareExchange(
        expected: mark, desired: now << 3 | next, ordering: .relaxed)
    }

    /// The requests that wait behind a dial that hangs, and are to be begun anew: of a host the first, which
    /// opens the next connection, and with the next look the others, which then find it.
    static func held(among active: [ClientRequest], at now: Int64) -> [ClientRequest] {
      let dials = active.filter { $0.dials && now - $0.begunAt >= patience }
      guard !dials.isEmpty else { return [] }
      let known = Set(dials.filter(\.isLeft).map { ObjectIdentifier($0.target.origin) })
      var held: [ClientRequest] = []
      for request in active where request.waitsForDial {
        let origin = request.target.origin
        if known.contains(ObjectIdentifier(origin)) {
          held.append(request)
          continue
        }
        let hanging = dials.filter { $0.target.origin === origin && !$0.isLeft }
        guard !hanging.isEmpty else { continue }
        for dial in hanging { dial.isLeft = true }
        change(origin, from: origin.mark.load(ordering: .relaxed), at: now)
        held.append(request)
      }
      return held
    }
  }

  extension ClientRequest {
    /// Whether it is opening a connection.
    fileprivate var dials: Bool {
      guard let exchange = slot?.raw.pointee else { return false }
      return exchange.dials && exchange.connection == nil
    }

    /// Whether it waits for a connection that somebody else opens, for the first time.
    fileprivate var waitsForDial: Bool {
      guard !wasMoved, let exchange = slot?.raw.pointee else { return false }
      return !exchange.dials && exchange.connection == nil && !exchange.begun
    }
  }
#endif
