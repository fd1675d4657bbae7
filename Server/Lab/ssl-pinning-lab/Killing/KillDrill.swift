import Foundation
import RegistryServer
import RegistryStores
import TestSupport

/// Kills a process that writes, with `kill -9`, at any moment of its life, again and again, and probes
/// after each time whether everything that was acknowledged is there.
///
/// - In every second round somebody else reads meanwhile, through a handle of its own; in the others
///   nobody does, so that the store is opened as after a restart of everything.
/// - In every 25th round of a database its server is killed too, while the writer writes.
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
    // Some die before they have begun, most in the midst of it.
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

  /// What the store has, with as much of the history as a few rounds bring.
  ///
  /// A database may still commit what a writer sent before it died: record and history are read again
  /// until no replacement came between them.
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
