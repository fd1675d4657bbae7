import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

@Suite("What an app does with a pinned URLSession")
struct PinnedTaskTests {
  @Test("uploads a body, and follows its progress")
  func upload() async throws {
    let site = try PinnedSite { .text("\($0.method) \($0.body.count)") }
    var request = URLRequest(url: try site.url())
    request.httpMethod = "POST"
    let body = Data(repeating: 65, count: 300_000)
    let (answer, _) = try await site.session().upload(for: request, from: body)
    #expect(String(decoding: answer, as: UTF8.self) == "POST 300000")
    let delegate = RecordingDelegate()
    let session = site.session(delegate: delegate)
    let record = await delegate.run(session.uploadTask(with: request, from: body))
    #expect(String(decoding: record.body, as: UTF8.self) == "POST 300000")
    #expect(record.sent == 300_000)
    #expect(record.error == nil)
  }

  @Test(
    "sends the length that its body has, whatever the app says: the rest would be another request")
  func wrongLength() async throws {
    let site = try PinnedSite { .text("\($0.method) \($0.path) \($0.body.count)") }
    let session = site.session()
    for (method, body) in [("POST", "12345GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"), ("GET", "")]
    {
      var request = URLRequest(url: try site.url("/first"))
      request.httpMethod = method
      if !body.isEmpty { request.httpBody = Data(body.utf8) }
      request.setValue("5", forHTTPHeaderField: "content-length")
      for _ in 0..<3 {
        let (answer, _) = try await session.data(for: request)
        #expect(String(decoding: answer, as: UTF8.self) == "\(method) /first \(body.utf8.count)")
      }
    }
    #expect(!site.server.requests.contains { $0.path == "/smuggled" })
  }

  @Test("uploads a stream")
  func stream() async throws {
    let site = try PinnedSite { .text("\($0.body.count)") }
    var request = URLRequest(url: try site.url())
    request.httpMethod = "PUT"
    let session = site.session()
    // Also if the app says a length, which a server takes none of beside chunks, or a coding of its own.
    for (length, coding) in [
      (nil, nil), ("70000", nil), ("5", nil), ("5", "identity"), ("5", "gzip, chunked"),
      ("5", "chunked "), (nil, "gzip"), ("5", ""),
    ] {
      request.httpBodyStream = InputStream(data: Data(repeating: 66, count: 70_000))
      request.setValue(length, forHTTPHeaderField: "Content-Length")
      request.setValue(coding, forHTTPHeaderField: "Transfer-Encoding")
      let (answer, _) = try await session.data(for: request)
      #expect(String(decoding: answer, as: UTF8.self) == "70000")
    }
    #expect(site.server.requests.allSatisfy { $0.header("Content-Length") == nil })
  }

  @Test("downloads into a file, and finds the verdict where that is refused")
  func download() async throws {
    let site = try PinnedSite { _ in HTTPResponse(body: [UInt8](repeating: 7, count: 200_000)) }
    let (file, _) = try await site.session().download(from: site.url())
    #expect(try Data(contentsOf: file).count == 200_000)
    try FileManager.default.removeItem(at: file)
    let delegate = RecordingDelegate()
    let record = try await delegate.run(
      site.session(delegate: delegate).downloadTask(with: site.url()))
    #expect(record.body.count == 200_000)
    try site.judge.pin(["localhost": site.rogueIdentity()])
    let refused = RecordingDelegate()
    let ended = try await refused.run(
      site.session(delegate: refused).downloadTask(with: site.url()))
    let error = try #require(ended.error)
    #expect(site.transport.refusal(for: error)?.outcome == .mismatch(.leaf))
    #expect(!ended.events.contains("downloaded"))
  }

  @Test("streams to a delegate, and finds the verdict in its completion")
  func streamingDelegate() async throws {
    let site = try PinnedSite { _ in
      HTTPResponse(
        body: [UInt8](repeating: 1, count: 60_000),
        delivery: .chunked(pieceBytes: 10_000, pauseMilliseconds: 20))
    }
    let delegate = RecordingDelegate()
    let session = site.session(delegate: delegate)
    #expect(session.delegate === delegate)
    let record = await delegate.run(session.dataTask(with: try site.url()))
    #expect(record.body.count == 60_000)
    #expect(record.chunks > 1)
    #expect(record.events == ["response 200"])
    try site.judge.pin(["localhost": site.rogueIdentity()])
    let refused = RecordingDelegate()
    let ended = try await refused.run(site.session(delegate: refused).dataTask(with: site.url()))
    #expect(ended.events.isEmpty)
    #expect(site.transport.refusal(for: try #require(ended.error))?.rule == "leaf-pin")
  }

  @Test("finds the verdict in a completion handler and in the task's own error")
  func completionHandler() async throws {
    let site = try PinnedSite()
    try site.judge.pin(["localhost": site.rogueIdentity()])
    let session = site.session()
    let url = try site.url()
    let error: (any Error)? = await withCheckedContinuation { continuation in
      session.dataTask(with: url) { continuation.resume(returning: $2) }.resume()
    }
    #expect(site.transport.refusal(for: try #require(error))?.rule == "leaf-pin")
    // What an alert shows: the verdict in words, and when.
    let text = try #require(error).localizedDescription
    #expect(
      text.wholeMatch(
        of: /refused localhost: the server's key is not pinned \(2[-0-9]+T[:.0-9]+Z\)/) != nil,
      "\(text)")
    let delegate = RecordingDelegate()
    let task = site.session(delegate: delegate).dataTask(with: url)
    _ = await delegate.run(task)
    #expect(site.transport.refusal(for: try #require(task.error))?.rule == "leaf-pin")
  }

