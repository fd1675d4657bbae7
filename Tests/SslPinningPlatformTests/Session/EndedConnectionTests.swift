import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import TLSTools
import TestSupport
import Testing

/// A server ends a connection by a close_notify, and then the end of TCP, at once or later (RFC 8446 section 6.1). libcurl 7.88 takes it
/// for alive until that is read.
@Suite("Requests after the end of a kept connection", .timeLimit(.minutes(3)))
struct EndedConnectionTests {
  private let site: PinnedSite

  init() throws { site = try PinnedSite() }

  /// How a request is made.
  enum Road: CaseIterable { case session, data, upload }

  private struct Caller {
    let road: Road
    let site: PinnedSite
    let session: URLSession
    let port: UInt16

    func send(_ method: String, _ path: String = "/") async throws -> String {
      var request = URLRequest(url: try site.url(path, port: port), timeoutInterval: 20)
      request.httpMethod = method
      let data =
        switch road {
        case .session: try await session.data(for: request).0
        case .data: try await site.transport.data(for: request).0
        case .upload: try await site.transport.upload(for: request, from: Data("body".utf8)).0
        }
      return String(decoding: data, as: UTF8.self)
    }

    /// Whether the server has ended every connection of this process to it: none is as it was, with nothing to read.
    var isEnded: Bool {
      let digits = String(port, radix: 16, uppercase: true)
      let place = "0100007F:" + String(repeating: "0", count: 4 - digits.count) + digits
      guard let table = try? socketTable() else { return false }
      return !table.contains { fields in
        fields.count > 4 && fields[2] == place && fields[3] == "01"
          && fields[4].hasSuffix(":00000000")
      }
    }
  }

  private func caller(_ road: Road, at port: UInt16) -> Caller {
    Caller(road: road, site: site, session: site.session(), port: port)
  }

  @Test(
    "are sent, and once, over another one that is reloaded or had nothing to do",
    arguments: Road.allCases, ["GET", "POST", "DELETE"])
  func nginx(road: Road, method: String) async throws {
    let nginx = try await Nginx.start(
      Nginx.Site(
        site.identity, name: "localhost", http2: false,
        directives: """
          keepalive_timeout 200ms;
          location / { return 200 $request_method; }
          """))
    let caller = caller(road, at: nginx.port)
    for _ in 0..<3 {
      #expect(try await caller.send(method) == method)
      #expect(await eventually { caller.isEnded })
    }
    let accesses = try await nginx.accesses(waitingFor: 3)
    #expect(accesses.map(\.status) == [200, 200, 200])
    try await nginx.stop()
  }

  @Test("take no more connections than the app allows to a host")
  func limit() async throws {
    let gate = try EventSignal()
    let upstream = try LocalHTTPServer { request in
      // why: until the test lets it go on
      if request.path == "/slow" { _ = gate.sleep(milliseconds: 60_000) }
      return .text("ok")
    }
    let nginx = try await Nginx.start(
      Nginx.Site(
        site.identity, name: "localhost", http2: false,
        directives: """
          location = /end { keepalive_timeout 100ms; return 200; }
          location / { proxy_pass http://127.0.0.1:\(upstream.port); }
          """))
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpMaximumConnectionsPerHost = 1
    let session = site.session(configuration)
    let caller = Caller(road: .session, site: site, session: session, port: nginx.port)
    #expect(try await caller.send("GET", "/end") == "")
    #expect(await eventually { caller.isEnded })
    let url = try site.url("/slow", port: nginx.port)
    let slow = Task { try await session.data(from: url).0 }
    #expect(await eventually { upstream.requests.count == 1 })
    session.dataTask(with: try site.url("/behind", port: nginx.port)).resume()
    // Another host's request that begins later: once it is served, the one before it has its connection, or waits.
    _ = try await session.data(from: site.url("/other", host: "a.localhost", port: nginx.port))
    gate.raise()
    #expect(try await slow.value == Data("ok".utf8))
    let accesses = try await nginx.accesses(waitingFor: 4)
    #expect(accesses.map(\.status) == [200, 200, 200, 200])
    func connections(_ target: String) -> [Int] {
      accesses.filter { $0.target == target }.map(\.connection)
    }
    #expect(connections("/behind") == connections("/slow"))
    #expect(connections("/slow") != connections("/end"))
    try await nginx.stop()
  }

  /// As asyncio does, which waits half a minute for the other side's close_notify.
  @Test(
    "are sent, and once, where TCP stays open behind the close_notify", arguments: Road.allCases)
  func openBehind(road: Road) async throws {
    let server = try await PythonServer(site.identity)
    let caller = caller(road, at: server.port)
    for number in 1...3 {
      #expect(try await caller.send("POST", "/end") == "ok")
      #expect(await eventually { server.log.count { $0 == "closed" } == number })
    }
    #expect(server.log.count { $0 == "/end" } == 3)
    await server.stop()
  }

  /// OpenSSL has read it with the answer, so the socket tells nothing of it.
  @Test(
    "are sent, and once, over another one where a record had more than the end of the answer",
    arguments: Road.allCases)
  func moreInRecord(road: Road) async throws {
    let server = try await PythonServer(site.identity)
    let caller = caller(road, at: server.port)
    for _ in 0..<2 {
      #expect(try await caller.send("POST", "/more") == "ok")
      #expect(try await caller.send("POST", "/next") == "ok")
    }
    #expect(server.log == ["/more", "/next", "/more", "/next"])
    await server.stop()
  }

