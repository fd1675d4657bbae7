/// The proxies whose word counts about who called them.
///
/// - `X-Forwarded-For` grows on its right end: each proxy adds who called it. So it is read from the right,
///   as long as whoever wrote the next entry is one of these; what stands left of that is a stranger's.
/// - A caller that is none of these is who it is, whatever it forwards.
/// - An entry that is no address ends the reading: the last address that could be believed counts.
package struct TrustedProxies: Sendable, Equatable {
  static let field = "X-Forwarded-For"

  let networks: [AddressNetwork]

  package init(networks: [AddressNetwork] = []) { self.networks = networks }

  var isEmpty: Bool { networks.isEmpty }

  /// Whether this address is one of them.
  func contains(_ address: String) -> Bool {
    guard !isEmpty, let bytes = ClientAddress.bytes(address) else { return false }
    return networks.contains { $0.contains(bytes) }
  }

  /// Who called, where `peer` is the other side of the connection.
  ///
  /// - Parameter forwarded: the field's value, several lines joined by commas in their order.
  func client(_ peer: String, forwarded: String?) -> String {
    var client = peer
    var rest = forwarded?.split(separator: ",", omittingEmptySubsequences: false) ?? []
    while contains(client), let entry = rest.popLast(), let address = Self.address(entry) {
      client = address
    }
    return client
  }

  /// The address of an entry; some proxies add the port.
  private static func address(_ entry: Substring) -> String? {
    var text = entry.drop { $0 == " " || $0 == "\t" }
    while text.last == " " || text.last == "\t" { text.removeLast() }
    if text.first == "[" {
      guard let end = text.firstIndex(of: "]"), isPort(text[text.index(after: end)...]) else {
        return nil
      }
      text = text[text.index(after: text.startIndex)..<end]
      guard text.utf8.contains(UInt8(ascii: ":")) else { return nil }
    } else if let colon = text.firstIndex(of: ":"), text.lastIndex(of: ":") == colon {
      guard isPort(text[colon...]) else { return nil }
      text = text[..<colon]
    }
    return ClientAddress.bytes(String(text)) == nil ? nil : String(text)
  }

  private static func isPort(_ text: Substring) -> Bool {
    guard !text.isEmpty else { return true }
    return text.first == ":" && (2...6).contains(text.utf8.count)
      && text.utf8.dropFirst().allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }
}
