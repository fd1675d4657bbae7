import FaultLab
import Foundation
import SslPinning

/// `lab list`, `lab up`, `lab run`: the scenarios for any client; `lab proxy` is for clients of one's own.
enum ClientCommands {
  static func run(_ arguments: [String], say: @escaping @Sendable (String) -> Void) async -> Int32 {
    switch arguments.first {
    case "list":
      for scenario in ClientScenario.all {
        say("\(scenario.isAttack ? "attack" : "change")  \(scenario.name)  \(scenario.what)")
      }
      return 0
    case "up": return await up(Array(arguments.dropFirst()), say: say)
    case "run": return await drive(Array(arguments.dropFirst()), say: say)
    case "proxy": return await ProxyCommand.run(Array(arguments.dropFirst()), say: say)
    default:
      Terminal.complain("lab needs list, up, run or proxy")
      return 2
    }
  }

  private static func scenarios(_ names: [String]) -> [ClientScenario]? {
    let unknown = names.filter { name in !ClientScenario.all.contains { $0.name == name } }
    guard unknown.isEmpty else {
      Terminal.complain("unknown scenario \(unknown[0])")
      return nil
    }
    return names.isEmpty
      ? ClientScenario.all : ClientScenario.all.filter { names.contains($0.name) }
  }

  /// Lets scenarios happen and leaves their servers up, for a client that is pointed at them by hand.
  private static func up(
    _ names: [String], say: @Sendable (String) -> Void
  ) async -> Int32 {
    guard let scenarios = scenarios(names) else { return 2 }
    guard let end = try? await DemoDirectory() else {
      Terminal.complain("no temporary directory")
      return 1
    }
    var held: [(ClientStage, LocalTLSServer?)] = []
    for scenario in scenarios {
      do {
        let stage = try ClientStage()
        let attacker = try await scenario.happen(stage) {}
        held.append((stage, attacker))
        say("\(scenario.name): \(scenario.what)")
        say("  expected: \(scenario.isAttack ? "refused" : "served")")
        for (name, value) in stage.values where !["host", "port", "storage"].contains(name) {
          say("  \(name): \(value)")
        }
      } catch {
        Terminal.complain("\(scenario.name): \(error)")
        return 1
      }
    }
    await end.untilTerminated { say("up; Ctrl-C ends it") }
    withExtendedLifetime(held) {}
    end.remove()
    return 0
  }

  /// Drives clients through scenarios.
  private static func drive(
    _ arguments: [String], say: @escaping @Sendable (String) -> Void
  ) async -> Int32 {
    var (clients, names, rest) = ([ClientUnderTest](), [String](), arguments[...])
    while let word = rest.popFirst() {
      if word == "--client" {
        guard let text = rest.popFirst(), !text.isEmpty else {
          Terminal.complain("--client needs a command with {url} in it")
          return 2
        }
        guard let client = client(text) else { return 2 }
        clients.append(client)
      } else if word.hasPrefix("-") {
        Terminal.complain("unknown argument \(word)")
        return 2
      } else {
        names.append(word)
      }
    }
    guard let scenarios = scenarios(names) else { return 2 }
    if clients.isEmpty { clients = [.own()] }
    var table = ClientTable(clients.map(\.name))
    for scenario in scenarios {
      var verdicts: [ClientVerdict] = []
      for client in clients { verdicts.append(await ClientVerdict.of(client, in: scenario)) }
      table.add(scenario, verdicts)
    }
    for line in table.lines { say(line) }
    return table.isClean ? 0 : 1
  }

  /// `sdk`, `COMMAND {url}`, or either with a name in front: `curl=curl {url}`.
  private static func client(_ text: String) -> ClientUnderTest? {
    if text == "sdk" { return .own() }
    let cut = text.firstIndex(of: "=")
    let head = cut.map { String(text[..<$0]) } ?? ""
    let isNamed =
      !head.isEmpty && head.allSatisfy { $0.isLetter || $0.isNumber || " -_.,+".contains($0) }
      && !head.hasPrefix("-") && !head.contains(" -")
    let command = isNamed ? String(text[text.index(after: cut ?? text.startIndex)...]) : text
    guard command.contains("{url}") || command.contains("{port}") else {
      Terminal.complain("--client has no {url} in it")
      return nil
    }
    return .command(command, name: isNamed ? head : String(command.prefix { $0 != " " }))
  }
}
