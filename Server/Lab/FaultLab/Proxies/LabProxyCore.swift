import CSslPinningOpenSSL
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// The conversations of a ``LabProxy`` with its clients, one thread each.
final class LabProxyCore: Sendable {
  let acceptor: ConnectionAcceptor
  private let forger: LabForger
  private let mode: LabProxy.Mode
  private let patterns: [HostPattern]
  private let report: @Sendable (LabProxy.Connection) -> Void
  private static let patience: Int64 = 30_000
  private static let headLimit = 16_384

  init(
    _ endpoint: Endpoint, _ forger: LabForger, _ mode: LabProxy.Mode, _ patterns: [HostPattern],
    _ report: @escaping @Sendable (LabProxy.Connection) -> Void
  ) throws(SocketError) {
    (self.forger, self.mode, self.patterns, self.report) = (forger, mode, patterns, report)
    acceptor = try ConnectionAcceptor(endpoint: endpoint, limit: 128)
    acceptor.start { [self] (client, number) throws(SocketError) in
      guard let (method, target, isEmpty) = try readHead(client) else { return }
      guard method == "CONNECT" else { return try answer(method, target, client, number) }
      // Bytes before the answer would have to be put back below TLS; no real client sends any.
      guard isEmpty, let (host, port) = ProxyCore.target(target), (try? HostName(host)) != nil
      else { return try reply("400 Bad Request", to: client) }
      let visit = Visit(number: number, host: host, port: port)
      if mode == .pass || !attacks(host) { return try pass(client, visit) }
      try reply("200 Connection Established", to: client, isLast: false)
      try attack(client, visit)
    }
  }

  /// What is known of a connection before its outcome.
  private struct Visit {
    let number: Int
    let host: String
    let port: UInt16
  }

  private func tell(
    _ visit: Visit, _ outcome: LabProxy.Outcome, serverName: String? = nil
  ) {
    report(
      LabProxy.Connection(
        number: visit.number, host: visit.host, port: visit.port, serverName: serverName,
        outcome: outcome))
  }

  private func attacks(_ host: String) -> Bool {
    guard !patterns.isEmpty else { return true }
    guard let name = try? HostName(host) else { return false }
    return patterns.contains { $0.matches(name) }
  }

  // MARK: - What a client asks for

  /// The request line, and whether nothing follows the head; nil if the client left or sent something else.
  private func readHead(
    _ client: ByteStream
  ) throws(SocketError) -> (method: String, target: String, isEmpty: Bool)? {
    let deadline = Deadline.after(milliseconds: Self.patience)
    var bytes: [UInt8] = []
    while true {
      if let end = bytes.firstRange(of: [13, 10, 13, 10]) {
        let line = bytes.prefix { $0 != 13 }
        let words = String(decoding: line, as: UTF8.self).split(separator: " ")
        guard words.count == 3, words[2].hasPrefix("HTTP/1.") else {
          try reply("400 Bad Request", to: client)
          return nil
        }
        return (String(words[0]), String(words[1]), end.upperBound == bytes.endIndex)
      }
      guard bytes.count <= Self.headLimit else {
        try reply("431 Request Header Fields Too Large", to: client)
        return nil
      }
      let more = try client.read(until: deadline)
      guard !more.isEmpty else { return nil }
      bytes += more
    }
  }

  /// Hands out the root certificate. Requests in clear text for other servers were read: that is told, and they go
  /// no further.
  private func answer(
    _ method: String, _ target: String, _ client: ByteStream, _ number: Int
  ) throws(SocketError) {
    // A device whose proxy is set asks for it by the whole URL.
    if target == "/ca.cer" || target == "http://\(acceptor.endpoint)/ca.cer" {
      return try reply(
        "200 OK", type: "application/x-x509-ca-cert", body: forger.authority.root.der, to: client)
    }
    guard target.lowercased().hasPrefix("http://") else {
      return try reply("404 Not Found", body: Array("its CA is at /ca.cer\n".utf8), to: client)
    }
    let place = target.dropFirst(7).prefix { !"/?#".contains($0) }.split(separator: "@").last ?? ""
    let (host, port) = ProxyCore.target(String(place)) ?? (String(place), 80)
    if (try? HostName(host)) != nil, attacks(host) {
      tell(
        Visit(number: number, host: host, port: port), .clearText(method: LabProxy.method(method)))
    }
    try reply(
      "502 Bad Gateway", body: Array("clear text is read here and not carried\n".utf8), to: client)
  }

  private func reply(
    _ status: String, type: String = "text/plain", body: [UInt8] = [], to client: ByteStream,
    isLast: Bool = true
  ) throws(SocketError) {
    let fields =
      "Content-Type: \(type)\r\nContent-Length: \(body.count)\r\nConnection: close\r\n"
    try client.write(
      Array("HTTP/1.1 \(status)\r\n\(isLast ? fields : "")\r\n".utf8) + body,
      until: .after(milliseconds: Self.patience))
  }

