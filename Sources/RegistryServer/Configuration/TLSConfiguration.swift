/// The signing key, and how endpoints are looked at. Durations are milliseconds.
public struct TLSConfiguration: Sendable, Equatable {
  /// The directory with `prv.pem` and `pub.pem`.
  public var directory: String
  /// Within how long a changed key is published, and so how often each endpoint is looked at, at
  /// least: 60 s.
  public var interval: Int64
  /// How long one look may take from the name's resolution to the end of the handshake: 5 s.
  public var timeout: Int64
  /// How many looks must agree before a changed key is published: 3.
  public var looks: Int
  /// How soon a look that saw a new key is repeated: 2 s.
  public var lookInterval: Int64
  /// A PEM file with the only anchors that endpoints are judged by; `nil` means the system's.
  public var anchors: String?
  /// How long an old key stays published after it was last seen: 7 days.
  ///
  /// Long enough that a deployment rolled back after a weekend finds its key still listed, short
  /// enough that a key which was replaced because it leaked does not stay for months.
  public var grace: Int64
  /// Who decides about a new key: the rules alone, or a person.
  public var approval: ApprovalMode
  /// From where else endpoints are looked at; this server itself always looks.
  public var vantagePoints: [VantagePoint]

  /// Settings; the defaults are those of the configuration file.
  public init(
    directory: String = "tls", interval: Int64 = 60_000, timeout: Int64 = 5000, looks: Int = 3,
    lookInterval: Int64 = 2000, anchors: String? = nil, grace: Int64 = 7 * 86_400_000,
    approval: ApprovalMode = .automatic, vantagePoints: [VantagePoint] = []
  ) {
    self.approval = approval
    self.vantagePoints = vantagePoints
    self.directory = directory
    self.interval = interval
    self.timeout = timeout
    self.looks = looks
    self.lookInterval = lookInterval
    self.anchors = anchors
    self.grace = grace
  }
}

extension TLSConfiguration {
  /// Milliseconds between the end of one look and the next: the interval, less what confirming a
  /// change takes after the look that meets it, and a second for the looks themselves.
  ///
  /// A client asks for a newer list at most once in 10 seconds for a host and its key. So the gap
  /// after an unannounced change is at most the interval and those 10 seconds.
  var pauseBetweenLooks: Int64 {
    max(1000, interval - Int64(max(1, looks) - 1) * lookInterval - 1000)
  }
}

/// Who decides about a new key that was confirmed.
public enum ApprovalMode: String, Sendable, Hashable, CaseIterable {
  /// The rules: a confirmed key is published, unless something about it asks for a person.
  case automatic = "auto"
  /// A person, for every key after the endpoint's first.
  case manual
}

/// Another place from which endpoints are looked at: an HTTP proxy that tunnels (RFC 9110 §9.3.6).
///
/// A man in the middle near this server shows one key here and another there, which is what more
/// than one place to look from is for.
public struct VantagePoint: Sendable, Hashable {
  /// Its name in logs, alerts and the console; never ``Observation/direct``.
  public var name: String
  /// The proxy.
  public var host: String
  /// The proxy's port.
  public var port: UInt16

  /// A vantage point.
  public init(name: String, host: String, port: UInt16) {
    self.name = name
    self.host = host
    self.port = port
  }
}
