import Foundation
import SslPinning

/// The servers that `first-day.sh` started, as it tells them in the environment.
struct Servers: Sendable {
  /// The pin of the servers' key.
  let pin: String
  /// The only CA that vouches for them.
  let anchors: [Data]
  /// A port by version of TLS, each with session tickets, and without keep-alive.
  let ports: [(version: String, port: String)]
  /// A port for clear text.
  let clear: String

  /// `nil` if a variable is missing or the CA's file cannot be read.
  init?(environment: [String: String]) {
    guard let pin = environment["PROBE_PIN"], let file = environment["PROBE_ANCHOR"],
      let old = environment["PROBE_TLS12"], let new = environment["PROBE_TLS13"],
      let clear = environment["PROBE_CLEAR"],
      let anchors = try? BundledCertificates.read(files: [URL(fileURLWithPath: file)])
    else { return nil }
    self.pin = pin
    self.anchors = anchors
    self.clear = clear
    ports = [("TLS 1.2", old), ("TLS 1.3", new)]
  }

  /// A client that pins `localhost`.
  func client(pin: String) throws(FixedPinsError) -> FixedPinsClient {
    try FixedPinsClient(pins: FixedPins(["localhost": [pin]], trust: .anchors(anchors)))
  }

  /// A pin that no server has.
  var wrongPin: String { String(repeating: "A", count: 43) + "=" }
}