  // MARK: - Servers

  private func dial(_ visit: Visit) throws(SocketError) -> ByteStream {
    guard case .success(let places) = NameResolver.askSystem(visit.host, visit.port) else {
      throw .closed(reason: "\(visit.host) has no address")
    }
    var failure = SocketError.closed(reason: "\(visit.host) has no address")
    for place in places.prefix(4) {
      do throws(SocketError) {
        return try .dial(place, stop: acceptor.stop, until: .after(milliseconds: 10_000))
      } catch { failure = error }
    }
    throw failure
  }

  private func pass(_ client: ByteStream, _ visit: Visit) throws(SocketError) {
    let server: ByteStream
    do throws(SocketError) { server = try dial(visit) } catch {
      tell(visit, .unclear(reason: "\(error)"))
      return try reply("502 Bad Gateway", to: client)
    }
    tell(visit, .passed)
    try reply("200 Connection Established", to: client, isLast: false)
    var relay = Relay(client: client, server: server, stop: acceptor.stop)
    try relay.run()
  }

  // MARK: - The attack

  private func attack(_ client: ByteStream, _ visit: Visit) throws(SocketError) {
    if mode == .interrupt {
      let first = try client.read(until: .after(milliseconds: Self.patience))
      return tell(visit, Self.clearText(first) ?? .interrupted)
    }
    let watch = HandshakeWatch()
    do throws(SocketError) {
      try deceive(client, visit, watch)
    } catch {
      if error != .stopped {
        tell(
          visit, Self.clearText(client.beginning) ?? watch.seen.refusal(error),
          serverName: watch.seen.serverName)
      }
      throw error
    }
    var first: [UInt8] = []
    var outcome: LabProxy.Outcome?
    do throws(SocketError) {
      // A client that decides after the handshake does so at once; browsers keep connections in reserve.
      first = try client.read(until: .after(milliseconds: Self.patience))
    } catch {
      if error == .stopped || error == .timeout { outcome = .unclear(reason: "nothing was sent") }
    }
    let seen = watch.seen
    tell(
      visit,
      outcome ?? (first.isEmpty ? .closed(alert: seen.received) : .letIn(sent: Self.what(first))),
      serverName: seen.serverName)
    guard !first.isEmpty else { return }
    try goOn(client, visit, first, serverName: seen.serverName)
  }

  /// Makes the handshake with the client under a forged certificate.
  private func deceive(
    _ client: ByteStream, _ visit: Visit, _ watch: HandshakeWatch
  ) throws(SocketError) {
    let context: TLSServerContext
    do throws(CertificateError) {
      context = try TLSServerContext(options: TLSServerOptions(sessionTickets: false)) {
        [forger] name in
        watch.hello(name)
        return try? forger.identity(for: name ?? visit.host)
      }
    } catch { throw .closed(reason: error.description) }
    // The context is held by the stream, and holds the watch: neither is gone before the session.
    SSL_CTX_set_alpn_select_cb(context.context.pointer, selectAnyProtocol, nil)
    SSL_CTX_set_info_callback(context.context.pointer, noteAlert)
    try client.startTLS(context) { session in
      SSL_set_accept_state(session)
      SSL_set_ex_data(session, 0, Unmanaged.passUnretained(watch).toOpaque())
    }
    try client.handshake(until: .after(milliseconds: Self.patience))
  }

  /// Carries on as if nobody stood between.
  private func goOn(
    _ client: ByteStream, _ visit: Visit, _ first: [UInt8], serverName: String?
  ) throws(SocketError) {
    let server: ByteStream
    do throws(SocketError) {
      server = try dial(visit)
      try forger.upstream.secure(
        server, serverName: serverName ?? visit.host, offering: client.protocolChosen,
        until: .after(milliseconds: Self.patience))
      try server.write(first, until: .after(milliseconds: Self.patience))
    } catch {
      return try reply("502 Bad Gateway", body: Array("\(error)\n".utf8), to: client)
    }
    var relay = Relay(client: client, server: server, stop: acceptor.stop)
    try relay.run()
  }

  /// A request in place of a hello, as `ws` sends it through a proxy: it was read.
  private static func clearText(_ bytes: [UInt8]) -> LabProxy.Outcome? {
    what(bytes).map { .clearText(method: $0) }
  }

  private static func what(_ bytes: [UInt8]) -> String? {
    if bytes.starts(with: "PRI * HTTP/2".utf8) { return "HTTP/2" }
    guard let end = bytes.prefix(16).firstIndex(of: 0x20), end > 0,
      bytes[..<end].allSatisfy({ (0x41...0x5a).contains($0) })
    else { return nil }
    return String(decoding: bytes[..<end], as: UTF8.self)
  }
}

extension LabProxy {
  /// A method as it may be printed: what a client sent may be anything.
  static func method(_ text: String) -> String {
    text.utf8.count <= 16 && text.utf8.allSatisfy { (0x41...0x5a).contains($0) } ? text : "?"
  }
}
