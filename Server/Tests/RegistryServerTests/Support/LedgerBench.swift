import SslPinningRules

@testable import RegistryCore
@testable import RegistryServer

/// Probes one endpoint, entered into its endpointKeys one after the other.
struct LedgerBench {
  /// What one address shows to one vantage point.
  enum Answer: Sendable {
    /// A key under a chain that counts.
    case key(UInt8, under: UInt8 = 100)
    /// The same in a handshake that was not finished.
    case unfinished(UInt8, under: UInt8)
    /// A chain that proves nothing.
    case refused
    /// Nothing.
    case silent
  }

  /// What one probe shows, and where.
  typealias View = [(vantage: String, address: String, answer: Answer)]

  static let rule = ConfirmationRule(probes: 3, window: 600, grace: 7 * 86_400)
  static let here = ProbeObservation.direct

  var endpointKeys = EndpointKeys()
  var context = DecisionContext()
  var now: Int64 = 1_780_000_000
  var events: [KeyEvent] = []

  /// - Parameter points: the vantage points beside this server.
  init(points: [String] = [], isUnion: Bool = false, quorum: Int? = nil) {
    context.vantages.formUnion(points)
    context.isUnion = isUnion
    context.quorum = quorum ?? DecisionContext.quorum(of: points.count)
  }

  static func probe(_ view: View) -> ProbeResult {
    ProbeResult(
      observations: view.map { vantage, address, answer in
        let outcome: ProbeObservation.Outcome =
          switch answer {
          case .key(let key, let authority): .accepted(chain(key, authority))
          case .unfinished(let key, let authority):
            .accepted(chain(key, authority, isConfirmed: false))
          case .refused: .refused(reason: "self-signed", presented: nil)
          case .silent: .unreachable(reason: "timed out")
          }
        return ProbeObservation(vantage: vantage, address: address, outcome: outcome)
      })
  }

  private static func chain(
    _ key: UInt8, _ authority: UInt8, isConfirmed: Bool = true
  ) -> SeenChain {
    var chain = SeenChain(
      leaf: SeenCertificate(pin: pin(key)), above: [SeenCertificate(pin: pin(authority))])
    chain.isConfirmed = isConfirmed
    return chain
  }

  /// Enters so many probes that all show the same.
  mutating func see(
    _ view: View, _ times: Int = 1, every pause: Int64 = 2, overasking points: Set<String> = [],
    unreachedBy others: Set<String> = [], delaying late: Set<String> = []
  ) {
    var probe = Self.probe(view)
    (probe.overasked, probe.unreached, probe.delayed) = (points, others, late)
    for _ in 0..<times {
      now += pause
      events += endpointKeys.enter(probe, at: now, rule: Self.rule, context: context)
    }
  }

  /// The published keys, among those of one byte.
  var keys: Set<UInt8> {
    let pins = Set(endpointKeys.keys.map(\.pin))
    return Set((UInt8.min...UInt8.max).filter { pins.contains(pin($0)) })
  }
}
