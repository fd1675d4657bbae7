import SslPinningRules

/// One request outside of all sessions, as each platform's ``PlatformFetch`` carries it out.
package struct HTTPExchange: Sendable {
  /// What is asked.
  enum Kind: Hashable, Sendable {
    /// GET. Redirects are followed to `https` only, at most five; a longer answer is a failure.
    case get
    /// GET of what only this server may say, with a token that only it may see: a redirect is an answer
    /// like any other.
    case getHere
    /// POST of JSON. A redirect is an answer like any other: what the app tells, it tells the server
    /// it named. Of the answer only its head counts, so a
    /// body that is too long or breaks off changes nothing.
    case post([UInt8])
  }

  let url: RegistryURL
  let kind: Kind
  /// Header fields; one whose value has a line break is left out.
  let headers: [(name: String, value: String)]
  /// The most bytes that the answer's body may have.
  let maximumBytes: Int
  /// Seconds for the whole exchange.
  let timeout: Double
  /// The times that the dates of the server's chain are held to (`RegistryDates`); `nil` means the
  /// system's clock.
  let time: TrustTime?

  init(
    url: RegistryURL, kind: Kind, headers: [(String, String?)], maximumBytes: Int, timeout: Double,
    at time: TrustTime? = nil
  ) {
    self.url = url
    self.kind = kind
    let common: [(String, String?)] = [
      ("Accept", "application/json"), ("User-Agent", "ssl-pinning"),
    ]
    self.headers = (common + headers).compactMap { name, value in
      guard let value, Self.isSendable(value) else { return nil }
      return (name, value)
    }
    self.maximumBytes = maximumBytes
    self.timeout = timeout
    self.time = time
  }

  /// Whether a header can have this value: a line break would begin one of somebody else's making.
  static func isSendable(_ value: String) -> Bool {
    !value.utf8.contains { $0 < 0x20 || $0 == 0x7f }
  }
}

/// What a server answered.
package struct HTTPAnswer: Hashable, Sendable {
  var status: Int
  /// The entity tag, if it is one that can be sent back: another names nothing, and a later 304 would answer no
  /// question.
  var etag: String? {
    didSet { etag = Self.sendable(etag) }
  }
  var retryAfter: String?
  var body: [UInt8]

  init(status: Int, etag: String? = nil, retryAfter: String? = nil, body: [UInt8]) {
    self.status = status
    self.etag = Self.sendable(etag)
    self.retryAfter = retryAfter
    self.body = body
  }

  private static func sendable(_ tag: String?) -> String? {
    guard let tag, !tag.isEmpty, HTTPExchange.isSendable(tag) else { return nil }
    return tag
  }
}
