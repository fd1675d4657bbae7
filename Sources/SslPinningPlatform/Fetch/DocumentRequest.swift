import SslPinningRules

/// A request for a whole document, bounded in size and time.
public struct DocumentRequest: Hashable, Sendable {
  /// The document's address.
  public let url: RegistryURL
  /// The entity tag of the document at hand, if any.
  public var etag: String?
  /// The most bytes that the body may have.
  public var maximumBytes: Int
  /// Seconds for the whole exchange, from the name look-up to the last byte. Counted in whole
  /// milliseconds from 1 to some 24 days, so zero and less are the shortest time, never none.
  public var timeout: Double
  /// Whether caches on the way must ask the origin (RFC 9111 §5.2.1.4).
  public var bypassesCaches: Bool
  /// The times that the dates of the server's chain are held to (`RegistryDates`); `nil` means the
  /// system's clock.
  public var time: TrustTime?

  /// A request.
  public init(
    url: RegistryURL, etag: String? = nil, maximumBytes: Int, timeout: Double,
    bypassesCaches: Bool = false, at time: TrustTime? = nil
  ) {
    self.url = url
    self.etag = etag
    self.maximumBytes = maximumBytes
    self.timeout = timeout
    self.bypassesCaches = bypassesCaches
    self.time = time
  }
}