  @Test("answers a 401 challenge with the app's credential, on a pinned connection")
  func challenge() async throws {
    let site = try PinnedSite { request in
      guard request.header("Authorization") == "Basic dXNlcjpwYXNz" else {
        return HTTPResponse(
          status: 401, headers: [HTTPField("WWW-Authenticate", "Basic realm=\"r\"")])
      }
      return .text("secret")
    }
    let delegate = RecordingDelegate(
      credential: URLCredential(user: "user", password: "pass", persistence: .none))
    let record = try await delegate.run(site.session(delegate: delegate).dataTask(with: site.url()))
    #expect(String(decoding: record.body, as: UTF8.self) == "secret")
    #expect(record.events.contains("challenge NSURLAuthenticationMethodHTTPBasic"))
  }

  @Test(
    "keeps cookies between requests", arguments: ["Path=/; Secure", "Domain=localhost; Path=/"])
  func cookies(attributes: String) async throws {
    let site = try PinnedSite { request in
      HTTPResponse(
        headers: [HTTPField("Set-Cookie", "id=42; \(attributes)")],
        body: Array((request.header("Cookie") ?? "none").utf8))
    }
    let session = site.session()
    let first = try await session.data(from: site.url()).0
    #expect(String(decoding: first, as: UTF8.self) == "none")
    let second = try await session.data(from: site.url()).0
    #expect(String(decoding: second, as: UTF8.self) == "id=42")
  }

  @Test("keeps the app's headers, time-out and connection limit")
  func configuration() async throws {
    let site = try PinnedSite { .text($0.header("X-App") ?? "none") }
    let configuration = URLSessionConfiguration.default
    configuration.httpAdditionalHeaders = ["X-App": "mine"]
    configuration.timeoutIntervalForRequest = 7
    configuration.httpMaximumConnectionsPerHost = 2
    configuration.connectionProxyDictionary = ["kind": "none"]
    let session = site.session(configuration)
    #expect(session.configuration.connectionProxyDictionary?["kind"] as? String == "none")
    #expect(session.configuration.timeoutIntervalForRequest == 7)
    #expect(session.configuration.httpMaximumConnectionsPerHost == 2)
    let answer = try await session.data(from: site.url()).0
    #expect(String(decoding: answer, as: UTF8.self) == "mine")
  }

  @Test("never answers from a cache that an unpinned session filled")
  func cache() async throws {
    let site = try PinnedSite()
    let url = try site.url("/cached")
    let request = URLRequest(url: url)
    let response = try #require(
      HTTPURLResponse(
        url: url, statusCode: 200, httpVersion: "HTTP/1.1",
        headerFields: ["Cache-Control": "max-age=600"]))
    let poison = CachedURLResponse(
      response: response, data: Data("poison".utf8), storagePolicy: .allowed)
    let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
    cache.storeCachedResponse(poison, for: request)
    URLCache.shared.storeCachedResponse(poison, for: request)
    defer { URLCache.shared.removeCachedResponse(for: request) }
    let configuration = URLSessionConfiguration.default
    configuration.urlCache = cache
    configuration.requestCachePolicy = .returnCacheDataElseLoad
    // The control: an ordinary session hands the poison out.
    let plain = try await URLSession(configuration: configuration).data(for: request).0
    #expect(String(decoding: plain, as: UTF8.self) == "poison")
    for configuration in [configuration, .default, .ephemeral] {
      let session = site.session(configuration)
      session.configuration.urlCache = cache
      let body = try await session.data(for: request).0
      #expect(String(decoding: body, as: UTF8.self) == "hello")
    }
  }

  @Test("never hands a request to an app's protocol class, which would carry it past the pins")
  func protocolClasses() async throws {
    let site = try PinnedSite()
    let url = try site.url()
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = [ForgingProtocol.self]
    // The control: an ordinary session is answered by the class.
    let plain = try await URLSession(configuration: configuration).data(from: url).0
    #expect(String(decoding: plain, as: UTF8.self) == "forged")
    let session = site.session(configuration)
    session.configuration.protocolClasses = [ForgingProtocol.self]
    let body = try await session.data(from: url).0
    #expect(String(decoding: body, as: UTF8.self) == "hello")
  }

  @Test("refuses WebSockets: they are not pinned, so they are not made")
  func webSocket() async throws {
    let site = try PinnedSite()
    let task = site.session().webSocketTask(
      with: try #require(URL(string: "wss://localhost:\(site.server.port)/")))
    task.resume()
    await #expect(throws: (any Error).self) { try await task.receive() }
    #expect(site.server.counts.applicationBytesReceived == 0)
  }
}

/// Answers every request itself.
private final class ForgingProtocol: URLProtocol {
  override class func canInit(with request: URLRequest) -> Bool { true }
  override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
  override func stopLoading() {}

  override func startLoading() {
    guard let url = request.url,
      let response = HTTPURLResponse(
        url: url, statusCode: 200, httpVersion: nil, headerFields: nil)
    else { return }
    client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
    client?.urlProtocol(self, didLoad: Data("forged".utf8))
    client?.urlProtocolDidFinishLoading(self)
  }
}
