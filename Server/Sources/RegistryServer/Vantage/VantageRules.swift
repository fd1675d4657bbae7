import HTTPServing
import RegistryCore
import SslPinningRules

/// A host and a port that a vantage point may be asked for.
package struct VantageTarget: Hashable, Sendable {
  package let host: HostName
  package let port: UInt16

  /// Reads `HOST`, `HOST:PORT`, `[V6]:PORT` or a bare IPv6 address; `nil` if the text is none. There are no wildcards.
  ///
  /// - Parameter standard: the port of a text without one; `nil`: it has to name one.
  package init?(_ text: String, port standard: UInt16? = 443) {
    var (name, digits) = (text[...], Substring())
    let isBareV6 = !text.hasPrefix("[") && text.filter { $0 == ":" }.count > 1
    if !isBareV6, !text.hasSuffix("]"), let colon = text.lastIndex(of: ":") {
      (name, digits) = (text[..<colon], text[text.index(after: colon)...])
      guard !digits.isEmpty else { return nil }
    }
    guard !isBareV6 || standard != nil, let host = try? HostName(String(name)) else { return nil }
    if digits.isEmpty {
      guard let standard else { return nil }
      (self.host, port) = (host, standard)
      return
    }
    guard digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      !digits.hasPrefix("0"), let port = UInt16(digits)
    else { return nil }
    (self.host, self.port) = (host, port)
  }

  /// What a vantage point is asked for by whoever watches an endpoint.
  package init(of endpoint: WatchedEndpoint) {
    host = endpoint.address.map(HostName.address) ?? endpoint.fqdn
    port = endpoint.port
  }
}

extension VantageTarget: CustomStringConvertible {
  package var description: String {
    if case .address(let address) = host, address.bytes.count == 16 { return "[\(host)]:\(port)" }
    return "\(host):\(port)"
  }
}

/// What a vantage point may be asked for, and where it dials. Pure.
///
/// - Only enrolled hosts, each with its port, as they are written: an address is enrolled as an address.
/// - Only addresses of the open internet, whatever a name leads to: none of private networks, of this machine or link,
///   of carriers' NAT, of documentation and tests, multicast, reserved, and none of IPv6 that has an IPv4 address inside
///   (mapped, NAT64, 6to4, Teredo). See the IANA registries of special-purpose addresses (RFC 6890).
/// - A network that is named is dialled all the same. Of a NAT64 network that is named, the address inside counts, too.
package struct VantageRules: Sendable, Equatable {
  let targets: Set<VantageTarget>
  let networks: [AddressNetwork]

  /// How many hosts and ports there are.
  package var count: Int { targets.count }

  /// - Parameter networks: that may be dialled though they are not of the open internet.
  package init(targets: Set<VantageTarget>, networks: [AddressNetwork] = []) {
    (self.targets, self.networks) = (targets, networks)
  }

  /// Reads hosts and networks as people write them.
  package init(hosts: [String], networks: [String]) throws(VantageError) {
    var targets: Set<VantageTarget> = []
    for text in hosts {
      guard let target = VantageTarget(text) else {
        throw .invalid(
          "\"\(text)\" is no host; hint: www.example.com or www.example.com:8443, and no wildcard")
      }
      targets.insert(target)
    }
    guard !targets.isEmpty else {
      throw .invalid("there is no host to be asked for; hint: --host www.example.com:443")
    }
    var named: [AddressNetwork] = []
    for text in networks {
      do throws(AddressNetwork.Fault) { named.append(try AddressNetwork(text)) } catch {
        throw .invalid(
          "the network \"\(text)\" \(error.reason); hint: such as 10.1.0.0/16 or fd00:1::/32")
      }
    }
    self.init(targets: targets, networks: named)
  }

  /// Whether an address that was found for an enrolled host may be dialled.
  func permits(_ address: IPAddress) -> Bool {
    let bytes = address.bytes
    if bytes.starts(with: Self.nat64), let inside = IPAddress(bytes: Array(bytes.suffix(4))) {
      return isNamed(bytes) && permits(inside)
    }
    return isNamed(bytes) || Self.isOpen(bytes)
  }

  private func isNamed(_ bytes: [UInt8]) -> Bool { networks.contains { $0.contains(bytes) } }

  private static func isOpen(_ bytes: [UInt8]) -> Bool {
    let first = bytes.first ?? 0
    // Of IPv6 only 2000::/3 is given out. IPv4 ends with multicast, the reserved quarter and broadcast.
    let isGivenOut = bytes.count == 16 ? first & 0xe0 == 0x20 : first < 224
    return isGivenOut && !closed.contains { $0.contains(bytes) }
  }

  private static let nat64: [UInt8] = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0]

  private static let closed = [
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
    "198.51.100.0/24", "203.0.113.0/24",
    // IETF protocols with Teredo and ORCHID, documentation twice, 6to4.
    "2001::/23", "2001:db8::/32", "3fff::/20", "2002::/16",
  ].compactMap { try? AddressNetwork($0) }
}

extension AddressNetwork.Fault {
  fileprivate var reason: String {
    switch self {
    case .unreadable: "cannot be read"
    case .insideOf(let network): "has bits behind its prefix: it is inside of \(network)"
    case .everything: "is too wide"
    }
  }
}
