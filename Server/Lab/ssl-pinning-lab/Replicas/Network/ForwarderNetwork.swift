import FaultLab
import TLSTools
import TestSupport

/// A database on loopback behind a forwarder for each replica. A cut suspends it: it neither reads nor
/// writes, and keeps every connection open.
///
/// Weaker than lost packets: both kernels still hear from the forwarder's, so only what waits for an
/// answer notices anything, and the database never does.
final class ForwarderNetwork: DatabaseNetwork {
  let database: PostgresServer
  private let forwarders: [SwitchableRelay]

  let explanation: String
  let isNoticedByDatabase = false
  let hasOneWayCuts = false

  /// - Parameter reason: why there is nothing better.
  init(replicas: Int, reason: String) async throws {
    let database = try await PostgresServer.start()
    self.database = database
    forwarders = try (0..<replicas).map { _ in try SwitchableRelay(to: .loopback(database.port)) }
    explanation = "forwarders, cut by suspending them; no network namespace: \(reason)"
  }

  func dsn(forReplica replica: Int) -> String {
    database.dsn().replacing(":\(database.port)/", with: ":\(forwarders[replica].port)/")
  }

  var operatorDSN: String { database.dsn() }

  func cut(_ replica: Int, _ direction: CutDirection) { forwarders[replica].suspend(true) }

  func restore(_ replica: Int) { forwarders[replica].suspend(false) }

  func stop() async throws {
    for forwarder in forwarders { forwarder.stop() }
    try await database.stop()
  }
}
