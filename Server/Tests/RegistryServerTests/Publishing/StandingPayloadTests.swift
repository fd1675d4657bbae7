import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("The payload stays as it is") struct StandingPayloadTests {
  private static let start: Int64 = 1_780_000_000
  private static let day: Int64 = 86_400
  private static let file = "www.example.com.json"

  private let directory: TemporaryDirectory

  init() throws { directory = try makeKeyDirectory() }

  private func signer(statements: Bool = true) throws -> DocumentSigner {
    try DocumentSigner(
      directory: directory.path(), publishing: PublishingConfiguration(statements: statements))
  }

  private func content(
    _ keys: UInt8..., hosts: [String] = ["www.example.com"], after last: PublishedDocument? = nil
  ) -> DocumentContent {
    var state = DocumentState()
    let endpoints = hosts.map { WatchedEndpoint(fqdn: HostName.literal($0)) }
    for endpoint in endpoints {
      state.keysByEndpoint[endpoint.id] = EndpointKeys(
        keys: keys.map { KnownKey(pin: pin($0), firstSeen: Self.start, lastSeen: Self.start) })
    }
    if let last { state = state.goingOn(from: last.signedCopy, endpoints: endpoints) }
    return DocumentContent(state, endpoints: endpoints)
  }

  /// What the next signing sees: what a store keeps, and another server or a later one reads.
  private func state(after document: PublishedDocument) -> DocumentState {
    var state = DocumentState()
    (state.document, state.signed, state.number) = (
      document.bytes, document.signed, document.number
    )
    return state
  }

  private func payload(of document: PublishedDocument) throws -> JSONObject {
    try #require(try JSONValue(parsing: document.bytes).objectValue?["payload"]?.objectValue)
  }

  private func expiries(of document: PublishedDocument) throws -> [Int64] {
    try #require(try payload(of: document)["keys"]?.arrayValue)
      .compactMap { $0.objectValue?["expire"]?.integerValue }
  }

  @Test(
    "for as long as it says the same and lasts half of its time: signed daily for 100 days",
    arguments: [true, false])
  func daily(statements: Bool) throws {
    let key = try VerificationKey(try SigningKey(file: directory.file("prv.pem")).publicKeyPEM)
    var state = DocumentState()
    var (changed, versions) = ([Int64](), Set<Int64>())
    var last: JSONObject?
    for day in 0..<100 as Range<Int64> {
      // Each day is another server's that has nothing but the store.
      let now = Self.start + day * Self.day
      let signed = try signer(statements: statements)
        .sign(day < 60 ? content(1) : content(1, 2), file: Self.file, after: state, at: now)
      let document = try #require(signed)
      state = self.state(after: document)
      versions.insert(document.number?.version ?? day)
      let payload = try payload(of: document)
      if payload != last { changed.append(day) }
      last = payload
      #expect(try expiries(of: document).allSatisfy { $0 >= now + 45 * Self.day })
      let envelope = try RegistryEnvelope(parsing: document.bytes)
      #expect(throws: Never.self) { try envelope.verifiedPayload(by: key) }
      if let stated = try JSONValue(parsing: document.bytes).objectValue?["statement"]?.objectValue
      {
        #expect(
          stated["payloadDigest"]?.stringValue
            == StrictBase64.encode(Digest.sha256(JSONValue.object(payload).canonicalBytes)))
        #expect(stated["expires"]?.integerValue == now + DocumentSigner.horizon)
      }
    }
    #expect(changed == [0, 46, 60])
    #expect(versions.count == 100)
  }

  @Test("but not what a clock that was ahead promised")
  func clockAhead() throws {
    let ahead = try #require(
      try signer().sign(
        content(1), file: Self.file, after: DocumentState(), at: Self.start + 400 * Self.day))
    let next = try #require(
      try signer().sign(content(1), file: Self.file, after: state(after: ahead), at: Self.start))
    #expect(
      try expiries(of: next) == Array(repeating: Self.start + DocumentSigner.horizon, count: 2))
  }

  @Test("with the hosts that an epoch's first statement carries, and goes with them")
  func epochBegins() throws {
    let both = content(1, hosts: ["www.example.com", "left.example.com"])
    let first = try #require(
      try signer().sign(both, file: Self.file, after: DocumentState(), at: Self.start))
    let shipped = try TrustSigningKey(file: directory.file("prv.pem"))
    var list = KeySetList(registry: Self.file)
    let role = try KeyRole(keys: [shipped.roleKey], threshold: 1)
    try list.append(root: role, online: role)
    try list.sign(with: shipped)
    try FileManager.default.createDirectory(
      at: directory.file("keysets"), withIntermediateDirectories: true)
    try directory.write(list.json.canonicalBytes, to: "keysets/" + Self.file)
    let second = try #require(
      try signer().sign(
        content(1, after: first), file: Self.file, after: state(after: first),
        at: Self.start + Self.day))
    #expect(second.number?.epoch == 1)
    #expect(try payload(of: second) == payload(of: first))
    let third = try #require(
      try signer().sign(
        content(1), file: Self.file, after: state(after: second), at: Self.start + 2 * Self.day))
    #expect(try expiries(of: third).count == 2)
    #expect(
      try expiries(of: third).allSatisfy {
        $0 == Self.start + 2 * Self.day + DocumentSigner.horizon
      })
  }
}
