import Foundation

/// `drill [--list] [--filter name]`: proves on real sockets that no change locks anybody out and no
/// attack gets in. `drill kill`: proves that what a store acknowledged survives `kill -9`.
/// `drill replicas`: proves that several servers on one database go on whatever fails.
@main
enum Main {
  static func main() async {
    var arguments = CommandLine.arguments.dropFirst()
    switch arguments.first {
    case "kill": exit(await KillCommand.run(Array(arguments.dropFirst())) { say($0) })
    case "replicas": exit(await ReplicasCommand.run(Array(arguments.dropFirst())) { say($0) })
    case "store-writer", "store-leader":
      exit(await StoreWorker.run(arguments.removeFirst(), Array(arguments)))
    default: break
    }
    var rows = Table.rows
    while let argument = arguments.popFirst() {
      switch argument {
      case "--list":
        for row in rows { say("\(row.isAttack ? "attack" : "change")  \(row.name)") }
        return
      case "--filter":
        let text = (arguments.popFirst() ?? "").lowercased()
        rows = rows.filter { $0.name.lowercased().contains(text) }
        if rows.isEmpty { say("no row has \"\(text)\" in its name; hint: --list") }
      default:
        FileHandle.standardError.write(
          Data("unknown argument \(argument); hint: --list or --filter name\n".utf8))
        exit(2)
      }
    }
    do { try ProxyLines.install() } catch {
      say("no proxy lines: \(error)")
      exit(1)
    }
    exit(await Drill(rows: rows).run(say: say) ? 0 : 1)
  }

  /// At once, whatever standard output is.
  private static func say(_ line: String) {
    FileHandle.standardOutput.write(Data("\(line)\n".utf8))
  }
}
