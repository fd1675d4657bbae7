import CSslPinningOpenSSL
import CSslPinningShims
import Foundation

/// OpenSSL's settings for one side of TLS. A stream holds it strongly, because callbacks point back to it.
package protocol TLSContext: AnyObject {
  var context: OpenSSLObject { get }
}

/// One connection, clear or under TLS, used by one thread at a time.
///
/// - The socket never blocks. Waits are in poll(2), together with the stop signal and up to a deadline,
///   so no peer can block a thread for ever.
/// - OpenSSL's error queue is cleared before every call: errors of an earlier connection on this thread
///   would pass for this one's.
package final class ByteStream {
  /// The result of one attempt to move bytes.
  package enum Attempt: Equatable {
    case moved(Int)
    /// Try again when poll(2) reports these events.
    case wait(Int16)
    /// The other side finished cleanly.
    case ended
    case failed(String)
  }

  package let socket: Socket
  private let stop: EventSignal
  private var ssl: OpaquePointer?
  private var context: (any TLSContext)?
  /// The TLS session with a proxy that carries this one.
  private var outer: (session: OpaquePointer, context: any TLSContext)?

  package init(_ socket: Socket, stop: EventSignal) {
    self.socket = socket
    self.stop = stop
  }

  deinit {
    // The inner session first: its close_notify goes through the outer one.
    if let ssl { SSL_free(ssl) }
    if let outer { SSL_free(outer.session) }
  }

  /// Connects to an address.
  package static func dial(
    _ endpoint: Endpoint, stop: EventSignal, until deadline: Deadline
  ) throws(SocketError) -> ByteStream {
    let stream = ByteStream(
      try Socket.startConnecting(to: SocketAddress(endpoint)), stop: stop)
    try stream.wait(for: Int16(POLLOUT), until: deadline)
    let code = stream.socket.connectionError()
    guard code == 0 else { throw .system(operation: "connect to \(endpoint)", code: code) }
    return stream
  }

  /// The TLS session, once started.
  package var session: OpaquePointer? { ssl }

  /// Whether TLS runs inside a proxy's TLS.
  var isNested: Bool { outer != nil }

  /// Adds TLS to the connection, or a second layer inside its TLS; `handshake` then runs it.
  ///
  /// - Parameters:
  ///   - holds: whether written bytes may be buffered until the next read or the end; for callers that
  ///     only make a handshake.
  ///   - configure: sets the session up, as a server (`SSL_set_accept_state`) or as a client.
  package func startTLS(
    _ context: any TLSContext, holdingBack holds: Bool = false, configure: (OpaquePointer) -> Void
  ) throws(SocketError) {
    OpenSSLErrors.clear()
    guard let ssl = SSL_new(context.context.pointer) else {
      throw .closed(reason: OpenSSLErrors.drain())
    }
    guard
      let bio = self.ssl.map(Self.bio(inside:))
        ?? pp_tls_socket_bio(socket.descriptor, holds ? 1 : 0)
    else {
      SSL_free(ssl)
      throw .closed(reason: "out of memory")
    }
    if let session = self.ssl, let context = self.context { outer = (session, context) }
    SSL_set_bio(ssl, bio, bio)
    configure(ssl)
    self.ssl = ssl
    self.context = context
  }

  /// A BIO that moves bytes over an established session.
  private static func bio(inside session: OpaquePointer) -> OpaquePointer? {
    guard let bio = BIO_new(BIO_f_ssl()) else { return nil }
    BIO_ctrl(bio, BIO_C_SET_SSL, Int(BIO_NOCLOSE), UnsafeMutableRawPointer(session))
    return bio
  }

  /// The first bytes that the other side sent in place of TLS, at most 80.
  package var beginning: [UInt8] {
    guard let ssl, !isNested else { return [] }
    var bytes = [UInt8](repeating: 0, count: 80)
    let taken = Int(pp_tls_beginning(SSL_get_rbio(ssl), &bytes, 40))
    let waiting = bytes.withUnsafeMutableBytes { buffer -> Int in
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[taken..<80])
      return recv(socket.descriptor, rest.baseAddress, rest.count, Int32(MSG_PEEK))
    }
    return Array(bytes.prefix(taken + max(0, waiting)))
  }

  package func handshake(until deadline: Deadline) throws(SocketError) {
    while true {
      switch tryHandshake() {
      case .moved: return
      case .wait(let events): try wait(for: events, until: deadline)
      case .ended: throw .closed(reason: "the other side left during the handshake")
      case .failed(let reason): throw .closed(reason: reason)
      }
    }
  }

  func tryHandshake() -> Attempt {
    guard let ssl else { return .failed("no TLS on this connection") }
    forgetErrors()
    return outcome(of: SSL_do_handshake(ssl), ssl)
  }

  package func tryRead(_ buffer: UnsafeMutableRawBufferPointer) -> Attempt {
    if let ssl {
      forgetErrors()
      return outcome(of: SSL_read(ssl, buffer.baseAddress, Int32(clamping: buffer.count)), ssl)
    }
    let count = recv(socket.descriptor, buffer.baseAddress, buffer.count, 0)
    return count == 0 ? .ended : outcome(ofCall: count, waitingFor: POLLIN)
  }

  package func tryWrite(_ bytes: UnsafeRawBufferPointer) -> Attempt {
    guard !bytes.isEmpty else { return .moved(0) }
    if let ssl {
      forgetErrors()
      return outcome(of: SSL_write(ssl, bytes.baseAddress, Int32(clamping: bytes.count)), ssl)
    }
    let count = send(socket.descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
    return outcome(ofCall: count, waitingFor: POLLOUT)
  }

  /// The next bytes, at most 16 KiB; empty at the clean end of the stream.
  package func read(until deadline: Deadline) throws(SocketError) -> [UInt8] {
    var failure: SocketError?
    let bytes = [UInt8](unsafeUninitializedCapacity: 16_384) { buffer, count in
      do throws(SocketError) {
        count = try fill(UnsafeMutableRawBufferPointer(buffer), until: deadline)
      } catch { failure = error }
    }
    if let failure { throw failure }
    return bytes
  }

  package func write(_ bytes: [UInt8], until deadline: Deadline) throws(SocketError) {
    var sent = 0
    while sent < bytes.count {
      let attempt = bytes.withUnsafeBytes {
        tryWrite(UnsafeRawBufferPointer(rebasing: $0[sent...]))
      }
      switch attempt {
      case .moved(let count): sent += count
      case .wait(let events): try wait(for: events, until: deadline)
      case .ended: throw .closed(reason: "the other side left")
      case .failed(let reason): throw .closed(reason: reason)
      }
    }
  }

  /// Ends this side (close_notify, then FIN) without waiting for an answer.
  package func finishWriting() {
    if let ssl, SSL_is_init_finished(ssl) == 1 {
      OpenSSLErrors.clear()
      SSL_shutdown(ssl)
    }
    socket.finishWriting()
  }

  /// Makes `finishWriting` send nothing.
  package func leaveQuietly() {
    if let ssl { SSL_set_quiet_shutdown(ssl, 1) }
  }

  func wait(for events: Int16, until deadline: Deadline) throws(SocketError) {
    var watched = [
      pollfd(fd: socket.descriptor, events: events, revents: 0),
      pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0),
    ]
    while true {
      let ready = poll(&watched, 2, deadline.pollTimeout)
      if watched[1].revents != 0 { throw .stopped }
      if ready > 0 { return }
      if ready < 0, errno != EINTR { throw .system(operation: "poll", code: errno) }
      if deadline.hasPassed { throw .timeout }
    }
  }

  private func fill(
    _ buffer: UnsafeMutableRawBufferPointer, until deadline: Deadline
  ) throws(SocketError) -> Int {
    while true {
      switch tryRead(buffer) {
      case .moved(let count): return count
      case .wait(let events): try wait(for: events, until: deadline)
      case .ended: return 0
      case .failed(let reason): throw .closed(reason: reason)
      }
    }
  }

  private func forgetErrors() {
    OpenSSLErrors.clear()
    errno = 0
  }

  private func outcome(ofCall count: Int, waitingFor events: Int32) -> Attempt {
    if count >= 0 { return .moved(count) }
    switch errno {
    case EAGAIN, EINTR: return .wait(Int16(events))
    default: return .failed(String(cString: strerror(errno)))
    }
  }

  private func outcome(of result: Int32, _ ssl: OpaquePointer) -> Attempt {
    if result > 0 { return .moved(Int(result)) }
    let code = errno
    switch SSL_get_error(ssl, result) {
    case SSL_ERROR_WANT_READ: return .wait(Int16(POLLIN))
    case SSL_ERROR_WANT_WRITE: return .wait(Int16(POLLOUT))
    case SSL_ERROR_ZERO_RETURN: return .ended
    case SSL_ERROR_SYSCALL:
      return .failed(code == 0 ? "the connection was cut" : String(cString: strerror(code)))
    default: return .failed(OpenSSLErrors.drain())
    }
  }
}

/// A moment on the monotonic clock at which a wait ends. Steps of the wall clock do not move it.
package struct Deadline: Sendable, Comparable {
  private let nanoseconds: Int64

  /// A moment from now; negative waits are over at once, huge ones are cut to 100 years.
  package static func after(milliseconds: Int64) -> Deadline {
    let bounded = min(max(milliseconds, 0), 3_155_760_000_000)
    return Deadline(nanoseconds: now + bounded * 1_000_000)
  }

  package var hasPassed: Bool { nanoseconds <= Self.now }

  /// What is left, rounded up, so that a wait of this length never ends early; 0 if it has passed.
  var millisecondsLeft: Int64 { max(0, (nanoseconds - Self.now + 999_999) / 1_000_000) }

  /// `millisecondsLeft` as poll(2) takes it.
  package var pollTimeout: Int32 { Int32(clamping: millisecondsLeft) }

  package static func < (a: Deadline, b: Deadline) -> Bool { a.nanoseconds < b.nanoseconds }

  private static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
