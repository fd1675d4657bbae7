import SslPinningPlatform
import SslPinningRules

/// Where a client's registry comes from.
package enum RegistrySource: Sendable {
  /// Where the document is served.
  package enum Place: Hashable, Sendable {
    /// At the URL that the app ships.
    case own
    /// Where the statement in force says.
    case mirror(RegistryMirror)
  }

  /// What of the document is asked for.
  package enum Part: Hashable, Sendable {
    case document
    /// The statement, and the key sets above the newest one that is believed.
    case statement(epoch: Int64)
    /// The payload of this digest, in lower-case hex.
    case payload(digest: String)
  }

  /// One conditional request.
  package struct Ask: Sendable {
    package var place = Place.own
    package var part = Part.document
    /// The entity tag of the document at hand.
    package var etag: String?
    /// Whether caches on the way must ask the origin.
    package var bypassesCaches: Bool
    /// The times that the dates of the server's chain are held to.
    package var time: TrustTime
  }

  package typealias Fetch = @Sendable (Ask) async -> Result<FetchedDocument, FetchError>

  /// Whatever answers; asked again for every refresh.
  case live(Fetch)
  /// A document at hand, which nothing ever replaces or confirms: a refresh brings no change.
  case document([UInt8])

  /// A server of whole documents only.
  package static func whole(_ fetch: @escaping Fetch) -> RegistrySource {
    .live { ask in ask.part == .document ? await fetch(ask) : .failure(.status(404)) }
  }

  /// A URL.
  static func remote(
    _ url: RegistryURL, _ fetcher: DocumentFetcher, _ config: SslPinningConfig
  ) -> RegistrySource {
    .live { ask in
      do throws(FetchError) {
        let request = DocumentRequest(
          url: try ask.url(own: url), etag: ask.etag, maximumBytes: config.maximumRegistryBytes,
          timeout: config.fetchTimeout, bypassesCaches: ask.bypassesCaches, at: ask.time)
        return .success(try await fetcher.fetch(request))
      } catch { return .failure(error) }
    }
  }
}

extension RegistrySource.Ask {
  /// What is asked for, by the app's own URL.
  func url(own: RegistryURL) throws(FetchError) -> RegistryURL {
    let document: String
    switch place {
    case .own where part == .document: return own
    case .own: document = own.description
    case .mirror(let mirror): document = mirror.description
    }
    // A path cannot go on behind a query: such a URL has no parts.
    if part != .document, document.contains(where: { "?#".contains($0) }) { throw .status(404) }
    let text =
      switch part {
      case .document: document
      case .statement(let epoch): "\(document)/statement?epoch=\(epoch)"
      case .payload(let digest): "\(document)/payload/\(digest)"
      }
    do throws(RegistryURL.Fault) { return try RegistryURL(text) } catch {
      throw .unreachable("\"\(document)\" is \(error)")
    }
  }
}
