/// Which hosts an entry of a pin list covers.
///
/// - `name` matches exactly that name; an IP address matches only itself.
/// - `*.name` matches exactly one more label and never the apex.
/// - `**.name` matches the apex and any depth, as in OkHttp.
/// - Everything else with a `*` is refused when it is read, so that a typing error cannot silently leave
///   a host unpinned.
public enum HostPattern: Hashable, Sendable {
  /// Exactly this host.
  case exact(HostName)
  /// This name with exactly one more label in front: `*.name`.
  case oneMoreLabel(DNSName)
  /// This name and every name below it: `**.name`.
  case anyDepth(DNSName)

  /// Reads a pattern.
  ///
  /// - Throws: ``HostNameError``.
  public init(_ text: String) throws(HostNameError) {
    do throws(HostNameError) { try self.init(reading: text) } catch { throw error.about(text) }
  }

  private init(reading text: String) throws(HostNameError) {
    guard text.utf8.first == UInt8(ascii: "*") else {
      guard !text.utf8.contains(UInt8(ascii: "*")) else { throw .misplacedWildcard(text) }
      self = .exact(try HostName(text))
      return
    }
    if text.utf8.starts(with: "**.".utf8) {
      self = .anyDepth(try DNSName(String(text.utf8.dropFirst(3)) ?? ""))
    } else if text.utf8.starts(with: "*.".utf8) {
      self = .oneMoreLabel(try DNSName(String(text.utf8.dropFirst(2)) ?? ""))
    } else {
      throw .misplacedWildcard(text)
    }
  }

  /// The name without its wildcard.
  package var base: HostName {
    switch self {
    case .exact(let host): host
    case .oneMoreLabel(let name), .anyDepth(let name): .name(name)
    }
  }

  /// Whether the pattern covers `host`.
  public func matches(_ host: HostName) -> Bool {
    switch (self, host) {
    case (.exact(let own), _): return own == host
    case (.oneMoreLabel(let base), .name(let name)): return name.parent == base
    case (.anyDepth(let base), .name(let name)):
      var ancestor: DNSName? = name
      while let current = ancestor {
        if current == base { return true }
        ancestor = current.parent
      }
      return false
    case (_, .address): return false
    }
  }
}

extension HostPattern: CustomStringConvertible {
  public var description: String {
    switch self {
    case .exact(let host): host.description
    case .oneMoreLabel(let base): "*." + base.description
    case .anyDepth(let base): "**." + base.description
    }
  }
}
