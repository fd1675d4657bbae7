import HTTPServing

/// Where the server listens, and how. Durations are milliseconds.
public struct HTTPConfiguration: Sendable, Equatable {
  /// Where to listen: 127.0.0.1:7500.
  public var listen: ListenAddress
  /// How long a request may take to arrive: 5 s. 0 sets no limit beside the server's own.
  public var readTimeout: Int64
  /// How long an answer may take to be read: 5 s. 0 sets no limit beside the server's own.
  public var writeTimeout: Int64
  /// A PEM file with the certificate and its chain; `nil` means clear text.
  public var certificate: String?
  /// The PEM file with the certificate's private key.
  public var privateKey: String?
  /// What administrators' tokens are signed with; `nil` means with a key that comes from `prv.pem`.
  /// Changing it ends every token there is.
  public var key: Secret?
  /// The proxies in front, whose `X-Forwarded-For` says who calls.
  public var trustedProxies: [AddressNetwork]

  /// Settings; the defaults are those of the configuration file.
  public init(
    listen: ListenAddress = .standard, readTimeout: Int64 = 5000, writeTimeout: Int64 = 5000,
    certificate: String? = nil, privateKey: String? = nil, key: Secret? = nil,
    trustedProxies: [AddressNetwork] = []
  ) {
    self.listen = listen
    self.readTimeout = readTimeout
    self.writeTimeout = writeTimeout
    self.certificate = certificate
    self.privateKey = privateKey
    self.key = key
    self.trustedProxies = trustedProxies
  }
}
