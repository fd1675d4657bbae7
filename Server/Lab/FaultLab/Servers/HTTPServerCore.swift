import CSslPinningOpenSSL
import Foundation
import SslPinningPlatform
import TLSTools

/// The log, the counters and the conversations of a local server.
///
/// The acceptor's threads hold this object and not the public server, so that a server stops when it is
/// released.
final class HTTPServerCore: Sendable {
  /// What happened since the start.
  struct Log {
    var requests: [HTTPRequest] = []
    var counts = LocalHTTPServer.Counts()
  }

  private struct Open {
    var isBusy = true
    var closesWhenIdle = false
  }

  private struct State {
    var open: [Int: Open] = [:]
    var log = Log()
  }

  private let acceptor: ConnectionAcceptor
  private let state = Locked(State())
  private let handler: @Sendable (HTTPRequest) -> HTTPResponse
  private let tls: Locked<TLSServerContext?>
  private let keepAliveMilliseconds: Int64

  init(
    endpoint: Endpoint, tls: TLSServerContext?, connectionLimit: Int, keepAliveMilliseconds: Int64,
    handler: @escaping @Sendable (HTTPRequest) -> HTTPResponse
  ) throws(SocketError) {
    acceptor = try ConnectionAcceptor(endpoint: endpoint, limit: connectionLimit)
    self.tls = Locked(tls)
    self.handler = handler
    self.keepAliveMilliseconds = keepAliveMilliseconds
    acceptor.start(
      turnAway: { [self] in state.withLock { $0.log.counts.connectionsTurnedAway += 1 } },
      serve: { [self] (stream, number) throws(SocketError) in
        state.withLock {
          $0.log.counts.connections += 1
          $0.open[number] = Open()
        }
        defer { state.withLock { _ = $0.open.removeValue(forKey: number) } }
        if let context = self.tls.withLock({ $0 }) { try secure(stream, context) }
        try serve(stream, number)
      })
  }

  var endpoint: Endpoint { acceptor.endpoint }

  var log: Log { state.withLock { $0.log } }

  /// Whether no connection is in the middle of a handshake or request.
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
        if !connection.isBusy { acceptor.end(number) }
      }
    }
  }

  func shutDown() { acceptor.shutDown() }

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
      guard acceptor.stop.sleep(milliseconds: response.delayMilliseconds) else { throw .stopped }
      let mayKeep = message.keepsAlive && !response.closesConnection && !mustClose(number)
      let writer = ResponseWriter(stream: stream, stop: acceptor.stop)
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
        let writer = ResponseWriter(stream: stream, stop: acceptor.stop)
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

  /// Copies the message and keeps what is known about the connection.
  mutating func replace(with message: RequestParser.Message) {
    (method, target) = (message.method, message.target)
    (headers, body) = (message.headers, message.body)
  }

  mutating func describe(_ session: OpaquePointer) {
    isResumed = SSL_session_reused(session) == 1
    tlsVersion = TLSVersion(of: session)
    serverName = SSL_get_servername(session, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
  }
}
