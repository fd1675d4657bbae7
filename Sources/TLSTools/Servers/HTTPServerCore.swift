import COpenSSL
import Foundation

/// The listening socket, threads, log and counters behind the local servers.
///
/// One thread accepts, one serves each connection, at most `connectionLimit` at a time. The threads
/// hold this object, not the public server, so a server that is dropped stops itself.
final class HTTPServerCore: Sendable {
  /// Counters since the start, safe to read at any time.
  struct Log {
    var requests: [HTTPRequest] = []
    var counts = LocalHTTPServer.Counts()
  }

  private struct Open {
    let socket: Socket
    var isBusy: Bool
    var closesWhenIdle = false
  }

  private struct State {
    var open: [Int: Open] = [:]
    var log = Log()
    var isStopped = false
  }

  let endpoint: Endpoint
  private let listener: Socket
  private let stop: StopSignal
  private let threads = WorkerThreads()
  private let state = Guarded(State())
  private let handler: @Sendable (HTTPRequest) -> HTTPResponse
  private let tls: Guarded<TLSServerContext?>
  private let connectionLimit: Int
  private let keepAliveMilliseconds: Int64

  init(
    endpoint: Endpoint, tls: TLSServerContext?, connectionLimit: Int, keepAliveMilliseconds: Int64,
    handler: @escaping @Sendable (HTTPRequest) -> HTTPResponse
  ) throws(SocketError) {
    stop = try StopSignal()
    (listener, self.endpoint) = try Socket.listen(on: endpoint)
    self.tls = Guarded(tls)
    self.handler = handler
    self.connectionLimit = connectionLimit
    self.keepAliveMilliseconds = keepAliveMilliseconds
    threads.start("local server") { [self] in acceptConnections() }
  }

  var log: Log { state.withLock { $0.log } }

  /// Whether no connection is in a handshake or in a request.
  var isIdle: Bool { state.withLock { !$0.open.values.contains { $0.isBusy } } }

  func clearLog() { state.withLock { $0.log = Log() } }

  func replaceContext(_ context: TLSServerContext, keepingSessions: Bool) {
    tls.withLock {
      if keepingSessions, let old = $0 { context.shareTicketKeys(of: old) }
      $0 = context
    }
  }

  /// Ends idle connections now and the others after their answer.
  func closeConnections() {
    state.withLock { state in
      for (number, connection) in state.open {
        state.open[number]?.closesWhenIdle = true
        if !connection.isBusy { connection.socket.shutdown() }
      }
    }
  }

  func shutDown() {
    let first = state.withLock { state in
      defer { state.isStopped = true }
      return !state.isStopped
    }
    guard first else { return }
    stop.raise()
    threads.wait(seconds: 10)
    listener.close()
  }

  private func acceptConnections() {
    var number = 0
    while true {
      var watched = [
        pollfd(fd: listener.descriptor, events: Int16(POLLIN), revents: 0),
        pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0),
      ]
      _ = poll(&watched, 2, -1)
      if stop.isRaised { return }
      do throws(SocketError) {
        guard let socket = try listener.accept() else { continue }
        number += 1
        admit(socket, number)
      } catch {
        // Out of descriptors: the connection still waits, so look again a little later.
        if !stop.sleep(milliseconds: 20) { return }
      }
    }
  }

  private func admit(_ socket: Socket, _ number: Int) {
    let admitted = state.withLock { state in
      guard state.open.count < connectionLimit else {
        state.log.counts.connectionsTurnedAway += 1
        return false
      }
      state.log.counts.connections += 1
      state.open[number] = Open(socket: socket, isBusy: true)
      return true
    }
    guard admitted else { return socket.close() }
    threads.start("local server \(number)") { [self] in
      let stream = ByteStream(socket, stop: stop)
      do throws(SocketError) {
        if let context = tls.withLock({ $0 }) { try secure(stream, context) }
        try serve(stream, number)
      } catch {
        // A client that leaves is its own affair; what was received is in the log.
      }
      stream.finishWriting()
      socket.close()
      state.withLock { _ = $0.open.removeValue(forKey: number) }
    }
  }

  private func secure(_ stream: ByteStream, _ context: TLSServerContext) throws(SocketError) {
    do throws(SocketError) {
      try stream.startTLS(context) { SSL_set_accept_state($0) }
      try stream.handshake(until: .after(milliseconds: 30_000))
    } catch {
      state.withLock {
        $0.log.counts.handshakesFailed += 1
        $0.log.counts.lastHandshakeFailure = error.description
      }
      throw error
    }
    let resumed = stream.session.map { SSL_session_reused($0) == 1 } ?? false
    state.withLock {
      $0.log.counts.handshakesCompleted += 1
      if resumed { $0.log.counts.handshakesResumed += 1 }
    }
  }

  private func serve(_ stream: ByteStream, _ number: Int) throws(SocketError) {
    var parser = RequestParser()
    while true {
      guard let message = try nextMessage(stream, &parser, number) else { return }
      var request = HTTPRequest(message, connection: number)
      if let session = stream.session { request.describe(session) }
      state.withLock { $0.log.requests.append(request) }
      let response = handler(request)
      guard stop.sleep(milliseconds: response.delayMilliseconds) else { throw .stopped }
      let mayKeep = message.keepsAlive && !response.closesConnection && !mustClose(number)
      let writer = ResponseWriter(stream: stream, stop: stop)
      guard try writer.send(response, to: message.method, keepsAlive: mayKeep), mayKeep else {
        return
      }
    }
  }

  private func mustClose(_ number: Int) -> Bool {
    state.withLock { $0.open[number]?.closesWhenIdle ?? true }
  }

  private func nextMessage(
    _ stream: ByteStream, _ parser: inout RequestParser, _ number: Int
  ) throws(SocketError) -> RequestParser.Message? {
    while true {
      let message: RequestParser.Message?
      do throws(RequestParser.Failure) { message = try parser.next() } catch {
        let writer = ResponseWriter(stream: stream, stop: stop)
        let status = error == .bodyTooLarge ? 413 : error == .headTooLarge ? 431 : 400
        _ = try writer.send(.text("\(error)\n", status: status), to: "GET", keepsAlive: false)
        return nil
      }
      if let message { return message }
      if parser.takeExpectation() {
        try stream.write(
          Array("HTTP/1.1 100 Continue\r\n\r\n".utf8), until: .after(milliseconds: 30_000))
      }
      let mayWait = state.withLock { state in
        let closes = state.open[number]?.closesWhenIdle ?? true
        state.open[number]?.isBusy = parser.isInside
        return parser.isInside || !closes
      }
      guard mayWait else { return nil }
      let bytes = try stream.read(until: .after(milliseconds: keepAliveMilliseconds))
      guard !bytes.isEmpty else { return nil }
      state.withLock {
        $0.open[number]?.isBusy = true
        $0.log.counts.applicationBytesReceived += bytes.count
      }
      parser.feed(bytes)
    }
  }
}

extension HTTPRequest {
  init(_ message: RequestParser.Message, connection: Int) {
    self.init(
      method: message.method, target: message.target, headers: message.headers,
      body: message.body, connection: connection, isResumed: false, tlsVersion: nil,
      serverName: nil)
  }

  mutating func describe(_ session: OpaquePointer) {
    isResumed = SSL_session_reused(session) == 1
    tlsVersion = TLSVersion(of: session)
    serverName = SSL_get_servername(session, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
  }
}
