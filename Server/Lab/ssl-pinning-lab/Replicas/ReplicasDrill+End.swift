import CanonicalJSON
import Foundation
import RegistryCore
import RegistryServer
import RegistryStores
import TestSupport

/// The end, and what it all came to.
extension ReplicasDrill {
  /// Ends every replica while it answers, then counts.
  func end() async throws {
    await stage.rotator.stop()
    try? await until("every key is published everywhere") {
      everybody.allSatisfy { stage.rotator.isPublished(by: $0) }
    }
    for number in everybody where !stage.rotator.isPublished(by: number) {
      report.fault("replica \(number) does not publish every key in the end")
    }
    let complete = try await endReplicas()
    try await count(complete)
  }

  /// - Returns: how many answers under way were completed.
  private func endReplicas() async throws -> Int {
    var complete = 0
    for replica in stage.replicas {
      stage.readers[replica.number].aim(at: nil)
      // Slow readers: the answer does not fit into what the kernel takes.
      let waiting = try (0..<8).map { _ in
        let connection = try PlainConnection(port: replica.port, window: 2048)
        try connection.send("/api/v1/\(ReplicaStage.steadyFile)")
        return connection
      }
      try await Task.sleep(for: .milliseconds(100))
      async let status = replica.end(SIGTERM)
      for connection in waiting {
        do throws(PlainFailure) {
          let answer = try connection.receive()
          if answer.status == 200 { complete += 1 } else { report.fault("\(answer.status)") }
        } catch { report.fault("an answer under way at SIGTERM: \(error)") }
      }
      let code = try await status
      if code != 0 { report.fault("replica \(replica.number) ended with \(code)") }
    }
    return complete
  }

  /// The end of a connection is told to both its ends at one moment. Which of two processes acts on it
  /// first is the machine's.
  private static let momentary = Duration.milliseconds(500)

  private func count(_ complete: Int) async throws {
    let (book, keysByEndpoint) = (stage.book, stage.book.keysByEndpoint)
    for failure in book.failures.prefix(10) { report.fault(failure) }
    let overlaps = stage.logs.leaders.overlaps.filter { $0 > Self.momentary }
    for overlap in overlaps { report.fault("two led at once for \(overlap.inMilliseconds) ms") }
    let backwards = keysByEndpoint.map(\.backwards).reduce(0, +)
    let conflicts = keysByEndpoint.map(\.twice).reduce(0, +)
    let dropped = keysByEndpoint.map(\.dropped).reduce(0, +)
    let audits = try await audit()
    let twice = audits.flatMap(\.twice)
    let lost = audits.flatMap(\.lost)
    let invented = audits.flatMap(\.invented)
    if backwards + conflicts + dropped > 0 {
      report.fault(
        "\(backwards) answers older than before, \(conflicts) numbers with two documents,"
          + " \(dropped) documents that lack earlier keys")
    }
    for key in twice { report.fault("the history publishes \(key) twice") }
    for entry in audits.flatMap(\.repeated) {
      report.fault("the history has \(entry.event) of \(entry.endpoint) twice, to the letter")
    }
    for key in lost { report.fault("the history does not publish \(key)") }
    for key in invented { report.fault("nobody showed \(key)") }
    let keys = stage.rotator.shown.values.map(\.count).reduce(0, +)
    report.note(
      "\(book.requests) requests, \(book.failures.count) failures, \(complete) answers completed after"
        + " SIGTERM, \(keysByEndpoint.map(\.versions).reduce(0, +)) versions, \(keys) keys,"
        + " \(conflicts + twice.count) published twice, \(lost.count) lost, \(overlaps.count) times two"
        + " leaders")
    if let longest = stage.logs.leaders.overlaps.max(), overlaps.isEmpty {
      report.note("as a connection ended, two led for \(longest.inMilliseconds) ms at most")
    }
  }

  /// What the database remembers of each document.
  private func audit() async throws -> [HistoryAudit] {
    let store = try PostgresStore(dsn: stage.network.operatorDSN, isInsecure: true)
    var audits: [HistoryAudit] = []
    for (file, shown) in stage.rotator.shown {
      let stored = try await store.history(of: file, before: nil, limit: .max)
      let entries = stored.compactMap { entry in
        (try? JSONValue(parsing: entry.bytes)).flatMap { HistoryEntry($0) }
      }
      if entries.count != stored.count || Int64(stored.count) != stored.first?.number ?? 0 {
        report.fault("the history of \(file) has gaps, or what is no entry")
      }
      audits.append(HistoryAudit(entries, shown: shown))
    }
    await store.close()
    return audits
  }
}
