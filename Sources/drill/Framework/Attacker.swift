import TLSTools

/// Whoever must not read a request.
protocol Attacker: AnyObject, Sendable {
  /// The request lines that were read in clear, in order.
  var read: [String] { get }
  /// How many bytes of applications were read in clear.
  var bytesRead: Int { get }
  /// How many connections were taken.
  var connections: Int { get }
  /// Waits until everything that is under way has been counted.
  func settle() async -> Bool
}

extension LocalHTTPServer: Attacker {
  var read: [String] { requests.map { "\($0.method) \($0.target)" } }
  var bytesRead: Int { counts.applicationBytesReceived }
  var connections: Int { counts.connections }
  func settle() async -> Bool { await waitUntilIdle() }
}

extension InterceptingProxy: Attacker {
  var read: [String] { requests.map { "\($0.method) \($0.target)" } }
  var bytesRead: Int { plaintextBytes }
  var connections: Int { handshakesCompleted + handshakesFailed }

  /// A client sees its refusal before the proxy does, so the handshake may be counted a little later.
  func settle() async -> Bool {
    for _ in 0..<100 {
      let before = (handshakesCompleted + handshakesFailed, plaintextBytes)
      try? await Task.sleep(nanoseconds: 10_000_000)
      if before == (handshakesCompleted + handshakesFailed, plaintextBytes), before.0 > 0 {
        return true
      }
    }
    return true
  }
}
