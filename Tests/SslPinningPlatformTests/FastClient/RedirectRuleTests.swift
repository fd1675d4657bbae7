import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import Testing

@Suite("The rule of redirects")
struct RedirectRuleTests {
  private func decide(
    _ status: Int, to location: String?, from: String = "https://a.test/x/y",
    method: String = "GET", followed: Int = 0, canRepeatBody: Bool = true
  ) throws -> RedirectRule.Decision {
    let request = URLRequest(
      try #require(URL(string: from)), method: method,
      fields: ["Authorization": "a", "Content-Type": "b", "X-Own": "c"], body: Data("body".utf8))
    return RedirectRule.decide(
      status: status, location: location, after: request, followed: followed,
      canRepeatBody: canRepeatBody)
  }

  private func followed(_ decision: RedirectRule.Decision) throws -> URLRequest {
    guard case .follow(let request) = decision else {
      Issue.record("\(decision)")
      throw URLError(.unknown)
    }
    return request
  }

  @Test(
    "delivers what leads nowhere",
    arguments: [(200, "/z"), (304, "/z"), (300, "/z"), (305, "/z"), (302, nil)] as [(Int, String?)])
  func delivers(status: Int, location: String?) throws {
    #expect(try decide(status, to: location) == .deliver)
  }

  @Test(
    "reads the place against the request's URL",
    arguments: [
      ("/z", "https://a.test/z"), ("z", "https://a.test/x/z"), ("//b.test/z", "https://b.test/z"),
      ("?q", "https://a.test/x/y?q"), ("https://b.test", "https://b.test"),
      ("HTTPS://b.test/", "HTTPS://b.test/"),
      // A name and password only where the request was, which sent its own there.
      ("https://u:p@a.test/z", "https://u:p@a.test/z"),
      ("https://u:p@b.test/%2f?q", "https://b.test/%2f?q"),
      ("//u@b.test/z", "https://b.test/z"),
    ])
  func resolves(location: String, url: String) throws {
    #expect(try followed(decide(302, to: location)).url?.absoluteString == url)
  }

  @Test("keeps a fragment where the new place has none")
  func fragment() throws {
    let kept = try decide(302, to: "/z", from: "https://a.test/#here")
    #expect(try followed(kept).url?.absoluteString == "https://a.test/z#here")
    let own = try decide(302, to: "/z#there", from: "https://a.test/#here")
    #expect(try followed(own).url?.absoluteString == "https://a.test/z#there")
  }

  @Test(
    "carries credentials within an origin only",
    arguments: [
      ("https://a.test/z", true), ("https://A.TEST:443/z", true), ("https://b.test/z", false),
      ("https://a.test:444/z", false), ("https://sub.a.test/z", false),
    ])
  func credentials(location: String, keeps: Bool) throws {
    let next = try followed(decide(307, to: location))
    #expect((next.value(forHTTPHeaderField: "Authorization") != nil) == keeps)
    #expect(next.value(forHTTPHeaderField: "X-Own") == "c")
  }

  @Test("drops what describes a body with the body")
  func body() throws {
    let turned = try followed(decide(303, to: "/z", method: "PUT"))
    #expect(turned.httpMethod == "GET")
    #expect(turned.httpBody == nil)
    #expect(turned.value(forHTTPHeaderField: "Content-Type") == nil)
    let head = try followed(decide(303, to: "/z", method: "HEAD"))
    #expect(head.httpMethod == "HEAD")
    #expect(try decide(308, to: "/z", canRepeatBody: false) == .fail(.requestBodyStreamExhausted))
  }

  @Test("refuses clear text with a verdict, and other schemes")
  func schemes() throws {
    for scheme in ["http", "HTTP", "ws", "ftp"] {
      guard case .refuse(let refusal) = try decide(302, to: "\(scheme)://a.test/") else {
        Issue.record("\(scheme)")
        continue
      }
      #expect(refusal.outcome == .clearText(scheme: scheme.lowercased()))
      #expect(refusal.host == "a.test")
    }
    for location in ["file:///etc/passwd", "data:,x", "gopher://a.test/"] {
      #expect(try decide(302, to: location) == .fail(.unsupportedURL))
    }
  }

  @Test("ends after twenty")
  func most() throws {
    _ = try followed(decide(302, to: "/z", followed: 19))
    #expect(try decide(302, to: "/z", followed: 20) == .fail(.httpTooManyRedirects))
  }

  @Test("leaves credentials behind in every spelling that a request has of their fields")
  func spellings() throws {
    var request = URLRequest(try #require(URL(string: "https://a.test/")))
    let names = [
      "Authorization", "authorization", "Cookie", "cookie", "COOKIE", "Proxy-authorization",
    ]
    request.allHTTPHeaderFields = Dictionary(
      uniqueKeysWithValues: (names + ["X-Own"]).map { ($0, "secret") })
    let decision = RedirectRule.decide(
      status: 302, location: "https://b.test/", after: request, followed: 0, canRepeatBody: true)
    #expect(try followed(decision).allHTTPHeaderFields == ["X-Own": "secret"])
  }
}
