import CSslPinningOpenSSL
import CSslPinningShims
import Foundation
import SslPinningPlatform

/// One connection in progress, directly or through a proxy's tunnel: a state machine that its loop
/// advances whenever the socket is ready or a time is up. It never blocks.
final class ProbeSession {
  /// A proxy to dial instead of the server.
  struct Tunnel {
    /// The `host:port` to ask it for.
    let target: String
    let host: String
    let port: UInt16
    /// How it proves its identity; `nil`: clear text.
    let trust: ProxyTrust?
    /// The address to ask it for; `nil`: whichever it takes.
    let address: Endpoint?

    /// What it is asked (RFC 9110 section 9.3.6).
    var request: String {
      let field = address.map { "\(TunnelAddress.field): \($0.address)\r\n" } ?? ""
      return "CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\n\(field)\r\n"
    }
  }

  struct Plan {
    /// Sent as SNI, unless it is an address.
    let host: String
    /// `nil`: dial the server itself.
    let tunnel: Tunnel?
    let limits: ProbeLimits
    /// For the whole connection.
    let deadline: Deadline
    /// The kind of key that is asked for; `nil` for whatever the server chooses.
    var kind: CertificateKeyKind?
  }

  /// The result of one step.
  enum Progress {
    case waits
    /// The handshake is complete; the caller must evaluate OpenSSL's session before this one goes away.
    case shook(OpaquePointer, Endpoint)
    case failed(ProbeError)
  }

  private enum Phase {
    case connecting
    /// In the TLS handshake with the proxy itself.
    case securing(Tunnel, ProxyTrust)
    case asking(unsent: ArraySlice<UInt8>, TunnelAnswer)
    case handshaking
  }

  private let plan: Plan
  private let client: ProbeClient
  private let signal: EventSignal
  private let watch: (Int32) -> Bool
  private var phase = Phase.connecting
  private var stream: ByteStream?
  private var endpoint = Endpoint(address: "", port: 0)
  private var remaining: ArraySlice<Endpoint>
  private var failure: ProbeError?

  private let begun = ContinuousClock.now
  /// For how many milliseconds it has gone on.
  var duration: Int64 { max(1, Int64(begun.duration(to: .now) / .milliseconds(1))) }
  /// The address that a proxy said it dialled.
  private(set) var dialledThere: String?

  /// Until when the present phase may last.
  private(set) var until: Deadline
  /// When the loop checks it next without an event.
  var alarm: Deadline?

  /// - Parameters:
  ///   - candidates: where to dial, in turn, until one answers.
  ///   - watch: registers a socket's events for this session; false if that fails.
  init(
    _ plan: Plan, candidates: [Endpoint], client: ProbeClient, signal: EventSignal,
    watch: @escaping (Int32) -> Bool
  ) {
    self.plan = plan
    self.client = client
    self.signal = signal
    self.watch = watch
    remaining = candidates[...]
    until = plan.deadline
  }

  private var stage: ProbeError.Stage {
    switch phase {
    case .connecting: .connect
    case .securing, .asking: .tunnel
    case .handshaking: .handshake
    }
  }

  /// Whether the server or the proxy caused this failure.
  func blame(for error: ProbeError) -> ProbeBlame {
    guard plan.tunnel != nil else { return .server }
    switch (phase, error) {
    // Many proxies say that a tunnel is there before it is.
    case (.handshaking, .timeout): return .proxyOrServer
    case (.handshaking, _), (_, .local), (_, .cancelled): return .server
    // A proxy that answers 5xx works, but cannot reach the server; one that answers 403 may not ask it.
    case (.asking, .proxy(.refused(status: 500...))), (.asking, .proxy(.refused(status: 403))):
      return .server
    case (.asking, .timeout): return .proxyOrServer
    case (.connecting, _), (.securing, _), (.asking, _): return .proxy
    }
  }

  /// Dials the first candidate.
  func start() -> Progress { connectToNext() }

