import FaultLab
import Foundation
import FoundationNetworking
import Testing

@testable import SslPinningPlatform

@Suite("An error of a request without a session")
struct FailureWordsTests {
  private func isExplained(_ error: any Error) -> Bool {
    let parts = error.localizedDescription.components(separatedBy: "; hint: ")
    return parts.count == 2 && parts.allSatisfy { !$0.isEmpty }
  }

  @Test(
    "says its cause and a hint where Foundation has a number alone",
    arguments: [
      URLError.Code.unsupportedURL, .httpTooManyRedirects, .requestBodyStreamExhausted,
      .resourceUnavailable,
    ])
  func explained(code: URLError.Code) {
    #expect(isExplained(URLError.failing(code, nil)))
    #expect(!isExplained(URLError(code)))
    #expect(URLError.failing(code, nil, "its own").localizedDescription == "its own")
  }

  @Test("says so of a scheme that is not asked for, and of a redirect without an end")
  func asked() async throws {
    let site = try PinnedSite { .redirect(to: $0.path + "x") }
    let other = try #require(URL(string: "gopher://localhost/"))
    let requests: [(URL, URLError.Code)] = [
      (other, .unsupportedURL), (try site.url(), .httpTooManyRedirects),
    ]
    for (url, code) in requests {
      let error = await #expect(throws: URLError.self) {
        try await site.transport.data(for: URLRequest(url: url))
      }
      #expect(error?.code == code)
      #expect(error.map(isExplained) == true)
    }
  }
}
