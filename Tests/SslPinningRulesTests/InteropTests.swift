import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

/// Documents that the reference server code wrote and signed.
@Suite("Registries of the field")
struct InteropTests {
  static let documents = ["rsa3072", "rsa4096"].flatMap { folder in
    ["two-keys", "extra-members", "unicode"].map { "interop/\(folder)/\($0).json" }
  }

  private func key(for document: String) throws -> VerificationKey {
    let folder = document.split(separator: "/").dropLast().joined(separator: "/")
    return try VerificationKey(bytes: try Vectors.bytes("\(folder)/pub.pem"))
  }

  @Test("every document is believed, and says of its hosts what it says", arguments: documents)
  func believed(document: String) throws {
    let registry = try TrustedRegistry(
      accepting: try Vectors.bytes(document), verifiedBy: try key(for: document), at: 0
    ).registry
    let name = try #require(document.split(separator: "/").last)
    let patterns = registry.keys.map(\.pattern.description)
    switch name {
    case "two-keys.json": #expect(patterns == ["www.google.com", "mail.google.com"])
    case "extra-members.json": #expect(patterns == ["*.example.com"])
    default: #expect(patterns == ["*.b.example"])
    }
    // A host in U-labels is told and passed over: patterns are written in A-labels.
    let unreadable = RegistryProblem.unreadableHost(index: 1, .notASCII("bücher.example"))
    #expect(registry.problems == (name == "unicode.json" ? [unreadable] : []))
    #expect(registry.keys.allSatisfy { (try? $0.pin.get()) != nil })
    for key in registry.keys where name != "unicode.json" {
      // Seconds left at the entry's date.
      #expect((1_790_000_000...1_900_000_000).contains(try #require(key.expires)))
    }
  }

  @Test("no document is believed under another key, or with another's signature")
  func otherKeys() throws {
    let envelopes = try Self.documents.map {
      ($0, try RegistryEnvelope(parsing: try Vectors.bytes($0)))
    }
    for (document, envelope) in envelopes {
      let key = try key(for: document)
      for (other, theirs) in envelopes {
        #expect(
          key.isValid(signature: theirs.signature, over: envelope.canonicalPayload)
            == (other == document))
      }
    }
  }

  @Test(
    "no document is believed with one byte of a string or number in its payload changed",
    arguments: documents)
  func changedByte(document: String) throws {
    let bytes = try Vectors.bytes(document)
    let key = try key(for: document)
    #expect((try? RegistryEnvelope(parsing: bytes).verifiedPayload(by: key)) != nil)
    let positions = try Self.scalarPositions(in: bytes)
    #expect(positions.count > 250)
    let changes = positions.flatMap { [($0, UInt8(1)), ($0, UInt8(2)), ($0, UInt8(0x10))] }
    var believed: [Int] = []
    var unread = 0
    for (position, change) in changes {
      var changed = bytes
      changed[position] ^= change
      do throws(RegistryError) {
        _ = try RegistryEnvelope(parsing: changed).verifiedPayload(by: key)
        believed.append(position)
      } catch {
        if error != .badSignature { unread += 1 }
      }
    }
    #expect(believed.isEmpty)
    // Most changes leave strict JSON, so it was the signature that refused them.
    #expect(unread * 2 < changes.count)
  }

  /// The offsets of all bytes of strings (names included) and numbers inside the payload.
  private static func scalarPositions(in document: [UInt8]) throws -> [Int] {
    let marker = [UInt8]("\"payload\":".utf8)
    let start =
      try #require(
        document.indices.first { document[$0...].starts(with: marker) }
      ) + marker.count
    var positions: [Int] = []
    var depth = 0
    var inString = false
    var isEscaped = false
    for index in document.indices[start...] {
      let byte = document[index]
      if inString {
        if byte == UInt8(ascii: "\""), !isEscaped {
          inString = false
          continue
        }
        isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
        positions.append(index)
        continue
      }
      switch byte {
      case UInt8(ascii: "\""): inString = true
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        if depth == 0 { return positions }
      case UInt8(ascii: "0")...UInt8(ascii: "9"): positions.append(index)
      default: break
      }
    }
    Issue.record("the payload does not end")
    return positions
  }
}
