import Foundation
import SslPinningRules

/// Where a registry may be fetched from, and a report be sent to: `https`, or `http` to this machine.
/// Nothing else can be asked for, because no other URL becomes one of these.
public struct RegistryURL: Hashable, Sendable, CustomStringConvertible {
  /// Why a text is no registry URL.
  public enum Fault: Error, Hashable, Sendable {
    /// Not an absolute URL with a host, or with credentials inside.
    case unreadable
    /// `http` to another machine: whoever is on the way could freeze the registry unseen.
    case clearText
    /// Another scheme.
    case scheme(String)
  }

  /// The URL as it was given.
  public let description: String
  /// Whether the URL is `http`, to a loopback address.
  public let isClearText: Bool
  /// The host as it was given.
  public let host: String
  /// The last component of the path, percent-decoded; empty where there is none.
  public let lastPathComponent: String

  /// Reads a URL.
  ///
  /// - Throws: ``Fault``.
  public init(_ text: String) throws(Fault) {
    // Foundation would write %20 for a blank, which the transport takes the text as it is for none.
    guard !text.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f }),
      let url = URL(string: text), let scheme = url.scheme?.lowercased(), let host = url.host,
      url.user == nil, url.password == nil, let name = try? HostName(host)
    else { throw .unreadable }
    switch scheme {
    case "https": isClearText = false
    case "http":
      // A dot at the end is for a resolver, and none is asked about this machine.
      guard Self.isLoopback(name), host.utf8.last != UInt8(ascii: ".") else { throw .clearText }
      isClearText = true
    default: throw .scheme(scheme)
    }
    description = text
    self.host = host
    lastPathComponent = url.lastPathComponent
  }

  /// Whether the host is this machine by definition: 127.0.0.0/8 (RFC 1122 §3.2.1.3), ::1, or
  /// `localhost` and the names below it (RFC 6761 §6.3). On Linux no libcurl gets to look them up.
  private static func isLoopback(_ host: HostName) -> Bool {
    switch host {
    case .address(let address):
      return address.bytes.count == 4
        ? address.bytes.first == 127
        : address.bytes.last == 1 && address.bytes.dropLast().allSatisfy { $0 == 0 }
    case .name:
      return (try? HostPattern("**.localhost"))?.matches(host) ?? false
    }
  }
}

extension RegistryURL.Fault: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unreadable: "no absolute URL with a host alone; hint: use https://host/path"
    case .clearText: "clear text to another machine; hint: use https"
    case .scheme(let scheme): "\(scheme) is not supported; hint: use https"
    }
  }
}
