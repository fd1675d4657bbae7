import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// Each in a process of its own: tests beside it need the pool.
@Suite("Where others block every thread of the process-wide pool")
struct OwnThreadsTests {
  /// Blocked until its end.
  private final class BlockedPool: Sendable {
    private let gate = DispatchSemaphore(value: 0)

    init() {
      for _ in 0..<64 {
        DispatchQueue.global(qos: .userInitiated).async { [gate] in
          gate.wait()
          gate.signal()
        }
      }
    }

    deinit { gate.signal() }
  }

  /// Whether it is over in time: without threads of its own it never is.
  private static func ends(_ work: @escaping @Sendable () async -> Bool) async -> Bool {
    let pool = BlockedPool()
    let isOver = Locked(false)
    let task = Task {
      let result = await work()
      isOver.withLock { $0 = true }
      return result
    }
    let wasInTime = await eventually(within: 30) { isOver.withLock { $0 } }
    withExtendedLifetime(pool) {}
    task.cancel()
    return wasInTime ? await task.value : false
  }

  @Test("a fetch is answered")
  func fetch() async {
    await #expect(processExitsWith: .exitCode(7)) {
      let site = try PinnedSite()
      let fetcher = try DocumentFetcher(trust: .anchors([site.authority.root.der]))
      let request = DocumentRequest(
        url: try RegistryURL(site.url().absoluteString), maximumBytes: 100, timeout: 20)
      let isAnswered = await Self.ends {
        (try? await fetcher.fetch(request)) == .fresh(Array("hello".utf8), etag: nil)
      }
      exit(isAnswered ? 7 : 8)
    }
  }

  @Test("a streamed body goes up")
  func streamedBody() async {
    await #expect(processExitsWith: .exitCode(7)) {
      let site = try PinnedSite(handler: echo)
      let url = try site.url()
      let isServed = await Self.ends {
        var request = URLRequest(url, method: "POST")
        request.httpBodyStream = InputStream(data: Data(repeating: 1, count: 300_000))
        return await site.transport.end(of: request) == .served(200, "POST 300000")
      }
      exit(isServed ? 7 : 8)
    }
  }
}