  /// Ends the phase if its time is up.
  func expire() -> Progress {
    guard until.hasPassed else { return .waits }
    guard case .connecting = phase, !plan.deadline.hasPassed else {
      return .failed(.timeout(stage))
    }
    note(.timeout(.connect))
    return connectToNext()
  }

  /// Handles an event on the socket.
  func advance() -> Progress {
    guard let stream else { return .failed(.cancelled) }
    switch phase {
    case .connecting: return finishConnecting(stream)
    case .securing(let tunnel, let trust): return secure(stream, tunnel, trust)
    case .asking(let unsent, let answer): return ask(stream, unsent, answer)
    case .handshaking: return shakeHands(stream)
    }
  }

  private func connectToNext() -> Progress {
    while let next = remaining.popFirst() {
      // Every candidate gets its share of time, so that a silent one cannot use up that of the others.
      let share = plan.deadline.millisecondsLeft / Int64(remaining.count + 1)
      begin(.connecting, limit: min(share, plan.limits.connect))
      endpoint = next
      do throws(SocketError) {
        let socket = try Socket.startConnecting(to: SocketAddress(next))
        let descriptor = socket.descriptor
        stream = ByteStream(socket, stop: signal)
        guard watch(descriptor) else { throw .system(operation: "epoll", code: errno) }
        return .waits
      } catch { note(Self.failure(error, at: next)) }
    }
    return .failed(failure ?? .dns(host: plan.host, reason: "no address"))
  }

  private func finishConnecting(_ stream: ByteStream) -> Progress {
    let code = stream.socket.connectionError()
    guard code == 0 else {
      note(Self.failure(.system(operation: "connect", code: code), at: endpoint))
      return connectToNext()
    }
    guard let tunnel = plan.tunnel else { return startTLS(stream) }
    guard let trust = tunnel.trust else { return ask(tunnel, stream) }
    begin(.securing(tunnel, trust), limit: plan.limits.handshake)
    do throws(SocketError) {
      try stream.startTLS(trust) { trust.configure($0, host: tunnel.host) }
    } catch { return .failed(.local(reason: error.description)) }
    return secure(stream, tunnel, trust)
  }

  /// Starts TLS with the proxy; nothing is asked of it before it has proved its identity.
  private func secure(_ stream: ByteStream, _ tunnel: Tunnel, _ trust: ProxyTrust) -> Progress {
    switch stream.tryHandshake() {
    case .wait: return .waits
    case .ended: return .failed(.proxy(.untrusted(reason: "it closed the connection")))
    case .failed(let reason): return .failed(.proxy(.untrusted(reason: reason)))
    case .moved:
      guard let session = stream.session else { return .failed(.cancelled) }
      if let reason = trust.refusal(
        of: session, host: tunnel.host, port: tunnel.port, at: endpoint)
      {
        return .failed(.proxy(.untrusted(reason: reason)))
      }
      return ask(tunnel, stream)
    }
  }

  private func ask(_ tunnel: Tunnel, _ stream: ByteStream) -> Progress {
    begin(.asking(unsent: [], TunnelAnswer()), limit: plan.limits.tunnel)
    return ask(stream, Array(tunnel.request.utf8)[...], TunnelAnswer())
  }

  private func ask(
    _ stream: ByteStream, _ unsent: ArraySlice<UInt8>, _ answer: TunnelAnswer
  ) -> Progress {
    var unsent = unsent
    while !unsent.isEmpty {
      switch unsent.withUnsafeBytes({ stream.tryWrite($0) }) {
      case .moved(let count): unsent = unsent.dropFirst(count)
      case .wait:
        phase = .asking(unsent: unsent, answer)
        return .waits
      case .ended: return .failed(.proxy(.closed(reason: "it ended")))
      case .failed(let reason): return .failed(.proxy(.closed(reason: reason)))
      }
    }
    return read(answer, from: stream)
  }

