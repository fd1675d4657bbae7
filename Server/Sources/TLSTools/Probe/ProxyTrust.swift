import CSslPinningOpenSSL
import CSslPinningShims
import Foundation
import SslPinningPlatform
import SslPinningRules

/// How a proxy proves its identity over TLS.
///
/// - TLS 1.2 or newer. Nothing is asked of the proxy before ``refusal(of:host:port:at:)`` has found no fault.
/// - If there are `pins`, its leaf's key must be one of them. If there are `anchors`, its chain must be valid
///   for its name. At least one of the two is required.
package final class ProxyTrust: TLSContext, Sendable {
  package let context: OpenSSLObject
  private let pins: Set<SPKIPin>
  private let anchors: (@Sendable () -> ChainValidator)?
  private let identity: LoadedIdentity?

  /// - Parameters:
  ///   - pins: of the proxy's leaf; empty: only its chain is checked.
  ///   - anchors: where its chain must end; `nil`: only its key is checked. Called for each connection.
  ///   - identity: what this client shows if the proxy asks for a certificate.
  package init(
    pins: Set<SPKIPin>, anchors: (@Sendable () -> ChainValidator)?, identity: ServerIdentity?
  ) throws(CertificateError) {
    OpenSSLErrors.clear()
    guard !pins.isEmpty || anchors != nil, let pointer = SSL_CTX_new(TLS_client_method()) else {
      throw .openSSL(operation: "making a TLS context", reason: OpenSSLErrors.drain())
    }
    context = OpenSSLObject(pointer) { SSL_CTX_free($0) }
    self.pins = pins
    self.anchors = anchors
    self.identity = if let identity { try LoadedIdentity(identity) } else { nil }
    SSL_CTX_ctrl(pointer, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLSVersion.tls12.rawValue), nil)
    SSL_CTX_ctrl(pointer, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
    // Checked after the handshake instead, so that a refusal has a precise reason.
    SSL_CTX_set_verify(pointer, SSL_VERIFY_NONE, nil)
    pp_tls_refuse_floods(pointer)
  }

  /// Sets a connection up as this proxy's client.
  func configure(_ session: OpaquePointer, host: String) {
    SSL_set_connect_state(session)
    session.requestServerName(host)
    _ = identity?.use(on: session)
  }

  /// Why the other side of a finished handshake is not the proxy; `nil` if it is.
  func refusal(
    of session: OpaquePointer, host: String, port: UInt16, at endpoint: Endpoint
  ) -> String? {
    guard let leaf = SSL_get0_peer_certificate(session),
      let certificate = try? Certificate(copying: leaf)
    else { return "it showed no certificate" }
    if !pins.isEmpty {
      guard let pin = try? SPKIPin(certificateDER: certificate.der) else {
        return "its key cannot be read"
      }
      guard pins.contains(pin) else { return "it shows another key (\(pin.base64))" }
    }
    guard let anchors else { return nil }
    do throws(ProbeError) {
      return try ProbedServer(
        session, of: ProbeTarget(host: host, port: port), at: endpoint, by: anchors(), time: nil
      ).complaint
    } catch { return "\(error)" }
  }
}

extension ProxyTrust: Hashable {
  package static func == (one: ProxyTrust, other: ProxyTrust) -> Bool { one === other }
  package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// The addresses of proxies: few names that every probe needs, so each is looked up once in a while for all.
///
/// - An answer is used for half a minute; a failure only by the callers that waited for it.
final class ProxyDirectory: Sendable {
  private struct Proxy: Hashable {
    let host: String
    let port: UInt16
  }

  /// A running lookup, and its waiting callers.
  private struct Question {
    let number: UInt64
    let until: Deadline
    var waiting: [(until: Deadline, answer: NameResolver.Answer)] = []
  }

  private struct State {
    var last: UInt64 = 0
    var known: [Proxy: (addresses: [Endpoint], until: Deadline)] = [:]
    var asking: [Proxy: Question] = [:]
  }

  private static let lifetime: Int64 = 30_000
  /// After this many milliseconds without an answer the name is looked up again.
  private static let patience: Int64 = 60_000

  private let resolver: NameResolver
  private let state = Locked(State())

  init(resolver: NameResolver) { self.resolver = resolver }

