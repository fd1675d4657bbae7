/// How long each part of a look may take, in milliseconds. One absolute deadline is over all of them:
/// the parts add up to more.
package struct ProbeLimits: Sendable, Hashable {
  /// For everything, from the moment of the call.
  package var total: Int64
  /// For looking the name up.
  package var lookup: Int64
  /// For connecting to one address.
  package var connect: Int64
  /// For a proxy's answer to CONNECT: it looks the name up and connects meanwhile.
  package var tunnel: Int64
  /// For TLS.
  package var handshake: Int64

  /// Limits under which no single part can use up all the time: what fails then says where.
  package init(total: Int64) {
    let total = max(0, total)
    self.init(
      total: total, lookup: total / 5 * 3, connect: total / 5 * 3, tunnel: total / 5 * 4,
      handshake: total / 5 * 4)
  }

  /// Limits.
  package init(total: Int64, lookup: Int64, connect: Int64, tunnel: Int64, handshake: Int64) {
    self.total = total
    self.lookup = lookup
    self.connect = connect
    self.tunnel = tunnel
    self.handshake = handshake
  }

  /// One limit for everything and none besides.
  static func only(total: Int64) -> ProbeLimits {
    ProbeLimits(total: total, lookup: total, connect: total, tunnel: total, handshake: total)
  }
}
