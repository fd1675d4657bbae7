/// Runs the rows and counts their results.
struct Drill: Sendable {
  let rows: [Row]
  /// How many rows run at a time.
  var width = 4

  /// Runs all rows and reports their lines in the table's order, then the final line.
  ///
  /// - Returns: whether nobody was locked out, no attack got in, and every row is complete.
  func run(say: (String) -> Void) async -> Bool {
    var waiting: [Int: RowResult] = [:]
    var results: [RowResult] = []
    await withTaskGroup(of: (Int, RowResult).self) { group in
      var next = rows.indices.makeIterator()
      func begin() {
        guard let index = next.next() else { return }
        group.addTask { [rows] in (index, await RowResult.run(rows[index])) }
      }
      for _ in 0..<width { begin() }
      for await (index, result) in group {
        begin()
        waiting[index] = result
        while let ready = waiting.removeValue(forKey: results.count) {
          results.append(ready)
          say(ready.line)
        }
      }
    }
    let score = Score(results)
    say(score.line)
    return score.isPassed
  }
}

/// The figures of the final line.
struct Score: Sendable, Equatable {
  var changes = 0
  var lockOuts = 0
  var attacks = 0
  var accepted = 0
  var incomplete = 0

  init(_ results: [RowResult]) {
    for result in results {
      if result.row.isAttack { attacks += 1 } else { changes += 1 }
      switch result.end {
      case .held: break
      case .lockedOut: lockOuts += 1
      case .accepted: accepted += 1
      case .incomplete: incomplete += 1
      }
    }
  }

  /// Whether the drill passed; without any row it proves nothing.
  var isPassed: Bool { lockOuts + accepted + incomplete == 0 && changes + attacks > 0 }

  var line: String {
    let line =
      "drill: \(changes) changes, \(lockOuts) lock-outs; \(attacks) attacks, \(accepted) accepted"
    return incomplete == 0 ? line : "\(incomplete) rows proved nothing\n\(line)"
  }
}

/// `drill [--list] [--filter NAME]`: proves on real sockets that no change locks anybody out and no
/// attack gets in.
enum DrillCommand {
  /// - Returns: the exit status: 1 if a row failed or proved nothing.
  static func run(
    _ arguments: [String], of all: [Row], say: @Sendable (String) -> Void
  ) async -> Int32 {
    var rows = all
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      switch argument {
      case "--list":
        for row in rows { say("\(row.isAttack ? "attack" : "change")  \(row.name)") }
        return 0
      case "--filter":
        let text = (rest.popFirst() ?? "").lowercased()
        rows = rows.filter { $0.name.lowercased().contains(text) }
        if rows.isEmpty { say("no row has \"\(text)\" in its name; hint: --list") }
      default:
        Terminal.complain("unknown argument \(argument)")
        return 2
      }
    }
    do { try ProxyLines.install() } catch {
      say("no proxy lines: \(error)")
      return 1
    }
    return await Drill(rows: rows).run(say: say) ? 0 : 1
  }
}
