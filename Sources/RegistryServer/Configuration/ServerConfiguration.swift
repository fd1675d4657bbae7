import Pinning

/// Everything an operator can set: what to watch, where to keep it, how to sign, where to listen.
///
/// Values only; every one was checked when it was read, so nothing later in the server has to ask
/// whether a file name is safe or a duration positive.
public struct ServerConfiguration: Sendable, Equatable {
  /// The documents to publish, in the order in which their files are first named.
  public var documents: [DocumentConfiguration]
  /// Where to listen.
  public var listen: ListenAddress
  /// Where state is kept.
  public var storage: StorageConfiguration
  /// The signing key and the way endpoints are looked at.
  public var tls: TLSConfiguration
  /// The least important level that is logged.
  public var logLevel: LogLevel

  /// A configuration; the defaults are those of the configuration file.
  public init(
    documents: [DocumentConfiguration], listen: ListenAddress = .standard,
    storage: StorageConfiguration = .standard, tls: TLSConfiguration = TLSConfiguration(),
    logLevel: LogLevel = .info
  ) {
    self.documents = documents
    self.listen = listen
    self.storage = storage
    self.tls = tls
    self.logLevel = logLevel
  }
}

/// One published file and the endpoints that it speaks of.
public struct DocumentConfiguration: Sendable, Equatable {
  /// The last component of the document's URL: 1 to 128 letters, digits, `.`, `_` and `-`, not
  /// beginning with a dot, so that it is one path component wherever it is written.
  public var file: String
  /// The endpoints, each once, in the order given.
  public var endpoints: [WatchedEndpoint]

  /// A document.
  public init(file: String, endpoints: [WatchedEndpoint]) {
    self.file = file
    self.endpoints = endpoints
  }

  /// Whether `name` is a file name as ``file`` describes it.
  public static func isSafe(file name: String) -> Bool {
    let bytes = name.utf8
    guard (1...128).contains(bytes.count), bytes.first != UInt8(ascii: ".") else { return false }
    return bytes.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "-"):
        true
      default: false
      }
    }
  }
}

/// An endpoint whose key is watched.
public struct WatchedEndpoint: Sendable, Hashable {
  /// The name that is looked up, sent as SNI and expected in the certificate.
  public var fqdn: HostName
  /// The TCP port.
  public var port: UInt16
  /// Connect here instead of resolving `fqdn`; the name is still sent and checked.
  public var address: IPAddress?
  /// The hosts for which the endpoint's key is published.
  public var patterns: [HostPattern]
  /// Within how many milliseconds a changed key of this endpoint is published; `nil` means
  /// ``TLSConfiguration/interval``.
  public var interval: Int64?
  /// Who decides about a new key of this endpoint; `nil` means ``TLSConfiguration/approval``.
  public var approval: ApprovalMode?

  /// An endpoint.
  ///
  /// - Parameter patterns: `nil` means the name itself and one label below it; the name alone for
  ///   an IP address.
  public init(
    fqdn: HostName, port: UInt16 = 443, address: IPAddress? = nil, patterns: [HostPattern]? = nil,
    interval: Int64? = nil, approval: ApprovalMode? = nil
  ) {
    self.fqdn = fqdn
    self.port = port
    self.address = address
    self.interval = interval
    self.approval = approval
    self.patterns = patterns ?? Self.standardPatterns(for: fqdn)
  }

  /// The apex and `*.`: pinning only the second, as the field's server does, would leave the apex
  /// itself unpinned.
  static func standardPatterns(for fqdn: HostName) -> [HostPattern] {
    switch fqdn {
    case .name(let name): [.exact(fqdn), .oneMoreLabel(name)]
    case .address: [.exact(fqdn)]
    }
  }

  /// What tells endpoints of one document apart, in state and in logs: `www.example.com:443`, with
  /// ` at 127.0.0.1` where an address is set.
  public var id: String {
    let host =
      if case .address(let address) = fqdn, address.bytes.count == 16 { "[\(fqdn)]" } else {
        "\(fqdn)"
      }
    return "\(host):\(port)" + (address.map { " at \($0)" } ?? "")
  }
}
