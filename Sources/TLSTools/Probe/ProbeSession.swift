import COpenSSL
import Foundation
import PinningPlatform

/// What a probe was asked for.
struct ProbeJob: Sendable {
  let id: UInt64
  let target: ProbeTarget
  let deadline: Deadline
  let judge: ChainJudge
  let isCancelled: Locked<Bool>
  let complete: @Sendable (Result<ProbeResult, ProbeError>) -> Void
}

/// One probe under way: a state machine that the loop pushes on whenever its socket is ready or a
/// time is up. It never blocks.
final class ProbeSession {
  private enum Phase {
    case resolving
    case connecting(ByteStream, Endpoint, until: Deadline)
    case handshaking(ByteStream, Endpoint, events: Int16)
  }

  let job: ProbeJob
  private let client: ProbeClient
  private let signal: EventSignal
  private var phase = Phase.resolving
  private var remaining: [Endpoint] = []
  private var failure: ProbeError?

  init(_ job: ProbeJob, client: ProbeClient, signal: EventSignal) {
    self.job = job
    self.client = client
    self.signal = signal
  }

  /// What poll(2) should watch; nil while the name is looked up.
  var watched: pollfd? {
    switch phase {
    case .resolving: nil
    case .connecting(let stream, _, _):
      pollfd(fd: stream.socket.descriptor, events: Int16(POLLOUT), revents: 0)
    case .handshaking(let stream, _, let events):
      pollfd(fd: stream.socket.descriptor, events: events, revents: 0)
    }
  }

  /// When to push on although nothing happened.
  var wakeUp: Deadline {
    if case .connecting(_, _, let until) = phase { return min(until, job.deadline) }
    return job.deadline
  }

  private var stage: ProbeError.Stage {
    switch phase {
    case .resolving: .dns
    case .connecting: .connect
    case .handshaking: .handshake
    }
  }

  /// Takes the addresses and dials the first. Returns the outcome when there already is one.
  func start(with addresses: [Endpoint]) -> Result<ProbeResult, ProbeError>? {
    remaining = addresses
    return connectToNext()
  }

  /// One step. Returns the outcome when there is one.
  func advance(isReady: Bool) -> Result<ProbeResult, ProbeError>? {
    if job.isCancelled.withLock({ $0 }) { return .failure(.cancelled) }
    if job.deadline.hasPassed { return .failure(.timeout(stage)) }
    switch phase {
    case .resolving: return nil
    case .connecting(let stream, let endpoint, let until):
      if isReady { return finishConnecting(stream, endpoint) }
      guard until.hasPassed else { return nil }
      note(.timeout(.connect))
      return connectToNext()
    case .handshaking(let stream, let endpoint, _):
      return isReady ? shakeHands(stream, endpoint) : nil
    }
  }

  private func connectToNext() -> Result<ProbeResult, ProbeError>? {
    while !remaining.isEmpty {
      // Every address gets its share, so that a silent one cannot use up the others' time.
      let share = job.deadline.millisecondsLeft / Int64(remaining.count)
      let endpoint = remaining.removeFirst()
      do throws(SocketError) {
        let stream = ByteStream(
          try .startConnecting(to: SocketAddress(endpoint)), stop: signal)
        phase = .connecting(stream, endpoint, until: .after(milliseconds: share))
        return nil
      } catch {
        note(Self.failure(error, at: endpoint))
      }
    }
    return .failure(failure ?? .dns(host: job.target.host, reason: "no address"))
  }

  private func finishConnecting(
    _ stream: ByteStream, _ endpoint: Endpoint
  ) -> Result<ProbeResult, ProbeError>? {
    let code = stream.socket.connectionError()
    guard code == 0 else {
      note(Self.failure(.system(operation: "connect", code: code), at: endpoint))
      return connectToNext()
    }
    do throws(SocketError) {
      try stream.startTLS(client) { session in
        SSL_set_connect_state(session)
        session.requestServerName(job.target.host)
      }
    } catch { return .failure(.local(reason: error.description)) }
    return shakeHands(stream, endpoint)
  }

  private func shakeHands(
    _ stream: ByteStream, _ endpoint: Endpoint
  ) -> Result<ProbeResult, ProbeError>? {
    let attempt = stream.tryHandshake()
    if attempt != .moved(1), let beginning = Self.notTLS(stream.beginning) {
      return .failure(.notTLS(beginning: beginning))
    }
    switch attempt {
    case .wait(let events):
      phase = .handshaking(stream, endpoint, events: events)
      return nil
    case .ended: return .failure(.handshake(reason: "the server closed the connection"))
    case .failed(let reason): return .failure(.handshake(reason: reason))
    case .moved:
      guard let session = stream.session else { return .failure(.cancelled) }
      defer { stream.finishWriting() }
      do throws(ProbeError) {
        return .success(try job.judge.judge(session, of: job.target, at: endpoint))
      } catch { return .failure(error) }
    }
  }

  /// Keeps the failure that tells most: of several addresses, one may merely have no route.
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

  /// A TLS server begins with a handshake or an alert record (RFC 8446 section 5.1).
  private static func notTLS(_ beginning: [UInt8]) -> String? {
    guard let first = beginning.first, first != 0x16, first != 0x15 else { return nil }
    let line = beginning.prefix { $0 != 10 && $0 != 13 }
    return String(
      decoding: line.map { (0x20..<0x7f).contains($0) ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
  }
}
