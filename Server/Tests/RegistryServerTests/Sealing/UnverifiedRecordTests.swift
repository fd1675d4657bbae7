import CanonicalJSON
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer
@testable import RegistryStores

/// What is read of a record whose seal is not good.
@Suite("A record that nobody verified") struct UnverifiedRecordTests {
  @Test(
    "has a member where a parser finds it, and nowhere else",
    arguments: [
      (#"{"document":"a"}"#, "a"), (#"{"document":""}"#, ""),
      (#"{"a":[0,{"document":"b"}],"document":"a","z":1}"#, "a"),
      (#"{"a":"document","b":"c"}"#, nil), (#"{"a":"document"}"#, nil),
      (#"{"a":"document","document":"x"}"#, "x"), (#" { "document" : "x" } "#, "x"),
      (#"{"document":"{\"a\":\"\\\\\"}"}"#, #"{"a":"\\"}"#),
      (#"{"document":1,"b":"c"}"#, nil), (#"{"document":["c"],"b":"d"}"#, nil),
      (#"{"b":{"document":"c"}}"#, nil), (#"["document","c"]"#, nil), (#""document""#, nil),
      (#"{"document":"a"#, nil), (#"{"document":"a\"#, nil), ("", nil), ("}}{{", nil),
      (#"{"document":"\x"}"#, nil),
    ] as [(String, String?)])
  func members(_ content: String, _ expected: String?) {
    #expect(UnverifiedRecord.string("document", of: [UInt8](content.utf8)) == expected)
  }

  @Test("has the document that a state was written with")
  func states() {
    var state = DocumentState()
    state.document = [UInt8](#"{"payload":{"keys":[{"a":"\\\"é"}]}}"#.utf8)
    let found = UnverifiedRecord.string("document", of: state.encoded)
    #expect(found.map { [UInt8]($0.utf8) } == state.document)
  }

  @Test("has the key that a store says is in force")
  func keys() throws {
    let key = try SealedStoreTests.keys().own
    let content = StoreIdentity.new(under: key).encoded
    #expect(UnverifiedRecord.bytes("key", of: content) == key.publicKeyDER)
  }

  /// What somebody put into a record.
  enum Filling: CaseIterable, Sendable {
    /// Beside the document, where nothing is parsed: no parser takes it.
    case beside
    /// In it.
    case inside
    case none
  }

  @Test(
    "is served by its document, whatever stands beside, but not if that is made of tiny values",
    arguments: Filling.allCases)
  func filled(_ filling: Filling) async throws {
    let signer = DocumentSigner(key: try testSigningKey.get())
    let zeros = "[" + Array(repeating: "0", count: 70_000).joined(separator: ",") + "]"
    let signed = try RegistryDocument(
      registry: "a.json",
      keys: [RegistryKey(pattern: try HostPattern("a.example"), pin: .success(pin(1)), expires: 2)]
    ).bytes(format1Key: signer.key)
    var text = String(decoding: signed, as: UTF8.self)
    if filling == .inside { text = String(text.dropLast()) + #","x":\#(zeros)}"# }
    let member = String(decoding: JSONValue.string(text).canonicalBytes, as: UTF8.self)
    let more = filling == .beside ? #""a":[\#(zeros),,0],"# : ""
    let base = MemoryStore()
    _ = try await base.replace(
      "a.json", version: 0, with: [UInt8](#"{\#(more)"document":\#(member)}"#.utf8))
    let copies = LastCopies(
      store: SealedStore(base, keys: try SealedStoreTests.keys()), directory: nil,
      signer: { signer })
    let served = await copies.servable("a.json", isOtherKey: false)
    #expect(served?.bytes == (filling == .inside ? nil : signed))
  }
}
