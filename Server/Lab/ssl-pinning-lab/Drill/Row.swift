import SslPinning
import SslPinningPlatform

/// One scenario of the drill.
struct Row: Sendable {
  /// What happens in it. Outcomes can only be made from requests that were sent, so a row without its
  /// control or its assertion does not compile, or fails.
  enum Scenario: Sendable {
    /// Something that operators or devices do. It must lock nobody out.
    case change(@Sendable (ChangeLog) async throws -> ChangeOutcome)
    /// Something that attackers do. It must let nobody in.
    case attack(@Sendable () async throws -> AttackOutcome)
  }

  /// The row's name, in the table and for `--filter`.
  let name: String
  let scenario: Scenario

  static func change(
    _ name: String, _ body: @escaping @Sendable (ChangeLog) async throws -> ChangeOutcome
  ) -> Row {
    Row(name: name, scenario: .change(body))
  }

  static func attack(
    _ name: String, _ body: @escaping @Sendable () async throws -> AttackOutcome
  ) -> Row {
    Row(name: name, scenario: .attack(body))
  }

  var isAttack: Bool { if case .attack = scenario { true } else { false } }
}

/// How a row ended.
struct RowResult: Sendable {
  /// The result that the final line counts.
  enum End: Sendable, Equatable {
    /// The claim held.
    case held
    /// A change row in which a request was not served.
    case lockedOut
    /// An attack row in which an attacker got in.
    case accepted
    /// It proved nothing: no control, no assertion, or a refusal by another rule than the expected one.
    case incomplete
  }

  let row: Row
  let end: End
  /// One line: what was shown, or why nothing was.
  let text: String

  /// Runs a row.
  ///
  /// - Parameter limit: after so many seconds a row that hangs is given up. It goes on in the background.
  static func run(_ row: Row, limit: Double = 180) async -> RowResult {
    await withCheckedContinuation { continuation in
      let waiting = Locked<CheckedContinuation<RowResult, Never>?>(continuation)
      let end: @Sendable (RowResult) -> Void = { result in
        let first = waiting.withLock { waiting in
          defer { waiting = nil }
          return waiting
        }
        first?.resume(returning: result)
      }
      let clock = Task {
        try await Task.sleep(nanoseconds: UInt64(limit * 1_000_000_000))
        end(RowResult(row: row, end: .incomplete, text: "it did not end within \(limit) s"))
      }
      Task {
        end(await toItsEnd(row))
        clock.cancel()
      }
    }
  }

  private static func toItsEnd(_ row: Row) async -> RowResult {
    let log = ChangeLog()
    do {
      switch row.scenario {
      case .change(let body): return RowResult(row, try await body(log))
      case .attack(let body): return RowResult(row, try await body())
      }
    } catch let error as Breach {
      return RowResult(row: row, end: .accepted, text: error.description)
    } catch let error as SslPinningError where !row.isAttack {
      return RowResult(row: row, end: .lockedOut, text: "LOCK-OUT: no client: \(error)")
    } catch {
      // A lock-out before the failure still counts.
      let lockOut = ChangeOutcome("", log).lockOut
      return RowResult(
        row: row, end: lockOut == nil ? .incomplete : .lockedOut,
        text: "\(error)" + (lockOut.map { "; LOCK-OUT: \($0)" } ?? ""))
    }
  }

  private init(row: Row, end: End, text: String) {
    (self.row, self.end, self.text) = (row, end, text)
  }

  private init(_ row: Row, _ outcome: ChangeOutcome) {
    let seconds = outcome.refused > 0 ? " in \(outcome.refusedSeconds) s" : ""
    var facts = ["\(outcome.requests.count) requests", "refused \(outcome.refused)\(seconds)"]
    if let healing = outcome.healing {
      facts.append(
        "healed in \(healing.seconds.inTenths) s (bound \(healing.bound.inTenths) s)")
    }
    let text = "\(outcome.shown); \(facts.joined(separator: ", "))"
    if let lockOut = outcome.lockOut {
      self.init(row: row, end: .lockedOut, text: "\(text); LOCK-OUT: \(lockOut)")
    } else if let fault = outcome.fault {
      self.init(row: row, end: .incomplete, text: "\(text); \(fault)")
    } else {
      self.init(row: row, end: .held, text: text)
    }
  }

  private init(_ row: Row, _ outcome: AttackOutcome) {
    let bytes = outcome.exhibits.reduce(0) { $0 + $1.bytesRead }
    let control = outcome.exhibits.first?.control ?? ""
    let more = outcome.exhibits.count - 1
    let text =
      "\(outcome.shown); control: \(control)" + (more > 0 ? " (and \(more) more)" : "")
      + "; attacker read \(bytes) bytes"
    if outcome.exhibits.contains(where: \.isAccepted) {
      self.init(row: row, end: .accepted, text: "\(text); ACCEPTED")
    } else if let fault = outcome.exhibits.lazy.compactMap(\.fault).first {
      self.init(row: row, end: .incomplete, text: "\(text); \(fault)")
    } else {
      self.init(row: row, end: .held, text: text)
    }
  }

  /// One line for the terminal.
  var line: String {
    "\(end == .held ? "✔" : "✘") \(row.isAttack ? "attack" : "change")  \(row.name): \(text)"
  }
}
