import CanonicalJSON
import RegistryCore
import SslPinningRules

/// Another place from which endpoints are probed: an HTTP proxy that tunnels (RFC 9110 §9.3.6).
///
/// - A man in the middle near this server shows one key here and another there, which is what more
///   than one place to probe from is for.
/// - So the way there must not be his: over TLS to a proxy that proves itself, or in clear text on this
///   machine alone.
public struct VantagePoint: Sendable, Hashable {
  /// How a proxy proves that it is the one.
  public struct Security: Sendable, Hashable {
    /// The SPKI pins of its leaf; empty: its chain alone counts.
    public var pins: [SPKIPin]
    /// A PEM file with the only anchors of its chain. Without pins, `nil` means the system's; with
    /// pins, that its chain does not count.
    public var anchors: String?
    /// A PEM file with the certificate that this server shows to the proxy, and its chain.
    public var certificate: String?
    /// The PEM file with that certificate's key.
    public var privateKey: String?

    /// A proof.
    public init(
      pins: [SPKIPin] = [], anchors: String? = nil, certificate: String? = nil,
      privateKey: String? = nil
    ) {
      self.pins = pins
      self.anchors = anchors
      self.certificate = certificate
      self.privateKey = privateKey
    }
  }

  /// Its name in logs, alerts and the console; never ``ProbeObservation/direct``.
  public var name: String
  /// The proxy.
  public var host: String
  /// The proxy's port.
  public var port: UInt16
  /// How it proves itself; `nil`: it is spoken to in clear text, on this machine.
  public var security: Security?

  /// A vantage point.
  public init(name: String, host: String, port: UInt16, security: Security? = nil) {
    self.name = name
    self.host = host
    self.port = port
    self.security = security
  }
}

extension VantagePoint {
  private static let keys = ["name", "proxy", "pins", "ca", "certificate", "key"]
  private static let form = "write https://host:port; passwords are not supported"

  /// Reads `tls.vantage_points`.
  ///
  /// - A proxy elsewhere is `https`, with `pins` or with a client `certificate`: whoever stands before this
  ///   server could otherwise answer in its place.
  static func read(_ tls: ConfigurationSection) throws(ConfigurationError) -> [VantagePoint] {
    var points: [VantagePoint] = []
    for (index, node) in try tls.list("vantage_points").enumerated() {
      let entry = try ConfigurationSection(
        node, path: "tls.vantage_points[\(index)]", known: keys)
      guard let name = try entry.string("name") else {
        throw entry.missing("name", hint: "name it, for logs and alerts")
      }
      guard name != ProbeObservation.direct, !points.contains(where: { $0.name == name }) else {
        throw entry.invalid("name", "\"\(name)\" is taken", hint: "name it otherwise")
      }
      guard name.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value < 0x7f }) else {
        throw entry.invalid("name", "it has other than visible ASCII", hint: "letters and digits")
      }
      let point = try read(entry, name: name)
      if let other = points.first(where: { $0.isSameMachine(as: point) }) {
        throw entry.invalid(
          "proxy", "it is \(other.name) under another name",
          hint: "one machine, or one key, is one voice in a quorum")
      }
      points.append(point)
    }
    return points
  }

  private static func read(
    _ entry: ConfigurationSection, name: String
  ) throws(ConfigurationError) -> VantagePoint {
    guard let proxy = try entry.string("proxy") else {
      throw entry.missing("proxy", hint: "write https://host:port")
    }
    let scheme = ["https://", "http://"].first { proxy.hasPrefix($0) }
    guard let scheme, let (host, port) = authority(proxy.dropFirst(scheme.count)) else {
      throw entry.invalid("proxy", "\"\(MaskedDSN(proxy))\" is no proxy", hint: form)
    }
    let security = try security(entry)
    if scheme == "http://" {
      guard isLoopback(host) else {
        throw entry.invalid(
          "proxy", "\"\(proxy)\" is clear text to another machine",
          hint: "write https:// with pins; http:// is for localhost, where a tunnel may begin")
      }
      guard security == Security() else {
        throw entry.invalid(
          "proxy", "\"\(proxy)\" proves nothing: it is clear text", hint: "write https://")
      }
      return VantagePoint(name: name, host: "\(host)", port: port)
    }
    guard !security.pins.isEmpty || security.certificate != nil else {
      throw entry.missing(
        "pins", because: "proxy",
        hint: "ssl-pinning pin prints a server's; or give certificate and key to show to the proxy")
    }
    return VantagePoint(name: name, host: "\(host)", port: port, security: security)
  }

  private static func security(
    _ entry: ConfigurationSection
  ) throws(ConfigurationError) -> Security {
    var pins: [SPKIPin] = []
    for text in try entry.strings("pins") ?? [] {
      do throws(PinSyntaxError) { pins.append(try SPKIPin(parsing: text)) } catch {
        throw entry.invalid("pins", "\"\(text)\" is no pin: \(error)")
      }
    }
    let (certificate, key) = (try entry.nonEmpty("certificate"), try entry.nonEmpty("key"))
    if certificate != nil, key == nil {
      throw entry.missing("key", because: "certificate", hint: "the PEM file with its key")
    }
    if key != nil, certificate == nil {
      throw entry.missing("certificate", because: "key", hint: "the PEM file with its certificate")
    }
    return Security(
      pins: pins, anchors: try entry.nonEmpty("ca"), certificate: certificate, privateKey: key)
  }

  /// `host:port`, perhaps with a slash behind it; `nil` where the text is none.
  private static func authority(_ text: Substring) -> (HostName, UInt16)? {
    let authority = text.hasSuffix("/") ? text.dropLast() : text
    guard let colon = authority.lastIndex(of: ":") else { return nil }
    let digits = authority[authority.index(after: colon)...]
    let host = authority[..<colon]
    guard let port = UInt16(digits), port > 0, !digits.hasPrefix("+"),
      !host.contains(":") || host.hasPrefix("["), let name = try? HostName(String(host))
    else { return nil }
    return (name, port)
  }

  /// Whether it is `localhost`, 127.0.0.0/8 or ::1.
  private static func isLoopback(_ host: HostName) -> Bool {
    switch host {
    case .name: host.description == "localhost"
    case .address(let address):
      address.bytes.count == 4
        ? address.bytes.first == 127 : address.bytes == [UInt8](repeating: 0, count: 15) + [1]
    }
  }
}

extension VantagePoint {
  /// Whether it is another name for the same one. Whoever has a key, or stands before a machine, speaks for all that are
  /// known by it; so both would count as a quorum of two.
  package func isSameMachine(as other: VantagePoint) -> Bool {
    (machine, port) == (other.machine, other.port)
      || !Set(security?.pins ?? []).isDisjoint(with: other.security?.pins ?? [])
  }

  /// Its host; one for all names and addresses of this machine, behind which one listener may stand.
  private var machine: String {
    (try? HostName(host)).map(Self.isLoopback) == true ? "localhost" : host
  }

  /// The entry of `tls.vantage_points` that means it.
  package var entry: JSONValue {
    let authority = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
    let scheme = security == nil ? "http" : "https"
    var members: JSONObject = [
      "name": .string(name), "proxy": .string("\(scheme)://\(authority):\(port)"),
    ]
    if let security {
      if !security.pins.isEmpty {
        members["pins"] = .array(security.pins.map { .string($0.base64) })
      }
      members["ca"] = security.anchors.map(JSONValue.string)
      members["certificate"] = security.certificate.map(JSONValue.string)
      members["key"] = security.privateKey.map(JSONValue.string)
    }
    return .object(members)
  }
}
