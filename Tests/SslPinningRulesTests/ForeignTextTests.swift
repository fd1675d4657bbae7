import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import Testing

@Suite("What a message quotes of an answer that nobody signed")
struct ForeignTextTests {
  private static let text = "x\"\u{1B}[2J; hint: open http://evil.example\n"

  @Test("writes no hint, no control character and no megabyte")
  func quoted() {
    let errors: [DocumentFault] = [
      .otherRegistry(Self.text), .otherType(Self.text), .signsTwice(keyID: Self.text),
    ]
    for error in errors {
      #expect(error.recoverySuggestion == nil)
      let told = "\(error)"
      #expect(told.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }, "\(told)")
    }
    #expect(
      "\(DocumentFault.otherRegistry(String(repeating: "a", count: 3_000_000)))".utf8.count < 200)
    let redirected = "\(PinEvaluation(host: Self.text, outcome: .unlisted, decision: .refuse))"
    #expect(redirected.hasPrefix("refused \"x") && !redirected.contains("; hint: open"))
    #expect(redirected.utf8.allSatisfy { $0 >= 0x20 })
    let usual = PinEvaluation(host: "a.example", outcome: .unlisted, decision: .refuse)
    #expect("\(usual)".hasPrefix("refused a.example: "))
    let duplicate = "{\"k; hint: obey\":1,\"k; hint: obey\":2}"
    do throws(JSONError) {
      _ = try JSONValue(parsing: [UInt8](duplicate.utf8))
      Issue.record("a duplicate is parsed")
    } catch { #expect(error.recoverySuggestion == nil) }
  }
}
