import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

/// Writes `Vectors/registry` anew, keys excepted, into the directory that `REGISTRY_VECTORS` names.
/// What must become of each document is said here by hand, never taken from the client.
@Suite("Writing the vectors of the registry format")
struct RegistryVectorWriter {
  static let directory = ProcessInfo.processInfo.environment["REGISTRY_VECTORS"]

  @Test("writes them", .enabled(if: directory != nil))
  func write() throws {
    let root = URL(filePath: try #require(Self.directory), directoryHint: .isDirectory)
    let documents = root.appending(path: "documents", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: documents, withIntermediateDirectories: true)
    var book = RegistryVectorBook()
    try book.fill()
    for (name, bytes) in book.documents {
      try Data(bytes).write(to: documents.appending(path: name))
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    try encoder.encode(book.cases).write(to: root.appending(path: "cases.json"))
    let first = try RegistryEnvelope(parsing: try #require(book.documents["first.json"]))
    let statement = try #require(first.document["statement"]?.objectValue)
    let set = try #require(
      first.document["keySets"]?.arrayValue?.first?.objectValue?["keySet"]?.objectValue)
    let rows = [
      ("statement", DocumentSignature.Domain.statement.bytes(over: statement)),
      ("keySet", DocumentSignature.Domain.keySet.bytes(over: set)),
      ("payload", first.canonicalPayload),
    ].map { name, bytes in
      name + "\t"
        + Digest.sha256(bytes).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
    try Data((["of\tsha256"] + rows).joined(separator: "\n").appending("\n").utf8)
      .write(to: root.appending(path: "signed-bytes.tsv"))
  }
}
