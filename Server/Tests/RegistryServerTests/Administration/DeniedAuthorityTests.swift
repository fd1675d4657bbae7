import CanonicalJSON
import Foundation
import RegistryCore
import RegistryServer
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Denying a CA, and changes that do not reach everybody")
struct DeniedAuthorityTests {
  /// The endpoint's path: leaf, issuer, another CA, anchor.
  private static let path = ProbeResult(observations: [
    ProbeObservation(
      outcome: .accepted(
        SeenChain(
          leaf: SeenCertificate(pin: pin(1)), above: (11...13).map { SeenCertificate(pin: pin($0)) }
        )))
  ])

  private func running() async throws -> AdministeredService {
    let scripted = try ScriptedService()
    scripted.observer.show(Self.path, at: "www.example.com")
    try await scripted.start()
    return AdministeredService(scripted: scripted)
  }

  private func denial(_ pin: SPKIPin, force: Bool = false) -> String {
    #"{"pin":"\#(pin.base64)","why":"x","force":\#(force)}"#
  }

  @Test(
    "whose key stands in an endpoint's path is refused, with its hosts, unless it is forced",
    arguments: 11...13 as ClosedRange<UInt8>)
  func inUse(key: UInt8) async throws {
    let service = try await running()
    let refused = try await service.call("POST", "/denials", denial(pin(key)))
    #expect(refused.status == 409)
    #expect(refused["hosts"] == [.string("www.example.com"), .string("*.www.example.com")])
    #expect(refused.hint == "move their servers to another CA first, or force it")
    #expect(try await service.call("GET", "/denials")["denials"] == [])
    let forced = try await service.call("POST", "/denials", denial(pin(key), force: true))
    #expect(forced.status == 200 && forced["warnings"] == [])
    let allowed = try await service.call("POST", "/allowances", #"{"pin":"\#(pin(key).base64)"}"#)
    #expect(allowed.changes == ["key_allowed"])
    #expect(try await service.call("GET", "/denials")["denials"] == [])
    await service.stop()
  }

  @Test(
    "is refused as well while the endpoint does not answer, by the path before",
    arguments: 11...13 as ClosedRange<UInt8>)
  func silent(key: UInt8) async throws {
    let service = try await running()
    service.scripted.observer.show(.unreachable(reason: "down"), at: "www.example.com")
    await service.scripted.service.probe("www.example.com")
    #expect(try await service.call("POST", "/denials", denial(pin(key))).status == 409)
    await service.stop()
  }

  @Test("is told afterwards: by an alert as long as it stands there, and beside a staged key")
  func told() async throws {
    let service = try await running()
    let stage = AdministeredService.endpoint + "/stage"
    let before = try await service.call("POST", stage, #"{"pin":"\#(pin(2).base64)"}"#)
    #expect(before["warnings"] == [])
    #expect(try await service.call("POST", "/denials", denial(pin(12), force: true)).status == 200)
    await service.scripted.service.probe("www.example.com")
    let alerts = try await service.call("GET", AdministeredService.endpoint)
    #expect(alerts["alertList", "0", "kind"] == .string("denied-key-seen"))
    #expect(alerts["alertList", "0", "pin"] == .string(pin(12).base64))
    let staged = try await service.call("POST", stage, #"{"pin":"\#(pin(3).base64)"}"#)
    #expect(
      staged["warnings", "0"]?.stringValue?.hasPrefix(
        "the denied key \(pin(12).base64) stands above")
        == true)
    await service.stop()
  }

  @Test("is done for a CA that was left, and a key that nobody has shown is told")
  func notInUse() async throws {
    let service = try await running()
    let next = SeenChain(
      leaf: SeenCertificate(pin: pin(1)),
      above: [SeenCertificate(pin: pin(21)), SeenCertificate(pin: pin(13))])
    service.scripted.observer.show(
      ProbeResult(observations: [ProbeObservation(outcome: .accepted(next))]), at: "www.example.com"
    )
    service.scripted.clock.advance(60)
    await service.scripted.service.probe("www.example.com")
    let left = try await service.call("POST", "/denials", denial(pin(11)))
    #expect(left.status == 200 && left["warnings"] == [])
    let unknown = try await service.call("POST", "/denials", denial(pin(99)))
    #expect(unknown.status == 200)
    #expect(
      unknown["warnings", "0"]?.stringValue?.contains("no endpoint has shown \(pin(99).base64)")
        == true)
    await service.stop()
  }

  @Test("of a key that was withdrawn is no denial of one that nobody has shown")
  func withdrawn() async throws {
    let service = try await AdministeredService.running()
    await service.show(pin(2))
    await service.show(pin(1))
    for _ in 0..<40 {
      service.scripted.clock.advance(20)
      await service.scripted.service.probe("www.example.com")
    }
    #expect(try await service.published()["www.example.com"] == [pin(1)])
    let denied = try await service.call("POST", "/denials", denial(pin(2)))
    #expect(denied.status == 200 && denied["warnings"] == [])
    await service.stop()
  }

  @Test("a staged certificate of a CA, or for other names, is published and told")
  func certificate() async throws {
    let service = try await running()
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    for (pem, warning) in [
      (authority.root.pem, "the certificate is a CA's"),
      (
        try authority.issue(names: ["other.example"]).leaf.pem,
        "for other names than www.example.com"
      ),
      (try authority.issue(names: ["www.example.com"]).leaf.pem, nil),
    ] {
      let body = JSONValue.object(["certificate": .string(pem)]).canonicalBytes
      let answer = try await service.call(
        "POST", AdministeredService.endpoint + "/stage", String(decoding: body, as: UTF8.self))
      #expect(answer.status == 200)
      let told = answer["warnings"]?.arrayValue?.compactMap(\.stringValue) ?? []
      #expect(told.count == (warning == nil ? 0 : 1))
      if let warning { #expect(told.first?.contains(warning) == true) }
    }
    await service.stop()
  }

  @Test("a change whose copy could not be written is made, and told")
  func copies() async throws {
    let scripted = try ScriptedService(more: "publish: {dir: \"DIR/copies\"}")
    try scripted.directory.write("in the way", to: "copies")
    scripted.observer.show(.accepted(pin(1)), at: "www.example.com")
    try await scripted.start()
    let service = AdministeredService(scripted: scripted)
    let stage = AdministeredService.endpoint + "/stage"
    let answer = try await service.call("POST", stage, #"{"pin":"\#(pin(2).base64)"}"#)
    #expect(answer.status == 200)
    #expect(
      answer["warnings", "0"]?.stringValue?
        .hasPrefix("the copy of www.example.com.json in publish.dir is as it was: ") == true)
    try FileManager.default.removeItem(at: scripted.directory.file("copies"))
    let mended = try await service.call("POST", stage, #"{"pin":"\#(pin(3).base64)"}"#)
    #expect(mended["warnings"] == [])
    await service.stop()
  }
}
