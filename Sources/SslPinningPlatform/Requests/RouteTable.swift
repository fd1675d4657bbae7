import SslPinningRules

/// Which of the client's own sessions a request goes over, on Apple's systems.
///
/// - HTTP/2 may carry requests to another host that the certificate covers over a connection at hand, unasked. So each
///   listed host has a session of its own: no connection that was judged for one host carries a request to another,
///   whose pins it may not satisfy, or only because its own entry is report-only.
/// - Hosts without an entry have no pins that could be missed: they share one session, with no listed host on it.
/// - A connection at hand outlives a change of pins, and nothing closes it but the end of its session (`flush` does
///   not: see ``LiveSessions``). So with other pins all routes are others.
/// - Of listed hosts, which a pattern may have without number, the routes that were used last are kept. A route that
///   is dropped has to end its session when its requests are done.
struct RouteTable<Route: AnyObject> {
  /// The most routes of listed hosts.
  static var capacity: Int { 64 }

  private var listed: [HostName: (route: Route, lastUse: UInt64)] = [:]
  private var unlisted: Route?
  private var uses: UInt64 = 0
  private var generation: UInt64 = 0

  /// The route to a host; `make` makes one if there is none.
  ///
  /// - Parameter generation: of the pins in force now.
  mutating func route(
    to host: HostName, isListed: Bool, generation: UInt64, make: () throws -> Route
  ) rethrows -> Route {
    if generation != self.generation { (listed, unlisted) = ([:], nil) }
    self.generation = generation
    guard isListed else {
      let route = try unlisted ?? make()
      unlisted = route
      return route
    }
    uses += 1
    let route = try listed[host]?.route ?? make()
    if listed[host] == nil, listed.count >= Self.capacity,
      let oldest = listed.min(by: { $0.value.lastUse < $1.value.lastUse })
    {
      listed[oldest.key] = nil
    }
    listed[host] = (route, uses)
    return route
  }

  /// Drops the routes whose connections are to be given up.
  mutating func drop(_ isGivenUp: (Route) -> Bool) {
    listed = listed.filter { !isGivenUp($0.value.route) }
    if unlisted.map(isGivenUp) ?? false { unlisted = nil }
  }
}
