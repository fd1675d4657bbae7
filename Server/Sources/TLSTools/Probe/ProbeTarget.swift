/// Which server to look at.
public struct ProbeTarget: Sendable, Hashable, CustomStringConvertible {
  /// The name asked for and checked, in lower case without a trailing dot, or a numeric address
  /// without brackets. A name is also sent as SNI; an address never is (RFC 6066 section 3).
  public let host: String
  public let port: UInt16
  /// Where to dial instead of looking `host` up; tried in order. Empty: look it up.
  public let connectTo: [Endpoint]

  /// - Throws: `invalidTarget` for anything but a DNS name in ASCII or a numeric address, for a
  ///   wildcard, and for port 0.
  public init(
    host: String, port: UInt16 = 443, connectTo: [Endpoint] = []
  ) throws(ProbeError) {
    let bare = host.hasSuffix(".") ? String(host.dropLast()) : host
    // A leading dot would make OpenSSL's name check match every name below; SubjectName has none.
    guard port != 0, let name = try? SubjectName(bare), !name.text.hasPrefix("*") else {
      throw .invalidTarget("\(host):\(port)")
    }
    self.host = name.text
    self.port = port
    self.connectTo = connectTo
  }

  /// Reads `host`, `host:port`, `[v6]:port` or a bare IPv6 address.
  public init(
    parsing text: String, defaultPort: UInt16 = 443, connectTo: [Endpoint] = []
  ) throws(ProbeError) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    let isBracketed = text.hasPrefix("[")
    guard isBracketed ? !text.hasSuffix("]") : parts.count == 2 else {
      try self.init(host: text, port: defaultPort, connectTo: connectTo)
      return
    }
    guard let last = parts.last, last.utf8.allSatisfy({ $0 != UInt8(ascii: "+") }),
      let port = UInt16(last)
    else { throw .invalidTarget(text) }
    try self.init(
      host: String(text.dropLast(last.count + 1)), port: port, connectTo: connectTo)
  }

  public var description: String { Endpoint(address: host, port: port).description }
}
