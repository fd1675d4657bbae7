/// `drill [--list] [--filter NAME]`: proves on real sockets that no change locks anybody out and no
/// attack gets in.
enum DrillCommand {
  /// - Returns: the exit status: 1 if a row failed or proved nothing.
  static func run(_ arguments: [String], say: @Sendable (String) -> Void) async -> Int32 {
    var rows = Table.rows
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
        Main.complain("unknown argument \(argument)")
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
