import Foundation
import FoundationNetworking
import SslPinning
import SslPinningRules
import TLSTools
import Testing

@Suite("A client's requests without a session")
struct RequestTests {
  private let site: FixedPinsSite
  private let request: URLRequest

  init() throws {
    site = try FixedPinsSite()
    request = URLRequest(
      url: try #require(URL(string: "https://localhost:\(site.server.port)/")))
  }

  private func client(pin: String) throws -> FixedPinsClient {
    try FixedPinsClient(
      pins: FixedPins(["localhost": HostPins(leaf: [pin])], trust: site.trust))
  }

  @Test("are served by the pinned server: whole, in chunks, and with a body of one's own")
  func served() async throws {
    let client = try client(pin: site.leafPin)
    let (body, response) = try await client.data(for: request)
    #expect(body == Data("hello".utf8))
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    let (chunks, _) = try await client.chunks(for: request, timeout: 60)
    var received = Data()
    for try await chunk in chunks { received += chunk }
    #expect(received == Data("hello".utf8))
    var post = request
    post.httpMethod = "POST"
    _ = try await client.upload(for: post, from: Data("up".utf8))
    let parts = AsyncStream<Data> {
      $0.yield(Data("up".utf8))
      $0.finish()
    }
    _ = try await client.upload(for: post, from: parts)
    #expect(site.server.requests.suffix(2).map(\.body) == [Array("up".utf8), Array("up".utf8)])
  }

  @Test("throw the verdict where they are refused, and the client finds it")
  func refused() async throws {
    let client = try client(pin: site.intermediatePin)
    do {
      _ = try await client.data(for: request)
      Issue.record("served")
    } catch let refusal as PinEvaluation {
      #expect(refusal.rule == "leaf-pin")
      #expect(client.refusal(for: refusal) == refusal)
    }
    #expect(await site.server.waitUntilIdle())
    #expect(site.server.counts.applicationBytesReceived == 0)
  }
}
