import CanonicalJSON

/// What a statement says of the hosts that one pattern matches, and format 1 cannot:
/// `{"domainName": "*.example.com", "ca": ["<pin>"], "match": "any", "enforce": true}`.
public struct HostSettings: Hashable, Sendable {
  /// The hosts.
  public let pattern: HostPattern
  /// Pins of certificates above the leaf.
  public let ca: [SPKIPin]
  /// How leaf and CA pins go together; both must match unless the entry says `any`.
  public let match: PolicyEntry.Match
  /// Whether the hosts are enforced even where the app only reports. `false` leaves that to the app:
  /// a statement tightens and never loosens.
  public let enforces: Bool
  /// Members that must not be ignored, and that nobody here knows: the hosts are refused.
  public let unknownCritical: [String]

  /// Settings.
  public init(
    _ pattern: HostPattern, ca: [SPKIPin] = [], match: PolicyEntry.Match = .all,
    enforces: Bool = false
  ) {
    (self.pattern, self.ca, self.match, self.enforces) = (pattern, ca, match, enforces)
    unknownCritical = []
  }

  /// Strict, unlike an entry of the payload: who half reads a demand for CA pins drops it.
  init(_ json: JSONValue) throws(DocumentFault) {
    guard let entry = json.objectValue else { throw .member("hosts") }
    pattern = try HostPattern(member: entry["domainName"], "hosts.domainName")
    ca = entry["ca"] == nil ? [] : try SPKIPin.list(entry["ca"], "hosts.ca")
    switch entry["match"] {
    case nil, .string("all"): match = .all
    case .string("any"): match = .any
    default: throw .member("hosts.match")
    }
    switch entry["enforce"] {
    case nil: enforces = false
    case .bool(let enforces): self.enforces = enforces
    default: throw .member("hosts.enforce")
    }
    unknownCritical = try entry.criticalMembers(beside: Self.baseMembers)
  }

  private static let baseMembers: Set = ["domainName", "ca", "match", "enforce"]

  var json: JSONValue {
    .object([
      "domainName": .string(pattern.description), "ca": .array(ca.map { .string($0.base64) }),
      "match": .string(match == .any ? "any" : "all"), "enforce": .bool(enforces),
    ])
  }
}

extension HostPattern {
  init(member json: JSONValue?, _ name: String) throws(DocumentFault) {
    guard let text = json?.stringValue else { throw .member(name) }
    do throws(HostNameError) { self = try HostPattern(text) } catch { throw .member(name) }
  }
}

extension SPKIPin {
  /// Every pin of a list, or none of it.
  static func list(_ json: JSONValue?, _ name: String) throws(DocumentFault) -> [SPKIPin] {
    guard let texts = json?.arrayValue else { throw .member(name) }
    var pins: [SPKIPin] = []
    for text in texts {
      guard let text = text.stringValue, let pin = try? SPKIPin(base64: text) else {
        throw .member(name)
      }
      pins.append(pin)
    }
    return pins
  }
}
