import CanonicalJSON
import Pinning

/// One line of a document: a host and a key that it may have.
struct DocumentEntry: Sendable, Hashable {
  let pattern: HostPattern
  let pin: SPKIPin
  let fqdn: HostName
  /// When the key was first seen, in Unix seconds.
  let date: Int64

  /// The entries of a document: its endpoints and their patterns in the order configured, the keys of
  /// each oldest first. An endpoint without a key yet has none.
  static func entries(
    of document: DocumentConfiguration, ledgers: [String: DomainLedger]
  ) -> [DocumentEntry] {
    document.endpoints.flatMap { endpoint in
      endpoint.patterns.flatMap { pattern in
        (ledgers[endpoint.id]?.keys ?? []).map {
          DocumentEntry(pattern: pattern, pin: $0.pin, fqdn: endpoint.fqdn, date: $0.firstSeen)
        }
      }
    }
  }

  func json(expires: Int64) -> JSONValue {
    var members: [(String, JSONValue)] = [
      ("date", .string(RFC3339.text(date))), ("domainName", .string(pattern.description)),
      ("fqdn", .string(fqdn.description)), ("key", .string(pin.base64)),
    ]
    if let number = JSONNumber(exactly: expires) { members.append(("expire", .number(number))) }
    return .object(JSONObject(members))
  }
}
