import Foundation
import SslPinningRules
import Testing

@testable import SslPinningPlatform

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

@Suite("An exchange as a session is asked for it")
struct HTTPExchangeSessionTests {
  private static func exchange(
    _ url: String, _ kind: HTTPExchange.Kind = .get, timeout: Double = 5
  ) throws -> HTTPExchange {
    HTTPExchange(
      url: try RegistryURL(url), kind: kind, headers: [("If-None-Match", "\"a\"")],
      maximumBytes: 100, timeout: timeout)
  }

  @Test("keeps nothing: no cookies, no cache, no credentials")
  func keepsNothing() throws {
    let configuration = try Self.exchange("https://a.test/").configuration
    #expect(configuration.urlCache == nil && configuration.httpCookieStorage == nil)
    #expect(configuration.urlCredentialStorage == nil && !configuration.httpShouldSetCookies)
    #expect(configuration.requestCachePolicy == .reloadIgnoringLocalCacheData)
  }

  @Test("lets no proxy see clear text, and leaves the proxies of https alone")
  func proxies() throws {
    let clear = try Self.exchange("http://127.0.0.1:1/").configuration
    #expect(clear.connectionProxyDictionary?.isEmpty == true)
    #expect(try Self.exchange("https://a.test/").configuration.connectionProxyDictionary == nil)
  }

  @Test("carries the method, the body and the fields")
  func request() throws {
    let url = try #require(URL(string: "https://a.test/"))
    let get = try Self.exchange("https://a.test/").request(to: url)
    #expect(get.httpMethod == "GET" && get.httpBody == nil)
    #expect(get.value(forHTTPHeaderField: "If-None-Match") == "\"a\"")
    let post = try Self.exchange("https://a.test/", .post([1, 2])).request(to: url)
    #expect(post.httpMethod == "POST" && post.httpBody == Data([1, 2]))
  }

  @Test(
    "gives a session a time that it takes", arguments: [(0, 0.001), (5, 5), (1e12, 2_147_483.647)])
  func timeout(asked: Double, given: Double) throws {
    #expect(try Self.exchange("https://a.test/", timeout: asked).sessionTimeout == given)
  }
}
