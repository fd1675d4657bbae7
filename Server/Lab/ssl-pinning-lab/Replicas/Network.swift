import FaultLab
import Foundation
import TLSTools
import TestSupport

/// The network between replicas and their database, which can be cut without either side noticing.
protocol DatabaseNetwork: Sendable {
  /// Which kind of network was used, for the report.
  var explanation: String { get }
  /// Whether the database's kernel also notices a cut, so that the database releases a cut leader's lock.
  var isNoticedByDatabase: Bool { get }
  /// Whether one direction can be cut alone.
  var hasOneWayCuts: Bool { get }

  /// The database's DSN for a replica, counted from 0.
  func dsn(forReplica replica: Int) -> String
  /// The database's DSN for the drill itself; never cut.
  var operatorDSN: String { get }
  /// The database server, which can be restarted and killed.
  var database: PostgresServer { get }

  /// Silently drops a replica's packets in this direction.
  func cut(_ replica: Int, _ direction: CutDirection) async throws
  /// Ends all cuts of a replica.
  func restore(_ replica: Int) async throws
  /// Removes everything that was set up, including the database.
  func stop() async throws
}

/// Which packets of a replica are dropped.
enum CutDirection: Sendable {
  case both
  /// Only the database's answers: the replica cannot know what the database did.
  case answers
}

/// A database on loopback behind a forwarder for each replica. A cut suspends the forwarder: it neither reads
/// nor writes, and keeps every connection open.
///
/// This is weaker than lost packets: the forwarder's kernel still acknowledges packets, so only a replica that
/// waits for an answer notices the cut, and the database never does.
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

/// iproute2's `ip`.
enum IPCommand {
  /// Runs it, and throws its error output.
  @discardableResult
  static func run(_ arguments: String...) async throws -> String {
    let end = try await ChildProcess.run("ip", arguments)
    guard end.exitCode == 0 else {
      let words = end.stderr.trimmingCharacters(in: .whitespacesAndNewlines)
      throw Inconclusive("ip \(arguments.joined(separator: " ")): \(words)")
    }
    return end.stdout
  }
}

/// A database in its own network namespace, with a wire (a veth pair) to each replica and one to the drill.
///
///     drill and replicas                          namespace
///       <name>0  198.18.s.1  ──────────────────  198.18.s.2   the drill's own
///       <name>1  198.18.s.5  ──────────────────  198.18.s.6   replica 0
///       <name>2  198.18.s.9  ──────────────────  198.18.s.10  replica 1
///
/// - Neighbour entries are static on both ends. A cut replaces one with an unused link-layer address: packets
///   still leave but reach nobody, neither end notices, and the wire stays up. Each direction can be cut alone.
/// - The addresses are those for benchmarks (RFC 2544, 198.18.0.0/15).
/// - Everything disappears with this process, however it ends.
final class NamespaceNetwork: DatabaseNetwork {
  private let name: String
  private let subnet: String
  private let replicas: Int
  let database: PostgresServer
  private let backstop: Backstop

  var explanation: String { "network namespace \(name), cut by losing packets" }
  let isNoticedByDatabase = true
  let hasOneWayCuts = true

  private init(
    name: String, subnet: String, replicas: Int, server: PostgresServer, backstop: Backstop
  ) {
    (self.name, self.subnet, self.replicas) = (name, subnet, replicas)
    (database, self.backstop) = (server, backstop)
  }

  /// Sets up the network and the database.
  ///
  /// - Throws: ``NoNamespaces`` if this machine does not allow it. Nothing is left behind.
  static func start(replicas: Int) async throws -> NamespaceNetwork {
    let number = UInt32.random(in: 0..<1 << 24)
    let name = "ppd" + String(number, radix: 16)
    let subnet: String
    do { subnet = try await freeSubnet() } catch { throw NoNamespaces(reason: "\(error)") }
    let backstop = try Backstop(
      """
      for wire in $(seq 0 "$2"); do ip link del "$1x$wire"; done
      ip netns del "$1"
      """, [name, "\(replicas)"])
    do {
      do {
        try await IPCommand.run("netns", "add", name)
        try await IPCommand.run("-n", name, "link", "set", "lo", "up")
        for wire in 0...replicas { try await lay(wire, name, subnet) }
      } catch { throw NoNamespaces(reason: "\(error)") }
      let place = ServerPlace(
        namespace: name, addresses: (0...replicas).map { inner(subnet, $0) })
      return NamespaceNetwork(
        name: name, subnet: subnet, replicas: replicas, server: try await .start(at: place),
        backstop: backstop)
    } catch {
      try await backstop.finish()
      throw error
    }
  }

