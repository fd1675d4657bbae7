import Foundation
import SslPinningPlatform
import SslPinningRules
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

@Suite("The verdict behind an error without a token")
struct RecentRefusalsTests {
  private let recent = RecentRefusals()
  private let refusal = PinEvaluation(
    host: "www.example.com", outcome: .mismatch(.leaf), decision: .refuse)

  private func error(
    _ code: Int = NSURLErrorCancelled, _ url: String = "https://www.example.com/a",
    domain: String = NSURLErrorDomain
  ) -> NSError {
    let details = URL(string: url).map { [NSURLErrorFailingURLErrorKey: $0 as Any] }
    return NSError(domain: domain, code: code, userInfo: details)
  }

  private func note(at now: Int64 = 100) throws {
    recent.note(refusal, failing: try HostName("www.example.com"), at: now)
  }

  @Test(
    "is found by the failing URL's host, in any spelling",
    arguments: ["https://www.example.com/a", "https://WWW.EXAMPLE.COM.:8443/b?c"])
  func found(url: String) throws {
    try note()
    #expect(recent.refusal(for: error(NSURLErrorCancelled, url), at: 100) == refusal)
    #expect(recent.refusal(for: error(NSURLErrorSecureConnectionFailed, url), at: 100) == refusal)
  }

  @Test("is found inside an error that wraps it")
  func wrapped() throws {
    try note()
    let outer = NSError(domain: "app", code: 1, userInfo: [NSUnderlyingErrorKey: error()])
    #expect(recent.refusal(for: outer, at: 100) == refusal)
  }

  @Test("is not found for other hosts, other failures and other domains")
  func others() throws {
    try note()
    let code = NSURLErrorCancelled
    for other in [
      error(code, "https://example.com/a"), error(code, "https://a.www.example.com/"),
      error(NSURLErrorNotConnectedToInternet), error(NSURLErrorTimedOut),
      error(domain: "app"), NSError(domain: NSURLErrorDomain, code: code),
    ] {
      #expect(recent.refusal(for: other, at: 100) == nil)
    }
  }

  @Test("is found for 60 seconds and no longer")
  func aging() throws {
    try note(at: 100)
    #expect(recent.refusal(for: error(), at: 160) == refusal)
    #expect(recent.refusal(for: error(), at: 161) == nil)
  }

  @Test("is soon forgotten once the host was accepted, but not before its own error has come")
  func forgotten() throws {
    let host = try HostName("www.example.com")
    try note(at: 100)
    recent.forget(host, at: 100)
    // Of two handshakes at one time: the error comes after both verdicts.
    #expect(recent.refusal(for: error(), at: 102) == refusal)
    #expect(recent.refusal(for: error(), at: 103) == nil)
    // No acceptance makes it last longer.
    recent.forget(host, at: 103)
    #expect(recent.refusal(for: error(), at: 103) == nil)
    try note(at: 104)
    #expect(recent.refusal(for: error(), at: 164) == refusal)
  }

  @Test("stays findable however many other hosts are refused")
  func bounded() throws {
    for number in 0..<5_000 {
      recent.note(refusal, failing: try HostName("h\(number).example.com"), at: 100)
    }
    try note()
    #expect(recent.refusal(for: error(), at: 100) == refusal)
  }
}
