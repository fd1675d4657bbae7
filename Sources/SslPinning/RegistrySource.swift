import PinningPlatform

/// Where a client's registry comes from.
enum RegistrySource: Sendable {
  /// A URL; asked again for every refresh.
  case remote(RegistryURL, DocumentFetcher)
  /// A document at hand, which nothing ever replaces or confirms: a refresh brings no change.
  case document([UInt8])
}
