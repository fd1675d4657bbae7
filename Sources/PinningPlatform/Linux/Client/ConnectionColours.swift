#if os(Linux)
  import CPlatformShims

  /// Keeps new requests off connections that libcurl thinks well of and that may be dead.
  ///
  /// libcurl puts a request onto whatever connection to its host can carry it: one that went silent, and
  /// that others still wait on; one that is being made, and hangs. Nothing tells it to leave such a one
  /// alone while somebody is on it. So connections have colours: where one is in doubt its host gets the next
  /// colour, and later requests neither see it nor wait for it. What is on it already goes on.
  struct ConnectionColours {
    /// Milliseconds after which a dial that others wait for counts as hanging. A slow network costs a second
    /// connection, no request.
    private static let patience: Int64 = 2000

    /// By origin; 0, the colour of plain requests, where there is none.
    private var colours: [ObjectIdentifier: (origin: RequestOrigin, colour: UInt32)] = [:]

    func colour(of origin: RequestOrigin) -> UInt32 {
      colours.isEmpty ? 0 : colours[ObjectIdentifier(origin)]?.colour ?? 0
    }

    mutating func change(for origin: RequestOrigin) {
      let next = colour(of: origin) % UInt32(PP_COLOURS - 1) + 1
      colours[ObjectIdentifier(origin)] = (origin, next)
    }

    /// The requests that wait behind a dial that hangs, and are to be begun anew: of a host the first, which
    /// opens the next connection, and with the next look the others, which then find it.
    mutating func held(among active: [ClientRequest], at now: Int64) -> [ClientRequest] {
      let dials = active.filter { $0.dials && now - $0.begunAt >= Self.patience }
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
        change(for: origin)
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
