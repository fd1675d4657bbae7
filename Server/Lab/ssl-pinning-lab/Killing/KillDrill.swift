import Foundation
import RegistryServer
import RegistryStores
import TestSupport

/// Kills a writing process with `kill -9`, again and again at random moments, and checks each time that
/// everything acknowledged is there.
///
/// - In every second round another handle reads at the same time. In the other rounds none does, so that
///   the store is opened as after a restart of everything.
/// - In every 25th round, a database's server is killed, too, while the writer writes.
struct KillDrill: Sendable {
  let kind: DurableStore
  /// How many processes are killed.
  let times: Int
  /// The `drill` program.
  let program: String

  static func run(
    _ kind: DurableStore, times: Int, program: String
  ) async throws -> KillLedger {
    let ground = try await KillGround.prepare(kind)
    let drill = KillDrill(kind: kind, times: times, program: program)
    var endpointKeys = KillLedger()
    for round in 1...times {
      try await drill.round(round, on: ground, &endpointKeys)
    }
    try await drill.readAll(ground, &endpointKeys)
    try await ground.stop()
    return endpointKeys
  }

  private func round(
    _ number: Int, on ground: KillGround, _ endpointKeys: inout KillLedger
  ) async throws {
    let dsn = ground.dsn(kind)
    let reader = number % 2 == 0 ? try StoreReader(kind.open(dsn), from: endpointKeys.newest) : nil
    let writer = try ChildProcess(
      program, ["store-writer", "--store", kind.rawValue, "--dsn", dsn])
    // Some are killed before they have begun, most while they write.
    if number % 10 != 0 { try await writer.waitForOutput(containing: "ready") }
    try await Task.sleep(nanoseconds: .random(in: 0..<60_000_000))
    let killsServer = ground.hasServer && number % 25 == 0
    if killsServer { try await ground.killServer() }
    let outcome = try await writer.terminate(signal: SIGKILL)
    guard outcome.exitCode == 128 + SIGKILL else {
      throw ChildProcess.Failure.ended(program: "store-writer", outcome)
    }
    for reading in await reader?.finish() ?? [] { endpointKeys.enter(reading) }
    if killsServer { try await ground.launchServer() }
    let lines = outcome.stdout.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
    let store = try kind.open(dsn)
    endpointKeys.enter(
      acknowledged: lines.compactMap { Self.number("acknowledged ", $0) },
      found: lines.first.flatMap { Self.number("ready ", $0) },
      reopened: try await Self.reading(of: store))
    await store.close()
  }

  /// What the store holds, with as much history as a few rounds add.
  ///
  /// A database may still commit what a writer sent before it died, so record and history are read again
  /// until no write came between the two.
  private static func reading(
    of store: any RegistryStore, limit: Int = 200
  ) async throws -> KillLedger.Reading {
    var record = try await store.record(named: NumberedRecord.name)
    while true {
      let history = try await store.history(of: NumberedRecord.name, before: nil, limit: limit)
      let again = try await store.record(named: NumberedRecord.name)
      guard again?.version == record?.version else {
        record = again
        continue
      }
      let version = record?.version ?? 0
      return KillLedger.Reading(
        version: version,
        isWhole: record.map(NumberedRecord.isWhole) ?? true
          && NumberedRecord.isWhole(history, of: version, limit: limit))
    }
  }

  /// The whole history, in one piece.
  private func readAll(_ ground: KillGround, _ endpointKeys: inout KillLedger) async throws {
    let store = try kind.open(ground.dsn(kind))
    endpointKeys.enter(try await Self.reading(of: store, limit: .max))
    await store.close()
  }

  private static func number(_ word: String, _ line: Substring) -> Int64? {
    line.hasPrefix(word) ? Int64(line.dropFirst(word.count)) : nil
  }
}

/// `drill kill [--times 500] [--store KIND]`: a line for each store.
enum KillCommand {
  /// - Returns: the exit status: 1 if anything was lost, torn or older than before.
  static func run(_ arguments: [String], say: @escaping @Sendable (String) -> Void) async -> Int32 {
    var (times, kinds) = (500, DurableStore.allCases)
    var rest = arguments[...]
    while let name = rest.popFirst() {
      let value = rest.popFirst() ?? ""
      switch name {
      case "--times": times = Int(value) ?? 0
      case "--store": kinds = DurableStore(rawValue: value).map { [$0] } ?? []
      default: times = 0
      }
    }
    guard times > 0, !kinds.isEmpty,
      let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    else {
      say("hint: drill kill [--times N] [--store fs|sqlite|postgres|redis]")
      return 2
    }
    return await withTaskGroup(of: Bool.self) { group in
      for kind in kinds {
        group.addTask { [times] in
          do {
            let endpointKeys = try await KillDrill.run(kind, times: times, program: program)
            say("\(kind.rawValue): \(endpointKeys.line)")
            return endpointKeys.isPassed
          } catch {
            say("\(kind.rawValue): could not be drilled: \(error)")
            return false
          }
        }
      }
      return await group.reduce(true) { $0 && $1 } ? 0 : 1
    }
  }
}

/// Where the drill's store is: in a directory, or in a database with its own server.
enum KillGround: Sendable {
  case directory(TemporaryDirectory)
  case postgres(PostgresServer)
  case redis(RedisServer)

  static func prepare(_ kind: DurableStore) async throws -> KillGround {
    switch kind {
    case .fileSystem, .sqlite: .directory(try TemporaryDirectory())
    case .postgres: .postgres(try await .start())
    case .redis: .redis(try await .start())
    }
  }

  func dsn(_ kind: DurableStore) -> String {
    switch self {
    case .directory(let directory): directory.path(kind == .sqlite ? "registry.db" : "state")
    case .postgres(let server): server.dsn()
    case .redis(let server): server.dsn()
    }
  }

  /// Whether there is a database server that can be killed.
  var hasServer: Bool { if case .directory = self { false } else { true } }

  func killServer() async throws {
    switch self {
    case .directory: break
    case .postgres(let server): try await server.kill()
    case .redis(let server): try await server.kill()
    }
  }

  func launchServer() async throws {
    switch self {
    case .directory: break
    case .postgres(let server): try await server.launch()
    case .redis(let server): try await server.launch()
    }
  }

  func stop() async throws {
    switch self {
    case .directory: break
    case .postgres(let server): try await server.stop()
    case .redis(let server): try await server.stop()
    }
  }
}
