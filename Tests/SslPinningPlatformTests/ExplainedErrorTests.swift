import CanonicalJSON
import Foundation
import SslPinningRules
import Testing

@testable import SslPinningPlatform

@Suite("What alerts and crash reporters read of an error")
struct ExplainedErrorTests {
  static let errors: [any ExplainedError] = [
    JSONError.unexpectedByte(UInt8(ascii: "<"), offset: 0),
    CertificateSyntaxError.trailingData(offset: 3), ChainFault.wrongHost,
    DocumentFault.notSigned(by: .onlineKeys(epoch: 0)), HostNameError.empty,
    PolicyError.unlistedHostsWithoutPath, PolicyError.reportOnlyWithoutPath(nil),
    PinSyntaxError.notBase64, RegistryError.statementExpired(at: 1_782_592_000),
    PinEvaluation(host: "a.example", outcome: .unlisted, decision: .refuse),
    FetchError.unreachable("no route"), FetchError.cancelled,
    PlatformError.cannotPin(reason: "no TLS; hint: install one"), RegistryURL.Fault.unreadable,
  ]

  @Test(
    "has no password of a proxy setting that libcurl cannot use, and libcurl's words otherwise",
    arguments: [
      ("Unsupported proxy syntax in 'http://user:hunter2@127.0.0.1:99999'", true),
      ("Unsupported proxy scheme for 'foo://user:hunter2@127.0.0.1:1'", true),
      ("Could not resolve proxy: proxy.example", false), ("", false),
    ])
  func proxySetting(text: String, isReplaced: Bool) {
    let told = TransferFailure.words(text, or: "its name")
    #expect(told.contains("hint: https_proxy") == isReplaced)
    #expect(!told.contains("hunter2"))
    #expect(isReplaced || told == (text.isEmpty ? "its name" : text))
  }

  @Test("is the text itself: the cause, and the hint apart", arguments: errors)
  func localized(_ error: any ExplainedError) {
    let told = error as any Error
    let parts = "\(error)".split(separator: "; hint: ", maxSplits: 1)
    #expect(told.localizedDescription == String(parts[0]))
    #expect(
      (told as NSError).localizedRecoverySuggestion == parts.dropFirst().first.map(String.init))
    #expect(!told.localizedDescription.contains("error "))
    #expect(!told.localizedDescription.contains("hint:"))
  }

  @Test("says when, as a date")
  func dates() {
    let error = RegistryError.statementExpired(at: 1_782_592_000)
    #expect(error.localizedDescription == "the statement expired on 2026-06-27T20:26:40Z")
    #expect(
      error.recoverySuggestion
        == "is the device's clock ahead? does the registry's server still sign?")
    let keySet = RegistryError.keySetExpired(epoch: 1, at: 0)
    #expect(keySet.localizedDescription == "key set 1 expired on 1970-01-01T00:00:00Z")
    #expect(keySet.recoverySuggestion?.hasPrefix("is the device's clock ahead?") == true)
  }
}