  /// Calls `answer` once, on any thread, or never if the lookup does not end by `until`.
  func find(
    _ host: String, port: UInt16, until: Deadline, answer: @escaping NameResolver.Answer
  ) {
    let proxy = Proxy(host: host, port: port)
    let patience = Deadline.after(milliseconds: Self.patience)
    let (known, asked) = state.withLock { state -> ([Endpoint]?, UInt64?) in
      if let entry = state.known[proxy], !entry.until.hasPassed { return (entry.addresses, nil) }
      var question = state.asking[proxy]
      let mustAsk = question?.until.hasPassed ?? true
      if mustAsk {
        state.last += 1
        question = Question(
          number: state.last, until: patience, waiting: question?.waiting ?? [])
      }
      // Drop callers that have given up.
      question?.waiting.removeAll { $0.until.hasPassed }
      question?.waiting.append((until, answer))
      state.asking[proxy] = question
      return (nil, mustAsk ? state.last : nil)
    }
    if let known { return answer(.success(known)) }
    guard let asked else { return }
    resolver.resolve(host, port: port, until: patience) { [self] result in
      finish(proxy, asked, result)
    }
  }

  private func finish(
    _ proxy: Proxy, _ number: UInt64, _ result: Result<[Endpoint], NameResolver.Failure>
  ) {
    let waiting = state.withLock { state in
      if case .success(let addresses) = result {
        state.known[proxy] = (addresses, .after(milliseconds: Self.lifetime))
      }
      guard state.asking[proxy]?.number == number else { return [NameResolver.Answer]() }
      return state.asking.removeValue(forKey: proxy)?.waiting.map(\.answer) ?? []
    }
    for answer in waiting { answer(result) }
  }
}

/// Reads a proxy's answer to CONNECT.
///
/// - Strict: a status line of HTTP/1, then fields, then an empty line, each line ended by CR LF.
/// - At most ``limit`` bytes; a longer answer is refused.
/// - Any 2xx opens the tunnel (RFC 9110 section 9.3.6), and nothing may follow its head: the server
///   speaks after the client, so earlier bytes cannot be its own.
struct TunnelAnswer {
  /// What the bytes so far amount to.
  enum State: Equatable {
    case incomplete
    case open
    case fault(ProbeError.ProxyFault)
  }

  static let limit = 16_384

  private var bytes: [UInt8] = []
  /// Where to go on searching for the end of the head, so that no byte is scanned twice.
  private var searched = 4

  /// How many more bytes may be read.
  var room: Int { Self.limit - bytes.count }

  /// Takes the next bytes.
  mutating func feed(_ more: some Collection<UInt8>) -> State {
    bytes += more
    guard let status = statusLineSoFar() else { return .fault(.notHTTP(beginning: beginning)) }
    guard let end = endOfHead() else {
      return bytes.count < Self.limit ? .incomplete : .fault(.tooLong)
    }
    guard (200..<300).contains(status) else { return .fault(.refused(status: status)) }
    guard hasOnlyFields(upTo: end) else { return .fault(.notHTTP(beginning: beginning)) }
    return end == bytes.count ? .open : .fault(.spokeEarly)
  }

  /// What a field of the head says; `nil` if it has none of that name, or several.
  func value(of name: String) -> String? {
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\r\n").dropFirst()
    let values = lines.filter { $0.lowercased().hasPrefix("\(name):") }
    guard values.count == 1, let line = values.first else { return nil }
    let value = line.dropFirst(name.utf8.count + 1)
    return String(value.drop { $0 == " " || $0 == "\t" })
  }

  /// The first line, made plain.
  private var beginning: String { ProbeError.beginning(bytes.prefix(80)) }

