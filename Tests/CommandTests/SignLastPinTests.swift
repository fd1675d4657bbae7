import CanonicalJSON
import Foundation
import Pinning
import PinningPlatform
import TLSTools
import TestSupport
import Testing

/// A host that is still listed, and has no pin left, is refused everywhere at once.
@Suite("sign and the last pins of a host")
struct SignLastPinTests {
  private static let daily = "sign --key prv.pem --online-key online0.pem"
  private static let ca = SPKIPin(computed: Digest.sha256([3])).base64
  private static let caToo = SPKIPin(computed: Digest.sha256([4])).base64

  private func entry(_ host: String, _ pin: String, _ more: String = "") -> String {
    #"{"domainName":"\#(host)","key":"\#(pin)"\#(more)}"#
  }

  private func write(_ entries: [String], to stage: Format2Stage) throws {
    try stage.directory.write(
      #"{"keys":[\#(entries.joined(separator: ","))]}"#, to: "payload.json")
  }

  @Test(
    "what is denied or cannot be read is no pin that keeps a host alive",
    arguments: [
      (Format2Stage.otherPin, #"{"denied":["\#(Format2Stage.otherPin)"]}"#, false),
      (Format2Stage.otherPin, #"{"denied":["\#(ca)"]}"#, true),
      ("x", "{}", false),
      (nil, #"{"hosts":[{"domainName":"a.example","ca":["\#(ca)"],"match":"any"}]}"#, true),
      (
        nil,
        #"{"hosts":[{"domainName":"a.example","ca":["\#(ca)"],"match":"any"}],"denied":["\#(ca)"]}"#,
        false
      ),
      (
        nil,
        #"{"hosts":[{"domainName":"a.example","ca":["\#(ca)","\#(caToo)"],"match":"any"}],"#
          + #""denied":["\#(ca)"]}"#, true
      ),
    ] as [(String?, String, Bool)])
  func living(other: String?, settings: String, isSigned: Bool) async throws {
    let stage = try Format2Stage()
    let over = entry("a.example", Format2Stage.pin, #","expire":1700000000"#)
    let rest = other.map { [entry("a.example", $0)] } ?? []
    try write([over] + rest + [entry("b.example", Format2Stage.pin)], to: stage)
    try stage.directory.write(settings, to: "settings.json")
    try await stage.makeSet()
    let outcome = try await stage.run(
      "\(Self.daily) --first --key-sets sets.json --statement settings.json payload.json"
        + " --out app.json")
    #expect(outcome.exitCode == (isSigned ? 0 : 1), "\(outcome.stderr)")
    #expect(
      outcome.stderr.contains(isSigned ? "a pin of a.example is over" : "the last pin of a.example")
    )
    #expect(FileManager.default.fileExists(atPath: stage.path("app.json")) == isSigned)
  }
}
