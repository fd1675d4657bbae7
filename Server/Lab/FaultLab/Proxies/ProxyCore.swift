import CSslPinningOpenSSL
import SslPinningPlatform
import TLSTools

/// The state that the proxy's threads share: its settings, its log and its conversations with clients.
final class ProxyCore: Sendable {
  enum Kind: Sendable {
    case transparent(upstream: Endpoint)
    case connect
  }

  struct Log {
    var tunnels: [InterceptingProxy.Tunnel] = []
    var requests: [HTTPRequest] = []
    var plaintextBytes = 0
    var handshakesCompleted = 0
    var handshakesFailed = 0
  }

  let acceptor: ConnectionAcceptor
  let log = Locked(Log())
  let forger: CertificateForger?
  private let kind: Kind
  private let nameWithoutSNI: String
  private let route: InterceptingProxy.Route
  private static let patience: Int64 = 30_000

  init(
    kind: Kind, forger: CertificateForger?, nameWithoutSNI: String, port: UInt16,
    front: TLSServerContext? = nil, route: @escaping InterceptingProxy.Route
  ) throws(SocketError) {
    self.kind = kind
    self.forger = forger
    self.nameWithoutSNI = nameWithoutSNI
    self.route = route
    acceptor = try ConnectionAcceptor(endpoint: .loopback(port), limit: 128)
    acceptor.start { [self] (client, number) throws(SocketError) in
      switch self.kind {
      case .transparent(let upstream):
        try intercept(client, number, for: self.nameWithoutSNI) { () throws(SocketError) in
          try dial(upstream)
        }
      case .connect:
        if let front {
          try client.startTLS(front) { SSL_set_accept_state($0) }
          try client.handshake(until: .after(milliseconds: Self.patience))
        }
        try answerConnect(client, number)
      }
    }
  }

  private func dial(_ endpoint: Endpoint) throws(SocketError) -> ByteStream {
    try .dial(endpoint, stop: acceptor.stop, until: .after(milliseconds: Self.patience))
  }

  private func answerConnect(_ client: ByteStream, _ number: Int) throws(SocketError) {
    var parser = RequestParser()
    guard let message = try readRequest(client, &parser) else { return }
    guard message.method == "CONNECT", let target = Self.target(message.target) else {
      return try reply(405, "Method Not Allowed", to: client)
    }
    var upstream: ByteStream?
    if let endpoint = route(target.host, target.port) { upstream = try? dial(endpoint) }
    // Bytes sent before the answer would have to be put back below TLS; no real client sends any.
    let status = upstream == nil ? 502 : parser.rest.isEmpty ? 200 : 400
    log.withLock {
      $0.tunnels.append(.init(host: target.host, port: target.port, status: status))
    }
    guard let upstream, status == 200 else {
      return try reply(status, "No Way There", to: client)
    }
    try client.write(
      Array("HTTP/1.1 200 Connection Established\r\n\r\n".utf8),
      until: .after(milliseconds: Self.patience))
    if forger == nil {
      var relay = Relay(client: client, server: upstream, stop: acceptor.stop)
      try relay.run()
    } else {
      try intercept(client, number, for: target.host) { () throws(SocketError) in upstream }
    }
  }

  /// Makes a handshake with the client, then with the server, and reads what passes.
  private func intercept(
    _ client: ByteStream, _ number: Int, for host: String,
    dial: () throws(SocketError) -> ByteStream
  ) throws(SocketError) {
    guard let forger else { return }
    var request = try deceive(client, forger, host, number)
    let server = try dial()
    try forger.upstream.secure(
      server, serverName: request.serverName ?? host, until: .after(milliseconds: Self.patience))
    var parser = RequestParser()
    var isReadable = true
    var relay = Relay(client: client, server: server, stop: acceptor.stop) { [self] bytes in
      log.withLock { $0.plaintextBytes += bytes.count }
      guard isReadable else { return }
      parser.feed(bytes)
      do throws(RequestParser.Failure) {
        while let message = try parser.next() {
          request.replace(with: message)
          log.withLock { $0.requests.append(request) }
        }
      } catch {
        // Not HTTP/1.1, or no longer: still count the bytes.
        isReadable = false
      }
    }
    try relay.run()
  }

  /// - Returns: an empty request that describes the connection.
  private func deceive(
    _ client: ByteStream, _ forger: CertificateForger, _ host: String, _ number: Int
  ) throws(SocketError) -> HTTPRequest {
    do throws(SocketError) {
      let context: TLSServerContext
      do throws(CertificateError) {
        context = try forger.context(fallbackName: host)
      } catch { throw .closed(reason: error.description) }
      try client.startTLS(context) { SSL_set_accept_state($0) }
      try client.handshake(until: .after(milliseconds: Self.patience))
    } catch {
      log.withLock { $0.handshakesFailed += 1 }
      throw error
    }
    log.withLock { $0.handshakesCompleted += 1 }
    var request = HTTPRequest(
      .init(method: "", target: "", version: "", headers: []), connection: number)
    if let session = client.session { request.describe(session) }
    return request
  }

  private func readRequest(
    _ client: ByteStream, _ parser: inout RequestParser
  ) throws(SocketError) -> RequestParser.Message? {
    let deadline = Deadline.after(milliseconds: Self.patience)
    while true {
      do throws(RequestParser.Failure) {
        if let message = try parser.next() { return message }
      } catch {
        try reply(400, "Bad Request", to: client)
        return nil
      }
      let bytes = try client.read(until: deadline)
      guard !bytes.isEmpty else { return nil }
      parser.feed(bytes)
    }
  }

  private func reply(_ status: Int, _ reason: String, to client: ByteStream) throws(SocketError) {
    try client.write(
      Array("HTTP/1.1 \(status) \(reason)\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8),
      until: .after(milliseconds: Self.patience))
  }

  /// `host:port` or `[v6]:port` (RFC 9110 section 9.3.6).
  static func target(_ text: String) -> (host: String, port: UInt16)? {
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...])
    else { return nil }
    var host = text[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
    return host.isEmpty ? nil : (String(host), port)
  }
}