  /// The status in `HTTP/1.x nnn`: 0 if it has not arrived yet; `nil` if this is no status line.
  private func statusLineSoFar() -> Int? {
    let form = Array("HTTP/1.d ddd".utf8)
    for (byte, expected) in zip(bytes, form) {
      let isDigit = (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
      guard expected == UInt8(ascii: "d") ? isDigit : byte == expected else { return nil }
    }
    guard bytes.count > form.count else { return 0 }
    // RFC 9112 section 4 wants a space even if no reason follows; servers leave it out.
    guard bytes[12] == 0x20 || bytes[12] == 13 else { return nil }
    return bytes[9..<12].reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
  }

  /// The index after the empty line.
  private mutating func endOfHead() -> Int? {
    guard bytes.count >= searched else { return nil }
    defer { searched = bytes.count + 1 }
    return (searched...bytes.count).first {
      bytes[($0 - 4)..<$0].elementsEqual([13, 10, 13, 10])
    }
  }

  /// Whether every line but the first is a field, and every line ends in CR LF.
  private func hasOnlyFields(upTo end: Int) -> Bool {
    let lines = bytes[..<(end - 4)].split(separator: 13, omittingEmptySubsequences: false)
    return lines.enumerated().allSatisfy { number, line in
      guard number > 0 else { return !line.contains { $0 < 0x20 && $0 != 9 } }
      guard line.first == 10 else { return false }
      let field = line.dropFirst()
      guard let colon = field.firstIndex(of: UInt8(ascii: ":")), colon > field.startIndex else {
        return false
      }
      return field[..<colon].allSatisfy { $0 > 0x20 && $0 < 0x7f }
        && !field.contains { $0 < 0x20 && $0 != 9 }
    }
  }
}

/// A TLS connection for a library that only knows TCP: the library gets one end of a socket pair, and a thread
/// carries bytes between the other end and the TLS session.
///
/// - The other side proves its identity before the caller gets a socket (``ProxyTrust``: TLS 1.2 or newer, a chain
///   to the anchors, the name), so no password reaches a middleman.
/// - The end of one side is passed on to the other. A successful write does not mean that the server got the bytes;
///   only an answer does.
/// - A connection without traffic for five minutes ends.
package enum TLSTunnel {
  private static let threads = WorkerThreads()

  /// Connects, one address of the host after the other.
  ///
  /// - Parameters:
  ///   - anchors: where the other side's chain must end.
  ///   - milliseconds: until the other side has proved its identity. The system's name lookup may take longer.
  /// - Returns: a blocking socket, which the caller closes.
  package static func open(
    to host: String, port: UInt16, trusting anchors: ChainValidator, milliseconds: Int64
  ) throws(SocketError) -> Int32 {
    let trust: ProxyTrust
    do throws(CertificateError) {
      trust = try ProxyTrust(pins: [], anchors: { anchors }, identity: nil)
    } catch { throw .closed(reason: "\(error)") }
    let found: [Endpoint]
    switch NameResolver.askSystem(host, port) {
    case .success(let endpoints): found = endpoints
    case .failure(let failure): throw .closed(reason: failure.reason)
    }
    let (stop, deadline) = (try EventSignal(), Deadline.after(milliseconds: milliseconds))
    let (stream, endpoint) = try connect(to: found, stop, deadline)
    try stream.startTLS(trust) { trust.configure($0, host: host) }
    try stream.handshake(until: deadline)
    guard let session = stream.session else { throw .closed(reason: "there is no TLS session") }
    if let refusal = trust.refusal(of: session, host: host, port: port, at: endpoint) {
      throw .closed(reason: refusal)
    }
    return try carry(stream, stop)
  }

  private static func connect(
    to endpoints: [Endpoint], _ stop: EventSignal, _ deadline: Deadline
  ) throws(SocketError) -> (ByteStream, Endpoint) {
    var failure = SocketError.closed(reason: "the name has no address")
    for endpoint in endpoints {
      do throws(SocketError) {
        return (try ByteStream.dial(endpoint, stop: stop, until: deadline), endpoint)
      } catch { failure = error }
    }
    throw failure
  }

  /// Starts a thread that carries bytes until either side is done.
  private static func carry(
    _ stream: ByteStream, _ stop: EventSignal
  ) throws(SocketError) -> Int32 {
    var ends: [Int32] = [-1, -1]
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else {
      throw .system(operation: "socketpair", code: errno)
    }
    _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
    // From here on only that thread uses it.
    nonisolated(unsafe) let pair = (ByteStream(Socket(owning: ends[1]), stop: stop), stream)
    let isStarted = threads.start("tls tunnel") {
      // The library closes both ways at once. A server that hangs would keep this thread for minutes.
      var relay = Relay(client: pair.0, server: pair.1, stop: stop, endsWithClient: true)
      // No error to report: both sides see their connection close.
      try? relay.run()
    }
    guard isStarted else {
      close(ends[0])
      throw WorkerThreads.exhausted
    }
    return ends[0]
  }
}
