import CanonicalJSON
import SslPinningRules
import Testing

@Suite("Signed documents")
struct RegistryEnvelopeTests {
  private func payload(_ text: String) throws -> JSONView {
    try RegistryEnvelope(parsing: [UInt8](text.utf8)).verifiedPayload(by: TestKey.own)
  }

  static let entry = SignedDocument.entry("a.example", 1)

  @Test("accepts any spelling of what was signed, unknown members included")
  func spellings() throws {
    let document = String(
      decoding: try SignedDocument.of(
        payload: "{\"keys\":[\(Self.entry)],\"x\":[1,2.50,\"\\u003c\"]}"), as: UTF8.self)
    let expected = try payload(document)
    #expect(expected["x"] != nil)
    for (from, to) in [
      ("\"x\":[1,2.50,", " \n\"x\" : [1.0 ,\t25e-1,"), ("\\u003c", "<"),
      ("{\"payload\":", "{\"a\":0,\"payload\":"), ("\"x\"", "\"\\u0078\""),
    ] {
      let spelled = document.replacing(from, with: to)
      #expect(spelled != document)
      #expect(try payload(spelled).value == expected.value)
    }
  }

  @Test("keeps the members beside the payload, unsigned as they are")
  func beside() throws {
    let envelope = try RegistryEnvelope(
      parsing: SignedDocument.of(
        payload: "{\"keys\":[]}", beside: ",\"statement\":{\"version\":1}"))
    #expect(envelope.document.keys == ["payload", "signature", "statement"])
    #expect(envelope.canonicalPayload == [UInt8]("{\"keys\":[]}".utf8))
  }

  @Test(
    "refuses a payload that was changed in any way",
    arguments: [
      ("a.example", "b.example"), ("\"x\":1", "\"x\":2"), ("\"x\":1", "\"x\":\"1\""),
      ("\"x\":1", "\"X\":1"), (",\"x\":1", ""), ("\"x\":1", "\"x\":1,\"y\":null"),
      ("[{", "[{},{"), ("\"é\"", "\"e\u{301}\""),
    ])
  func changed(from: String, to: String) throws {
    let document = String(
      decoding: try SignedDocument.of(
        payload: "{\"keys\":[\(Self.entry)],\"name\":\"é\",\"x\":1}"), as: UTF8.self)
    #expect(try payload(document).value.objectValue?.count == 3)
    let changed = document.replacing(from, with: to)
    #expect(Array(changed.utf8) != Array(document.utf8))
    #expect(throws: RegistryError.badSignature) { try payload(changed) }
  }

  @Test("refuses another key's signature")
  func otherKey() throws {
    let document = try SignedDocument.of(payload: "{\"keys\":[]}", by: .other)
    let envelope = try RegistryEnvelope(parsing: document)
    #expect(throws: RegistryError.badSignature) { try envelope.verifiedPayload(by: TestKey.own) }
    #expect(try envelope.verifiedPayload(by: TestKey.other)["keys"] != nil)
  }

  @Test("asks the key about exactly the canonical payload and the decoded signature")
  func asksTheKey() throws {
    struct Recorder: SignatureVerifier {
      func isValid(signature: [UInt8], over message: [UInt8]) -> Bool {
        signature == [1, 2, 3] && message == [UInt8]("{\"a\":1,\"b\":2}".utf8)
      }
    }
    let text = "{\"signature\":\"AQID\",\"payload\":{ \"b\":2.0,\"a\":1 }}"
    #expect(
      try RegistryEnvelope(parsing: [UInt8](text.utf8)).verifiedPayload(by: Recorder())["b"] != nil)
  }

  @Test(
    "refuses what is no such document, and says why",
    arguments: [
      ("[]", .missingMember("payload")), ("1", .missingMember("payload")),
      ("{}", .missingMember("payload")),
      ("{\"payload\":[],\"signature\":\"AAAA\"}", .missingMember("payload")),
      ("{\"Payload\":{},\"signature\":\"AAAA\"}", .missingMember("payload")),
      ("{\"payload\":{}}", .missingMember("signature")),
      ("{\"payload\":{},\"signature\":1}", .missingMember("signature")),
      ("{\"payload\":{},\"signature\":\"\"}", .unreadableSignature),
      ("{\"payload\":{},\"signature\":\"AAA\"}", .unreadableSignature),
      ("{\"payload\":{},\"signature\":\"AAAA\\n\"}", .unreadableSignature),
      ("{\"payload\":{},\"signature\":\"AB==\"}", .unreadableSignature),
      ("", .malformed(.unexpectedEnd(offset: 0))),
      ("{\"payload\":", .malformed(.unexpectedEnd(offset: 11))),
    ] as [(String, RegistryError)])
  func shape(text: String, error: RegistryError) {
    #expect(throws: error) { try RegistryEnvelope(parsing: [UInt8](text.utf8)) }
    #expect(!error.description.isEmpty)
  }

  @Test(
    "refuses what two parsers could read in two ways",
    arguments: [
      "{\"payload\":{},\"payload\":{},\"signature\":\"AAAA\"}",
      "{\"payload\":{\"keys\":[],\"keys\":[]},\"signature\":\"AAAA\"}",
      "{\"payload\":{\"a\":1,\"\\u0061\":1},\"signature\":\"AAAA\"}",
      "{\"payload\":{},\"signature\":\"AAAA\",\"signature\":\"AAAA\"}",
      "{\"payload\":{},\"signature\":\"AAAA\"} {}",
      "\u{FEFF}{\"payload\":{},\"signature\":\"AAAA\"}",
      "{\"payload\":{},\"signature\":\"AAAA\",}",
      "{\"payload\":{\"a\":1e400},\"signature\":\"AAAA\"}",
      "{\"payload\":{\"a\":\"\\ud800\"},\"signature\":\"AAAA\"}",
      "{\"payload\":{\"a\":\(String(repeating: "[", count: 100_000))",
    ])
  func ambiguous(text: String) {
    do throws(RegistryError) {
      _ = try RegistryEnvelope(parsing: [UInt8](text.utf8))
      Issue.record("accepted")
    } catch {
      guard case .malformed = error else {
        Issue.record("\(error)")
        return
      }
    }
  }

  @Test("refuses a document beyond the limit before it looks at it")
  func size() throws {
    let document = try SignedDocument.of(payload: "{\"keys\":[]}")
    let exact = RegistryLimits(maximumBytes: document.count)
    #expect((try? RegistryEnvelope(parsing: document, limits: exact)) != nil)
    let below = RegistryLimits(maximumBytes: document.count - 1)
    #expect(throws: RegistryError.tooLarge(limit: document.count - 1)) {
      try RegistryEnvelope(parsing: document, limits: below)
    }
    let garbage = [UInt8](repeating: 0xff, count: RegistryLimits.standard.maximumBytes + 1)
    #expect(throws: RegistryError.tooLarge(limit: 4 << 20)) {
      try RegistryEnvelope(parsing: garbage)
    }
  }
}
