import SslPinningPlatform

/// What a probe was asked for.
struct ProbeRequest: Sendable {
  /// What is to be found out, and who is told. Each is told exactly once, on the probe's thread.
  enum Purpose: Sendable {
    /// One server: its addresses in turn, until one answers.
    case one(
      ProbeTarget, ChainValidator, time: Int64?, @Sendable (Result<ProbedServer, ProbeError>) -> Void
    )
    /// Every address on every route.
    case survey([ProbeRoute], ChainReader, @Sendable ([ProbeFinding]) -> Void)
  }

  let id: UInt64
  /// A name in lower case, or a numeric address.
  let host: String
  let port: UInt16
  /// Where to dial instead of looking `host` up; empty: look it up.
  let addresses: [Endpoint]
  let limits: ProbeLimits
  let deadline: Deadline
  let purpose: Purpose
  /// The routes that are given a second at most: they were silent a moment ago.
  var hurried: Set<Int> = []

  /// Until when a route is waited for, if it begins now.
  func deadline(of route: Int) -> Deadline {
    hurried.contains(route) ? min(.after(milliseconds: 1000), deadline) : deadline
  }

  /// The routes that are taken.
  var routes: [ProbeRoute] {
    switch purpose {
    case .one: [.direct]
    case .survey(let routes, _, _): routes
    }
  }

  /// What a proxy is asked for: the name, so that it looks it up where it stands; an address only
  /// where that was given instead.
  var tunnelTarget: String {
    (addresses.first ?? Endpoint(address: host, port: port)).description
  }

  /// Ends the job with one failure for everything.
  func fail(_ error: ProbeError) {
    switch purpose {
    case .one(_, _, _, let complete): complete(.failure(error))
    case .survey(let routes, _, let complete):
      complete(
        routes.indices.map { ProbeFinding(route: $0, address: nil, outcome: .failure(error)) })
    }
  }
}
