import SslPinningPlatform
import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("What libmicrohttpd answers itself", .timeLimit(.minutes(1))) struct HTTPOwnAnswerTests {
  @Test("is counted as the caller's fault while a request is not whole")
  func chunkExtension() async throws {
    let statuses = Locked<[Int]>([])
    let server = try HTTPServer(
      listen: try #require(ListenAddress("127.0.0.1:0")), routing: HTTPBench.rule,
      observer: { exchange in statuses.withLock { $0.append(exchange.status) } },
      handler: HTTPBench.answer)
    let answer = try await RawConnection.ask(
      server.address,
      "POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;"
        + repeated("a", 30_000) + "\r\na\r\n0\r\n\r\n")
    #expect(!answer.hasPrefix("HTTP/1.1 2"), "\(answer)")
    await server.stop()
    #expect(statuses.withLock { $0.allSatisfy { (400..<500).contains($0) } })
  }
}
