import Pinning

/// What an app ships: where its registry is, and the key that signs it.
public struct SslPinningConfig: Hashable, Sendable {
  /// The registry's URL: `https`, or `http` to a loopback address.
  public var endpointUrl: String
  /// The registry's signing key: PEM, base64 of PEM, or base64 of DER (SubjectPublicKeyInfo or
  /// PKCS#1); RSA of at least 1024 bits.
  public var signingKeyBase64: String
  /// Who vouches for servers before their pins are looked at, the registry's own included.
  public var trust: TrustMode
  /// What happens to hosts that the registry does not list.
  ///
  /// - Warning: anything but the default leaves connections to other hosts to every CA.
  public var unlistedHosts: UnlistedHosts
  /// Seconds that one fetch of the registry may take in all.
  public var fetchTimeout: Double
  /// The most bytes that a registry may have.
  public var maximumRegistryBytes: Int

  /// A configuration; only the first two have no default.
  public init(
    endpointUrl: String, signingKeyBase64: String, trust: TrustMode = .system,
    unlistedHosts: UnlistedHosts = .refuse, fetchTimeout: Double = 10,
    maximumRegistryBytes: Int = RegistryLimits.standard.maximumBytes
  ) {
    self.endpointUrl = endpointUrl
    self.signingKeyBase64 = signingKeyBase64
    self.trust = trust
    self.unlistedHosts = unlistedHosts
    self.fetchTimeout = fetchTimeout
    self.maximumRegistryBytes = maximumRegistryBytes
  }
}