  func dsn(forReplica replica: Int) -> String {
    database.dsn(at: Self.inner(subnet, replica + 1))
  }

  var operatorDSN: String { database.dsn() }

  func cut(_ replica: Int, _ direction: CutDirection) async throws {
    try await Self.enter(Self.nobody, atInnerEndOf: replica + 1, name, subnet)
    guard direction == .both else { return }
    try await Self.enter(Self.nobody, atOuterEndOf: replica + 1, name, subnet)
  }

  func restore(_ replica: Int) async throws {
    let wire = replica + 1
    try await Self.enter(Self.hardware(wire, isInner: false), atInnerEndOf: wire, name, subnet)
    try await Self.enter(Self.hardware(wire, isInner: true), atOuterEndOf: wire, name, subnet)
  }

  func stop() async throws {
    try? await database.stop()
    try await backstop.finish()
    let left = try await IPCommand.run("netns", "list")
    try show(!left.contains(name), "the namespace \(name) is still there")
  }

  // MARK: - Wires

  private static func lay(_ wire: Int, _ name: String, _ subnet: String) async throws {
    try await IPCommand.run(
      "link", "add", "\(name)x\(wire)", "address", hardware(wire, isInner: false), "type", "veth",
      "peer", "name", "x\(wire)", "address", hardware(wire, isInner: true), "netns", name)
    try await IPCommand.run(
      "addr", "add", "\(outer(subnet, wire))/30", "dev", "\(name)x\(wire)")
    try await IPCommand.run(
      "-n", name, "addr", "add", "\(inner(subnet, wire))/30", "dev", "x\(wire)")
    try await IPCommand.run("link", "set", "\(name)x\(wire)", "up")
    try await IPCommand.run("-n", name, "link", "set", "x\(wire)", "up")
    try await enter(hardware(wire, isInner: true), atOuterEndOf: wire, name, subnet)
    try await enter(hardware(wire, isInner: false), atInnerEndOf: wire, name, subnet)
  }

  private static func enter(
    _ hardware: String, atOuterEndOf wire: Int, _ name: String, _ subnet: String
  ) async throws {
    try await IPCommand.run(
      "neigh", "replace", inner(subnet, wire), "lladdr", hardware, "nud", "permanent", "dev",
      "\(name)x\(wire)")
  }

  private static func enter(
    _ hardware: String, atInnerEndOf wire: Int, _ name: String, _ subnet: String
  ) async throws {
    try await IPCommand.run(
      "-n", name, "neigh", "replace", outer(subnet, wire), "lladdr", hardware, "nud", "permanent",
      "dev", "x\(wire)")
  }

  private static func outer(_ subnet: String, _ wire: Int) -> String { "\(subnet).\(4 * wire + 1)" }

  private static func inner(_ subnet: String, _ wire: Int) -> String { "\(subnet).\(4 * wire + 2)" }

  /// A locally administered address, like ``nobody``.
  private static func hardware(_ wire: Int, isInner: Bool) -> String {
    "02:00:00:00:0\(isInner ? 1 : 0):\(wire < 16 ? "0" : "")\(String(wire, radix: 16))"
  }

  private static let nobody = "02:00:00:00:ff:ff"

  private static func freeSubnet() async throws -> String {
    let taken = try await IPCommand.run("-4", "-o", "addr", "show")
    for _ in 0..<64 {
      let subnet = "198.\(Int.random(in: 18...19)).\(Int.random(in: 0...255))"
      if !taken.contains(" \(subnet).") { return subnet }
    }
    throw Inconclusive("198.18.0.0/15 is in use here")
  }
}

/// Why no network namespace can be made here.
struct NoNamespaces: Error {
  let reason: String
}