  @Test(
    "are not sent again where their own connection ends, whatever another one that is over says",
    arguments: Road.allCases)
  func endedUnderRequest(road: Road) async throws {
    let server = try await PythonServer(site.identity)
    let caller = caller(road, at: server.port)
    async let one = caller.send("POST", "/both")
    async let other = caller.send("POST", "/both")
    #expect(try await [one, other] == ["ok", "ok"])
    await #expect(throws: URLError.self) { try await caller.send("POST", "/die") }
    #expect(server.log.count { $0 == "/die" } == 1)
    await server.stop()
  }

  /// libcurl begins a body anew before it repeats a request. Foundation asks the delegate then, and ends the process if it has a stream
  /// in place of data.
  @Test("end no process whose delegate has a stream for every body")
  func streamForData() async {
    await #expect(processExitsWith: .success) {
      final class Delegate: NSObject, URLSessionTaskDelegate {
        func urlSession(
          _ session: URLSession, task: URLSessionTask,
          needNewBodyStream completionHandler: @escaping (InputStream?) -> Void
        ) { completionHandler(InputStream(data: Data("other".utf8))) }
      }
      let site = try PinnedSite()
      let server = try await PythonServer(site.identity)
      let session = site.session(delegate: Delegate())
      @Sendable func isServed(_ path: String) async throws -> Bool {
        var request = URLRequest(url: try site.url(path, port: server.port), timeoutInterval: 20)
        request.httpMethod = "POST"
        request.httpBody = Data("body".utf8)
        do { return try await session.data(for: request).0 == Data("ok".utf8) } catch is URLError {
          return false
        }
      }
      async let one = isServed("/both")
      async let other = isServed("/both")
      guard try await (one, other) == (true, true), try await !isServed("/die"),
        server.log.count(where: { $0 == "/die" }) == 1
      else { exit(3) }
      await server.stop()
    }
  }
}

extension EndedConnectionTests {
  /// Foundation reads the file on a queue of its own, and does not look whether the transfer still is.
  @Test("end no process that uploads a file over them")
  func resetUpload() async {
    await #expect(processExitsWith: .success) {
      let site = try PinnedSite()
      let server = try await PythonServer(site.identity)
      let session = site.session()
      let directory = try TemporaryDirectory()
      try Data(count: 2_000_000).write(to: directory.file("upload"))
      let (file, url) = (directory.file("upload"), try site.url("/reset", port: server.port))
      // Several at once: the queue that reads files must be behind.
      for _ in 0..<8 {
        await withTaskGroup(of: Void.self) { group in
          for _ in 0..<8 {
            group.addTask {
              var request = URLRequest(url: url, timeoutInterval: 20)
              request.httpMethod = "POST"
              do {
                _ = try await session.upload(for: request, fromFile: file)
                exit(3)
              } catch {}
            }
          }
        }
      }
      guard server.log.count(where: { $0 == "/reset" }) >= 64 else { exit(4) }
      await server.stop()
    }
  }
}

/// A server whose connections end by a close_notify while TCP stays open.
private final class PythonServer: Sendable {
  private let process: ChildProcess
  private let file: URL
  private let directory: TemporaryDirectory
  let port: UInt16

  private static let script = """
    import asyncio, os, ssl, sys
    parent = os.getppid()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    log = open(sys.argv[3], 'a', 1)
    writers, both = [], []
    async def serve(reader, writer):
        writers.append(writer)
        while True:
            try: head = await reader.readuntil(b'\\r\\n\\r\\n')
            except Exception: return writer.close()
            fields = [line.split(b':', 1) for line in head.split(b'\\r\\n')[1:] if b':' in line]
            length = [int(value) for name, value in fields if name.lower() == b'content-length']
            path = head.split()[1].decode()
            log.write(path + '\\n')
            if path == '/reset':
                await reader.readexactly(1000)
                return writer.transport.abort()
            await reader.readexactly(length[0] if length else 0)
            if path == '/both':
                both.append(path)
                while len(both) < 2: await asyncio.sleep(0.005)
            if path == '/die':
                for other in writers:
                    if other is not writer: other.close()
                await asyncio.sleep(0.2)
                return writer.close()
            answer = b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n'
            if path == '/more':
                # A record each: the head, and then its body with an answer that nobody asked for.
                writer.write(answer)
                writer.write(b'ok' + answer + b'no')
            else: writer.write(answer + b'ok')
            await writer.drain()
            if path == '/end':
                writer.close()
                # Until the close_notify has gone.
                await asyncio.sleep(0.05)
                return log.write('closed\\n')
    async def main():
        server = await asyncio.start_server(serve, '127.0.0.1', 0, ssl=context)
        print('listening on', server.sockets[0].getsockname()[1])
        print('it listens', flush=True)
        while os.getppid() == parent: await asyncio.sleep(0.5)
    asyncio.run(main())
    """

  init(_ identity: ServerIdentity) async throws {
    directory = try TemporaryDirectory()
    file = directory.file("log")
    try directory.write(identity.certificateChainPEM, to: "chain.pem")
    try directory.write(identity.keyPEM, to: "key.pem")
    process = try ChildProcess(
      "python3",
      ["-c", Self.script, directory.path("chain.pem"), directory.path("key.pem"), file.path])
    try await process.waitForOutput(containing: "it listens")
    let said = process.stdout.firstMatch(of: /listening on (\d+)/)?.output.1
    port = try #require(said.flatMap { UInt16($0) })
  }

  /// The paths of all requests, and "closed" for each connection that is ended after its answer.
  var log: [String] {
    let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
    return text.split(separator: "\n").map(String.init)
  }

  func stop() async { _ = try? await process.terminate(seconds: 10) }
}
