import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Bodies of a request without a session")
struct FastBodyTests {
  private let payload = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })

  @Test("go up whole, as a stream and as a sequence, and arrive unchanged")
  func upload() async throws {
    let site = try PinnedSite(handler: echo)
    let url = try site.url()
    let payload = payload
    let fields = ["Content-Type": "application/x-own"]
    let plain = URLRequest(url, method: "POST", fields: fields, body: payload)
    var streamed = URLRequest(url, method: "POST", fields: fields)
    streamed.httpBodyStream = InputStream(data: payload)
    #expect(await site.transport.end(of: plain) == .served(200, "POST 300000"))
    #expect(await site.transport.end(of: streamed) == .served(200, "POST 300000"))
    let request = URLRequest(url, method: "PUT", fields: fields)
    _ = try await site.transport.upload(for: request, from: payload)
    let chunks = AsyncStream<Data> { continuation in
      for start in stride(from: 0, to: payload.count, by: 7_000) {
        continuation.yield(payload[start..<min(start + 7_000, payload.count)])
      }
      continuation.finish()
    }
    _ = try await site.transport.upload(for: request, from: chunks)
    #expect(site.server.requests.count == 4)
    for received in site.server.requests {
      #expect(received.body == Array(payload))
      #expect(received.header("Content-Type") == "application/x-own")
      #expect(received.header("Expect") == nil)
    }
  }

  @Test("have no type that the app did not give, and a length even where they are empty")
  func fields() async throws {
    let site = try PinnedSite(handler: echo)
    let post = URLRequest(try site.url(), method: "POST", body: Data("x".utf8))
    #expect(await site.transport.end(of: post) == .served(200, "POST 1"))
    let empty = URLRequest(try site.url(), method: "POST")
    #expect(await site.transport.end(of: empty) == .served(200, "POST 0"))
    #expect(site.server.requests.allSatisfy { $0.header("Content-Type") == nil })
    #expect(site.server.requests.last?.header("Content-Length") == "0")
    // The handle is used again: nothing of a POST is left on the next GET.
    #expect(await site.transport.end(of: try site.url()) == .served(200, "GET 0"))
    #expect(site.server.requests.last?.header("Content-Length") == nil)
  }

  @Test("go up behind a long head, and a long head goes up without any", .timeLimit(.minutes(1)))
  func longHead() async throws {
    let site = try PinnedSite(handler: echo)
    for bytes in [8_000, 33_000, 60_000] {
      let text = String(repeating: "x", count: bytes)
      let fields = ["X-Long": text]
      let get = URLRequest(try site.url(), method: "GET", fields: fields)
      #expect(await site.transport.end(of: get) == .served(200, "GET 0"), "\(bytes)")
      #expect(
        await site.transport.end(of: try site.url("/" + text)) == .served(200, "GET 0"), "\(bytes)")
      let post = URLRequest(
        try site.url(), method: "POST", fields: fields, body: Data("x".utf8))
      #expect(await site.transport.end(of: post) == .served(200, "POST 1"), "\(bytes)")
      #expect(await site.transport.end(of: try site.url()) == .served(200, "GET 0"))
    }
  }

  @Test("are not taken from the app for a connection that is refused")
  func refusedUpload() async throws {
    let site = try PinnedSite()
    let attacker = try LocalTLSServer(identity: site.rogueIdentity(), handler: echo)
    let asked = Locked(0)
    let chunks = AsyncStream<Data> {
      asked.withLock { $0 += 1 }
      return asked.withLock { $0 } > 3 ? nil : Data("secret".utf8)
    }
    let request = URLRequest(try site.url(port: attacker.port), method: "POST")
    await #expect(throws: PinEvaluation.self) {
      try await site.transport.upload(for: request, from: chunks)
    }
    #expect(asked.withLock { $0 } == 0)
    #expect(await attacker.waitUntilIdle())
    #expect(attacker.counts.applicationBytesReceived == 0)
  }

  @Test("are no part of a HEAD request, which is refused with one instead of waiting for an answer")
  func head() async throws {
    let site = try PinnedSite(handler: echo)
    let url = try site.url()
    let body = Data("x".utf8)
    let plain = URLRequest(url, method: "HEAD", body: body, timeout: 5)
    var streamed = URLRequest(url, method: "HEAD", timeout: 5)
    streamed.httpBodyStream = InputStream(data: body)
    #expect(await site.transport.end(of: plain) == .failed(.dataLengthExceedsMaximum))
    #expect(await site.transport.end(of: streamed) == .failed(.dataLengthExceedsMaximum))
    let bare = URLRequest(url, method: "HEAD", timeout: 5)
    await #expect(throws: URLError.self) {
      try await site.transport.upload(for: bare, from: body)
    }
    await #expect(throws: URLError.self) {
      try await site.transport.upload(for: bare, from: AsyncStream { $0.finish() })
    }
    await #expect(throws: URLError.self) { try await site.transport.bytes(for: plain) }
    #expect(site.server.requests.isEmpty)
    // An empty one is none.
    let empty = URLRequest(url, method: "HEAD", body: Data(), timeout: 5)
    #expect(await site.transport.end(of: empty) == .served(200, ""))
    _ = try await site.transport.upload(for: bare, from: Data())
    #expect(site.server.requests.map(\.method) == ["HEAD", "HEAD"])
  }

  struct Broken: Error {}

  /// A stream of an app's own, whose reads fail. It has no error, unless it says so.
  private final class FailingStream: InputStream {
    private let isTold: Bool
    private var hasFailed = false
    init(isTold: Bool) {
      self.isTold = isTold
      super.init(data: Data())
    }
    override func open() {}
    override func close() {}
    override var streamStatus: Stream.Status { isTold && hasFailed ? .error : .open }
    override var streamError: (any Error)? { Broken() }
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
      hasFailed = true
      return -1
    }
  }

  @Test(
    "that are streams are sent once: a used one fails, and one that cannot be read ends the request alone"
  )
  func usedStreams() async throws {
    let site = try PinnedSite(handler: echo)
    var request = URLRequest(try site.url(), method: "POST", timeout: 30)
    let stream = InputStream(data: payload)
    request.httpBodyStream = stream
    #expect(await site.transport.end(of: request) == .served(200, "POST 300000"))
    // A refreshed token, or whatever has an app send the same request again.
    #expect(await site.transport.end(of: request) == .failed(.requestBodyStreamExhausted))
    await #expect {
      try await site.transport.bytes(for: request)
    } throws: { ($0 as? URLError)?.code == .requestBodyStreamExhausted }
    let closed = InputStream(data: payload)
    closed.open()
    closed.close()
    request.httpBodyStream = closed
    #expect(await site.transport.end(of: request) == .failed(.requestBodyStreamExhausted))
    #expect(site.server.requests.count == 1)
    // An open one has not been read yet.
    let opened = InputStream(data: payload)
    opened.open()
    request.httpBodyStream = opened
    #expect(await site.transport.end(of: request) == .served(200, "POST 300000"))
    for isTold in [false, true] {
      request.httpBodyStream = FailingStream(isTold: isTold)
      let end = await site.transport.end(of: request)
      #expect("\(end)".contains("failedOtherwise"))
      // Foundation's own stream ends the process if it is asked for an error and says that it has none.
      #expect((end == .failedOtherwise("\(Broken())")) == isTold)
    }
  }

  @Test("that break off take the request with them")
  func brokenUpload() async throws {
    let site = try PinnedSite(handler: echo)
    let chunks = AsyncThrowingStream<Data, any Error> { continuation in
      continuation.yield(Data("half".utf8))
      continuation.finish(throwing: Broken())
    }
    let request = URLRequest(try site.url(), method: "POST")
    await #expect(throws: Broken.self) {
      try await site.transport.upload(for: request, from: chunks)
    }
    #expect(site.server.requests.isEmpty)
  }

  @Test("come down as they come, and hold the server back where nobody reads")
  func download() async throws {
    let site = try PinnedSite { request in
      request.path == "/endless"
        ? HTTPResponse(body: [UInt8](repeating: 7, count: 64 * 1024), delivery: .endless())
        : HTTPResponse(
          body: [UInt8](repeating: 7, count: 5_000_000),
          delivery: .chunked(pieceBytes: 50_000))
    }
    let (whole, response) = try await site.transport.bytes(for: URLRequest(url: site.url()))
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    var count = 0
    var chunks = 0
    for try await chunk in whole {
      count += chunk.count
      chunks += 1
      #expect(chunk.count < 1_000_000)
    }
    #expect(count == 5_000_000)
    #expect(chunks > 5)
    // An endless answer: what is read of it is little, and letting go of it ends it.
    do {
      let (endless, _) = try await site.transport.bytes(for: URLRequest(url: site.url("/endless")))
      var iterator = endless.makeAsyncIterator()
      for _ in 0..<20 { #expect(try await iterator.next() != nil) }
    }
    #expect(await site.server.waitUntilIdle())
  }

  @Test("that are cut off while they are read end with the error")
  func cut() async throws {
    let site = try PinnedSite { _ in
      HTTPResponse(
        body: [UInt8](repeating: 7, count: 900_000), delivery: .cutOff(afterBytes: 500_000))
    }
    let (bytes, _) = try await site.transport.bytes(for: URLRequest(url: site.url()))
    var count = 0
    do {
      for try await chunk in bytes { count += chunk.count }
      Issue.record("ended well")
    } catch {
      #expect((error as? URLError)?.code == .networkConnectionLost)
    }
    #expect(count <= 500_000)
  }

  @Test("end with the reader's task")
  func cancelledReader() async throws {
    let site = try PinnedSite { _ in
      HTTPResponse(body: [7], delivery: .endless(pauseMilliseconds: 20))
    }
    let request = URLRequest(url: try site.url())
    let started = Locked(false)
    let task = Task {
      let (bytes, _) = try await site.transport.bytes(for: request)
      for try await _ in bytes { started.withLock { $0 = true } }
    }
    #expect(await eventually { started.withLock { $0 } })
    task.cancel()
    do {
      try await task.value
      Issue.record("ended well")
    } catch {
      #expect((error as? URLError)?.code == .cancelled)
    }
    #expect(await site.server.waitUntilIdle())
  }

  @Test("of fifty megabytes come whole")
  func large() async throws {
    let site = try PinnedSite { _ in
      HTTPResponse(body: [UInt8](repeating: 9, count: 50_000_000))
    }
    let (body, _) = try await site.transport.data(for: URLRequest(url: site.url()))
    #expect(body.count == 50_000_000)
    #expect(body.allSatisfy { $0 == 9 })
  }
}
