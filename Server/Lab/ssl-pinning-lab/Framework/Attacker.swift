import FaultLab
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

  /// What still comes, comes at once: loopback, and nobody waits for anything.
  func settle() async -> Bool {
    var (before, calm) = (-1, 0)
    for _ in 0..<1000 {
      let now = handshakesCompleted + handshakesFailed + plaintextBytes
      calm = now == before ? calm + 1 : 0
      if calm == 3 { return true }
      before = now
      try? await Task.sleep(nanoseconds: 10_000_000)
    }
    return false
  }
}

extension Attacker {
  /// Waits until so many connections have been counted: a client sees its refusal before an attacker
  /// does. Not for ever: nobody may have dialled.
  func meets(_ connections: Int) async {
    for _ in 0..<1000 where self.connections < connections {
      try? await Task.sleep(nanoseconds: 5_000_000)
    }
  }
}