  private func read(_ answer: TunnelAnswer, from stream: ByteStream) -> Progress {
    var answer = answer
    var chunk = [UInt8](repeating: 0, count: 2048)
    while true {
      let room = min(chunk.count, max(1, answer.room))
      let attempt = chunk.withUnsafeMutableBytes {
        stream.tryRead(UnsafeMutableRawBufferPointer(rebasing: $0[..<room]))
      }
      switch attempt {
      case .moved(let count):
        switch answer.feed(chunk.prefix(count)) {
        case .incomplete: continue
        case .open:
          dialledThere = answer.value(of: TunnelAddress.field).flatMap(NumericAddress.canonical)
          return startTLS(stream)
        case .fault(let fault): return .failed(.proxy(fault))
        }
      case .wait:
        phase = .asking(unsent: [], answer)
        return .waits
      case .ended: return .failed(.proxy(.closed(reason: "it ended without an answer")))
      case .failed(let reason): return .failed(.proxy(.closed(reason: reason)))
      }
    }
  }

  private func startTLS(_ stream: ByteStream) -> Progress {
    begin(.handshaking, limit: plan.limits.handshake)
    var isRestricted = true
    do throws(SocketError) {
      try stream.startTLS(client, holdingBack: true) { session in
        SSL_set_connect_state(session)
        session.requestServerName(plan.host)
        if let kind = plan.kind { isRestricted = kind.restrict(session) }
      }
    } catch { return .failed(.local(reason: error.description)) }
    guard isRestricted else {
      return .failed(.local(reason: "choosing signatures: \(OpenSSLErrors.drain())"))
    }
    return shakeHands(stream)
  }

  private func shakeHands(_ stream: ByteStream) -> Progress {
    let attempt = stream.tryHandshake()
    if attempt != .moved(1), let beginning = stream.beginningIfNotTLS {
      return .failed(.notTLS(beginning: beginning))
    }
    if case .wait = attempt { return .waits }
    if attempt != .moved(1), let session = stream.session, session.provedItsKeyBeforeItRefused {
      return .shook(session, endpoint)
    }
    switch attempt {
    case .wait: return .waits
    case .ended: return .failed(.handshake(reason: "the server closed the connection"))
    case .failed(let reason): return .failed(.handshake(reason: reason))
    case .moved:
      guard let session = stream.session else { return .failed(.cancelled) }
      return .shook(session, endpoint)
    }
  }

  /// Sends close_notify without waiting for an answer.
  func close() {
    if let session = stream?.session, session.isHandshakeFinished {
      OpenSSLErrors.clear()
      SSL_shutdown(session)
    }
    stream = nil
  }

  private func begin(_ phase: Phase, limit: Int64) {
    self.phase = phase
    until = min(.after(milliseconds: limit), plan.deadline)
  }

  /// Keeps the most telling failure: of several addresses, one may merely have no route.
  private func note(_ new: ProbeError) {
    if case .unreachable = new, failure != nil { return }
    failure = new
  }

  private static func failure(_ error: SocketError, at endpoint: Endpoint) -> ProbeError {
    guard case .system(_, let code) = error else {
      return .unreachable(endpoint, reason: error.description)
    }
    switch code {
    case ECONNREFUSED: return .refused(endpoint)
    case ETIMEDOUT: return .timeout(.connect)
    case EMFILE, ENFILE, ENOMEM, ENOBUFS:
      return .local(reason: String(cString: strerror(code)))
    default: return .unreachable(endpoint, reason: String(cString: strerror(code)))
    }
  }
}

extension ByteStream {
  /// The first bytes from the other side, made plain, if they are not TLS: a TLS server begins with
  /// a handshake or an alert record (RFC 8446 section 5.1).
  fileprivate var beginningIfNotTLS: String? {
    guard let session, !isNested else { return nil }
    let first = pp_tls_first_byte(SSL_get_rbio(session))
    guard first >= 0, first != 0x16, first != 0x15 else { return nil }
    return ProbeError.beginning(beginning)
  }
}
