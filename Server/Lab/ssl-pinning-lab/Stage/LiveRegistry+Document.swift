import RegistryServer
import TLSTools

/// What is published.
extension LiveRegistry {
  /// The document as it is published.
  var document: PublishedDocument {
    get throws(Inconclusive) {
      guard let document = try leader.currentDocument(Self.file) else {
        throw Inconclusive("nothing is published")
      }
      return document
    }
  }

  /// Whether a text, such as a pin or a host, stands in the document.
  func publishes(_ text: String) -> Bool {
    ((try? document.bytes).map { String(decoding: $0, as: UTF8.self) } ?? "").contains(text)
  }

  /// Whether a host has an entry.
  func lists(_ host: String) -> Bool { publishes("\"domainName\":\"\(host)\"") }

  /// That what is published is signed under this key set.
  func mustBeOfEpoch(_ epoch: Int64) throws {
    let number = try document.number
    try show(number?.epoch == epoch, "epoch \(number?.epoch ?? -1) is published, and not \(epoch)")
  }

  /// That a key is listed, or is not.
  func mustList(_ identity: ServerIdentity, _ isListed: Bool = true) throws {
    let pin = try identity.pin.base64
    try show(
      lists(identity) == isListed,
      "\(pin) is \(isListed ? "not listed" : "still listed")")
  }

  /// Whether what is published has this key.
  func lists(_ identity: ServerIdentity) throws -> Bool {
    publishes("\"key\":\"\(try identity.pin.base64)\"")
  }
}
