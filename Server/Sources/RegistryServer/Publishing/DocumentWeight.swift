import RegistryCore
import SslPinningRules

/// How many bytes a document and its parts have: what `make bench-bytes` prints, by the server's own signer
/// over endpoints that nobody probed.
package struct DocumentWeight: Sendable {
  /// Bytes as they are, and compressed.
  package struct Size: Sendable {
    package let raw: Int
    package let compressed: Int

    init(_ bytes: [UInt8]) {
      (raw, compressed) = (bytes.count, Gzip.compressed(bytes)?.count ?? bytes.count)
    }
  }

  package let whole: Size
  package let statement: Size
  package let payload: Size

  /// The document of so many endpoints under the default patterns, a random key each.
  package init?(endpoints count: Int, signer: DocumentSigner, at now: Int64) throws {
    var state = DocumentState()
    var endpoints: [WatchedEndpoint] = []
    for index in 0..<count {
      let name = try HostName("service-\(index).example.com")
      let endpoint = WatchedEndpoint(fqdn: name)
      let digest = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
      let seen = now - .random(in: 0..<365 * 86_400)
      guard let pin = SPKIPin(digest: digest) else { return nil }
      state.keysByEndpoint[endpoint.id] = EndpointKeys(
        keys: [KnownKey(pin: pin, firstSeen: seen, lastSeen: now)])
      endpoints.append(endpoint)
    }
    let content = DocumentContent(state, endpoints: endpoints)
    guard let document = try signer.sign(content, file: "app.json", after: state, at: now),
      let part = document.parts.statement()
    else { return nil }
    (whole, statement) = (Size(document.bytes), Size(part))
    payload = Size(document.parts.payload)
  }
}
