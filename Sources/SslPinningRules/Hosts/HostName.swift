/// A host as a connection names it: a DNS name in A-label form, or an IP address.
///
/// - DNS names are lower-cased ASCII; one trailing dot is dropped; labels are 1 to 63 bytes of
///   letters, digits, `-` and `_`, 253 bytes in all (RFC 1123 §2.1; `_` occurs in the field).
/// - What looks like an address is an address or nothing: `1.2.3.4` is never a DNS name, and
///   neither is any name whose last label is all digits (WHATWG URL "ends in a number").
/// - An IPv4-mapped IPv6 address is an IPv6 address and never equals the IPv4 one.
/// - Names are compared as bytes. Swift's `String` equality would take KELVIN SIGN for K.
public enum HostName: Hashable, Sendable {
  /// Lower-case ASCII labels joined by dots, without a trailing dot.
  case name(DNSName)
  /// An IP address in network byte order.
  case address(IPAddress)

  /// Reads a host as it stands in a URL or a certificate: a name, an IPv4 address in dotted
  /// decimal, or an IPv6 address with or without brackets.
  ///
  /// - Throws: ``HostNameError``. Names with non-ASCII characters are refused: the caller converts
  ///   them to A-labels, because two converters that disagree would pin two different hosts.
  public init(_ text: String) throws(HostNameError) {
    do throws(HostNameError) { try self.init(reading: text) } catch { throw error.about(text) }
  }

  private init(reading text: String) throws(HostNameError) {
    let bytes = text.utf8
    if bytes.contains(UInt8(ascii: ":")) || bytes.first == UInt8(ascii: "[") {
      guard let address = IPAddress(v6: text) else { throw .malformedAddress(text) }
      self = .address(address)
    } else if let address = IPAddress(v4: text) {
      self = .address(address)
    } else {
      self = .name(try DNSName(text))
    }
  }
}

extension HostName: CustomStringConvertible {
  /// The canonical spelling: lower-case, no trailing dot, IPv6 without brackets.
  public var description: String {
    switch self {
    case .name(let name): name.description
    case .address(let address): address.description
    }
  }
}
