import CSslPinningOpenSSL
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// What a client says in a handshake besides its keys: the name that it asks for, and the alert by which it refuses.
///
/// OpenSSL tells of alerts through a callback alone; the text of a failed handshake does not say whose alert it was.
final class HandshakeWatch: Sendable {
  struct Seen: Sendable {
    /// Whether the client's hello was understood.
    var hasHello = false
    var serverName: String?
    /// The client's last alert, in OpenSSL's words.
    var received: String?
    /// Our own alert.
    var sent: String?

    /// What a handshake that failed says of the client.
    ///
    /// - An alert of ours means that no certificate was judged: no protocol or cipher in common, for example.
    /// - Whoever leaves after the hello has seen the certificate.
    func refusal(_ error: SocketError) -> LabProxy.Outcome {
      if let received { return .refused(alert: received) }
      if let sent { return .unclear(reason: "the handshake failed here: \(sent)") }
      if case .closed = error, hasHello { return .refused(alert: nil) }
      return .unclear(reason: "\(error)")
    }
  }

  private let state = Locked(Seen())

  var seen: Seen { state.withLock { $0 } }

  func hello(_ name: String?) {
    // What is no name may be anything, and is printed.
    let printable = name.map { (try? HostName($0)) == nil ? "?" : $0 }
    state.withLock { ($0.hasHello, $0.serverName) = (true, printable) }
  }

  fileprivate func note(_ alert: Int32, isReceived: Bool) {
    // Level 1 is a warning, and code 0 the regular end (RFC 8446 section 6.1).
    guard alert & 0xff != 0, let text = SSL_alert_desc_string_long(alert) else { return }
    let name = String(cString: text)
    state.withLock {
      if isReceived { $0.received = name } else { $0.sent = name }
    }
  }
}

/// Hands an alert to the session's ``HandshakeWatch``.
func noteAlert(_ session: OpaquePointer?, _ place: Int32, _ value: Int32) {
  guard place & SSL_CB_ALERT != 0, let own = SSL_get_ex_data(session, 0) else { return }
  Unmanaged<HandshakeWatch>.fromOpaque(own).takeUnretainedValue()
    .note(value, isReceived: place & SSL_CB_READ != 0)
}

/// Chooses HTTP/1.1, or else what the client would like best: a client is not to fail for its protocol, since that
/// would pass for a refusal.
func selectAnyProtocol(
  _: OpaquePointer?, _ out: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
  _ outLength: UnsafeMutablePointer<UInt8>?, _ offered: UnsafePointer<UInt8>?, _ length: UInt32,
  _: UnsafeMutableRawPointer?
) -> Int32 {
  guard let offered, length > 1 else { return SSL_TLSEXT_ERR_NOACK }
  var (index, chosen) = (0, 0)
  while index < Int(length) {
    let size = Int(offered[index])
    guard size > 0, index + 1 + size <= Int(length) else { return SSL_TLSEXT_ERR_ALERT_FATAL }
    if UnsafeBufferPointer(start: offered + index + 1, count: size).elementsEqual("http/1.1".utf8) {
      chosen = index
    }
    index += 1 + size
  }
  out?.pointee = offered + chosen + 1
  outLength?.pointee = offered[chosen]
  return SSL_TLSEXT_ERR_OK
}

extension ByteStream {
  /// The protocol that ALPN chose, with its length in front; empty without one.
  var protocolChosen: [UInt8] {
    var start: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    guard let session else { return [] }
    SSL_get0_alpn_selected(session, &start, &length)
    guard let start, (1...255).contains(length) else { return [] }
    return [UInt8(length)] + UnsafeBufferPointer(start: start, count: Int(length))
  }
}
