import FaultLab
import Foundation
import TLSTools
import Testing

@testable import SslPinningPlatform

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

@Suite("The class that refuses clear text")
struct FailingProtocolTests {
  @Test("fails http with the cause before anything is dialled, and takes nothing else")
  func clearText() async throws {
    let server = try LocalHTTPServer { _ in .text("served") }
    let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/"))
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = [ClearTextProtocol.self] + (configuration.protocolClasses ?? [])
    let session = URLSession(configuration: configuration)
    defer { session.invalidateAndCancel() }
    let error = await #expect(throws: URLError.self) { _ = try await session.data(from: url) }
    #expect(error?.code == .unsupportedURL)
    #expect(error?.localizedDescription == "only https goes over a pinned session")
    #expect(error?.failingURL == url)
    #expect(server.counts.connections == 0)
    for (other, isTaken) in [
      ("https://a.example/", false), ("wss://a.example/", false),
      ("ws://a.example/", true), ("gopher://a.example/", true),
    ] {
      let request = URLRequest(url: try #require(URL(string: other)))
      #expect(ClearTextProtocol.canInit(with: request) == isTaken, "\(other)")
    }
  }
}
