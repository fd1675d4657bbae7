import CanonicalJSON
import SslPinningRules

/// What clients ask of the hosts of an endpoint, besides that a listed key may be shown. Statements say it; format 1
/// cannot.
///
/// - With `all` a connection needs a listed key and one of the CAs above it. With `any` one of the two is enough: whoever
///   has a certificate of one of these CAs for the host gets in, with a key that nobody listed.
/// - Of several terms for one pattern the stricter count, as clients have it for all patterns that match a host.
/// - Enforcement cannot be undone within an epoch: clients that have read of it keep it.
public struct HostTerms: Sendable, Hashable {
  /// How a listed key and a CA combine.
  public enum Match: String, Sendable, Hashable, CaseIterable {
    case all
    case any
  }

  /// Who decides whether a missing pin refuses.
  public enum Enforcement: String, Sendable, Hashable, CaseIterable {
    /// The app.
    case app
    /// The statement: it refuses also in apps that only report.
    case on
  }

  /// CAs, by their keys, that count above the leaf; none: only listed keys count.
  public var ca: NamedIssuers
  /// How they combine with the listed keys.
  public var match: Match
  /// Whether the hosts are enforced in every app.
  public var enforcement: Enforcement

  /// Nothing besides a listed key.
  public static let standard = HostTerms()

  /// Terms.
  public init(
    ca: NamedIssuers = .none, match: Match = .all, enforcement: Enforcement = .app
  ) {
    (self.ca, self.match, self.enforcement) = (ca, match, enforcement)
  }

  /// Whether a statement has nothing to say of them.
  package var isStandard: Bool { ca.pins.isEmpty && match == .all && enforcement == .app }

  /// The CAs under which clients accept a key that is not listed.
  package var vouching: Set<SPKIPin> { match == .any ? ca.pins : [] }

  /// The CAs of which clients ask for one above a listed key; empty if they ask for none.
  package var demanded: Set<SPKIPin> { match == .all ? ca.pins : [] }

  /// Whether both let the same servers in. Whether that is enforced does not matter.
  package func asksTheSame(as other: HostTerms) -> Bool {
    (ca.pins, match) == (other.ca.pins, other.match)
  }

  /// Whether both say the same. The configuration writes it in other ways than a record does.
  func isSame(as other: HostTerms) -> Bool {
    asksTheSame(as: other) && enforcement == other.enforcement
  }

  /// The stricter of two terms, with the CAs of both.
  func united(with other: HostTerms) -> HostTerms {
    HostTerms(
      ca: NamedIssuers(pins: ca.pins.union(other.ca.pins)),
      match: match == .all || other.match == .all ? .all : .any,
      enforcement: enforcement == .on || other.enforcement == .on ? .on : .app)
  }
}

extension HostTerms {
  /// What somebody says of terms; what is `nil` stays.
  package struct Change: Sendable, Hashable {
    package var ca: Set<SPKIPin>?
    package var match: Match?
    package var enforcement: Enforcement?

    /// A change of these members.
    package init(
      ca: Set<SPKIPin>? = nil, match: Match? = nil, enforcement: Enforcement? = nil
    ) {
      (self.ca, self.match, self.enforcement) = (ca, match, enforcement)
    }

    /// The terms after it.
    package func completed(by before: HostTerms) -> HostTerms {
      HostTerms(
        ca: ca.map { NamedIssuers(pins: $0) } ?? before.ca, match: match ?? before.match,
        enforcement: enforcement ?? before.enforcement)
    }
  }
}

extension HostTerms: CustomStringConvertible {
  /// For the history.
  public var description: String {
    let cas = ca.pins.sorted().map(\.base64).joined(separator: ", ")
    return
      "match \(match.rawValue), ca \(cas.isEmpty ? "none" : cas), enforce \(enforcement.rawValue)"
  }
}

extension NamedIssuers {
  /// CAs of which only the keys are known.
  package init(pins: Set<SPKIPin>) {
    self.init(entries: pins.sorted().map(\.base64), pins: pins, doubts: [])
  }
}

extension HostTerms {
  /// Their part of a record.
  var json: JSONValue {
    .object([
      "ca": .array(ca.pins.sorted().map { .string($0.base64) }), "match": .string(match.rawValue),
      "enforce": .string(enforcement.rawValue),
    ])
  }

  init(_ reader: StateReader) throws(StateFault) {
    var pins: Set<SPKIPin> = []
    for text in try reader.strings("ca") {
      guard let pin = try? SPKIPin(base64: text) else { throw reader.fault("ca") }
      pins.insert(pin)
    }
    guard let match = Match(rawValue: try reader.string("match")) else {
      throw reader.fault("match")
    }
    guard let enforcement = Enforcement(rawValue: try reader.string("enforce")) else {
      throw reader.fault("enforce")
    }
    self.init(ca: NamedIssuers(pins: pins), match: match, enforcement: enforcement)
  }

  /// Those that a record has; `nil` for none.
  init?(in reader: StateReader, _ member: String = "terms") throws(StateFault) {
    guard let value = reader.object[member] else { return nil }
    try self.init(try StateReader(value, member))
  }
}

extension [WatchedEndpoint] {
  /// The terms under which a CA is enough, by the endpoints' ids.
  package var vouchingTerms: [String: HostTerms] {
    HostTerms.inEffect(among: self).filter { !$0.value.vouching.isEmpty }
  }
}

extension EndpointKeys {
  /// The published keys that are shown somewhere under none of the CAs that clients ask for: they refuse every connection
  /// there.
  func lackingCA(_ sightings: [ObservedKey], _ context: DecisionContext) -> [KeyEvent] {
    guard !context.demanded.isEmpty else { return [] }
    return sightings.filter { sighting in
      keys.contains { $0.pin == sighting.pin }
        && sighting.paths.values.contains { context.demanded.isDisjoint(with: $0) }
    }.map { .caMissing($0.pin) }
  }
}
