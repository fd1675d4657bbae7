import Pinning
import PinningPlatform

/// Where a client's registry comes from.
package enum RegistrySource: Sendable {
  /// One conditional request for the document.
  package struct Ask: Sendable {
    /// The entity tag of the document at hand.
    package var etag: String?
    /// Whether caches on the way must ask the origin.
    package var bypassesCaches: Bool
    /// The times that the dates of the server's chain are held to.
    package var time: TrustTime
  }

  /// Whatever answers; asked again for every refresh.
  case live(@Sendable (Ask) async -> Result<FetchedDocument, FetchError>)
  /// A document at hand, which nothing ever replaces or confirms: a refresh brings no change.
  case document([UInt8])

  /// A URL.
  static func remote(
    _ url: RegistryURL, _ fetcher: DocumentFetcher, _ config: SslPinningConfig
  ) -> RegistrySource {
    .live { ask in
      let request = DocumentRequest(
        url: url, etag: ask.etag, maximumBytes: config.maximumRegistryBytes,
        timeout: config.fetchTimeout, bypassesCaches: ask.bypassesCaches, at: ask.time)
      do throws(FetchError) { return .success(try await fetcher.fetch(request)) } catch {
        return .failure(error)
      }
    }
  }
}
