import CanonicalJSON
import FaultLab
import SslPinningRules

/// What came of all connections of `lab proxy`, by host.
struct ProxySummary {
  /// Counts of one host's connections.
  struct Host {
    var letIn = 0
    var refused = 0
    var passed = 0
    /// Cut off as asked, or failed for a reason that says nothing of the client.
    var unclear = 0

    mutating func add(_ outcome: LabProxy.Outcome) {
      switch outcome {
      case .letIn, .clearText: letIn += 1
      case .refused, .closed: refused += 1
      case .passed: passed += 1
      case .interrupted, .unclear: unclear += 1
      }
    }
  }

  /// What is known of a host that must refuse.
  enum Verdict: String {
    case held
    case letIn = "let-in"
    /// Nobody was tempted: nothing is proved.
    case neverTried = "never-tried"
  }

  private static let limit = 1000
  private var hosts: [String: Host] = [:]
  /// Connections to hosts beyond the limit.
  private var others = Host()
  /// Counted apart, so that no number of other hosts hides them.
  private var watched: [(pattern: HostPattern, counts: Host)]

  init(mustRefuse patterns: [HostPattern]) { watched = patterns.map { ($0, Host()) } }

  mutating func add(_ connection: LabProxy.Connection) {
    let name = try? HostName(connection.host)
    for index in watched.indices
    where name.map({ watched[index].pattern.matches($0) }) == true {
      watched[index].counts.add(connection.outcome)
    }
    let host = name?.description ?? connection.host
    if hosts[host] != nil || hosts.count < Self.limit {
      hosts[host, default: Host()].add(connection.outcome)
    } else {
      others.add(connection.outcome)
    }
  }

  var verdicts: [(pattern: HostPattern, verdict: Verdict)] {
    watched.map { pattern, counts in
      (pattern, counts.letIn > 0 ? .letIn : counts.refused > 0 ? .held : .neverTried)
    }
  }

  /// 1 if a host that must refuse let the attacker in, 3 if one was never tried.
  var exitCode: Int32 {
    let verdicts = verdicts.map(\.verdict)
    return verdicts.contains(.letIn) ? 1 : verdicts.contains(.neverTried) ? 3 : 0
  }

  private var ordered: [(String, Host)] {
    hosts.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      + (others.letIn + others.refused + others.passed + others.unclear > 0
        ? [("further hosts", others)] : [])
  }

  /// For people.
  var lines: [String] {
    func list(_ title: String, _ isPart: (Host) -> Bool, _ count: (Host) -> Int) -> [String] {
      let found = ordered.filter { isPart($0.1) }.map { "\($0.0) (\(count($0.1)))" }
      return found.isEmpty ? [] : ["\(title): \(found.joined(separator: ", "))"]
    }
    return list("let the attacker in", { $0.letIn > 0 }, \.letIn)
      + list("refused him", { $0.letIn == 0 && $0.refused > 0 }, \.refused)
      + list("passed through", { $0.letIn + $0.refused == 0 && $0.passed > 0 }, \.passed)
      + list("no verdict", { $0.letIn + $0.refused + $0.passed == 0 }, \.unclear)
      + (hosts.isEmpty ? ["nobody came"] : [])
      + verdicts.map { "must refuse \($0.pattern): \($0.verdict.text)" }
  }

  /// The last line with `--json`.
  var json: JSONObject {
    let hosts = ordered.map { name, host in
      JSONValue.object([
        "host": .string(name), "letIn": .count(host.letIn), "refused": .count(host.refused),
        "passed": .count(host.passed), "unclear": .count(host.unclear),
      ])
    }
    let musts = verdicts.map {
      JSONValue.object([
        "host": .string("\($0.pattern)"), "result": .string($0.verdict.rawValue),
      ])
    }
    return ["hosts": .array(hosts), "mustRefuse": .array(musts)]
  }
}

extension ProxySummary.Verdict {
  var text: String {
    switch self {
    case .held: "held"
    case .letIn: "LET IN"
    case .neverTried: "never tried, so nothing is proved"
    }
  }
}

extension JSONValue {
  static func count(_ count: Int) -> JSONValue {
    .number(JSONNumber(exactly: Int64(count)) ?? 0)
  }
}

extension LabProxy.Connection {
  /// A line for people.
  var line: String {
    let name = serverName.map { $0 == host ? "" : " (asked for \($0))" } ?? ""
    return "\(host):\(port)\(name): \(outcome.text)"
  }

  /// A line of JSON.
  var json: JSONObject {
    var object: JSONObject = [
      "connection": .count(number), "host": .string(host), "port": .count(Int(port)),
      "sni": serverName.map(JSONValue.string) ?? .null, "outcome": .string(outcome.word),
    ]
    switch outcome {
    case .letIn(let sent): object["sent"] = sent.map(JSONValue.string) ?? .null
    case .clearText(let method): object["sent"] = .string(method)
    case .refused(let alert), .closed(let alert):
      object["alert"] = alert.map(JSONValue.string) ?? .null
    case .unclear(let reason): object["reason"] = .string(reason)
    case .passed, .interrupted: break
    }
    return object
  }
}

extension LabProxy.Outcome {
  fileprivate var word: String {
    switch self {
    case .letIn: "let-in"
    case .clearText: "clear-text"
    case .refused: "refused"
    case .closed: "closed"
    case .passed: "passed"
    case .interrupted: "interrupted"
    case .unclear: "unclear"
    }
  }

  fileprivate var text: String {
    switch self {
    case .letIn(let sent): "LET IN, it sent \(sent ?? "something that is no HTTP")"
    case .clearText(let method): "LET IN, it sent \(method) in clear text"
    case .refused(let alert?): "refused in the handshake, alert \"\(alert)\""
    case .refused: "refused in the handshake, without an alert"
    case .closed(let alert?): "refused after the handshake, alert \"\(alert)\""
    case .closed: "refused after the handshake, nothing sent"
    case .passed: "passed through unread"
    case .interrupted: "cut off"
    case .unclear(let reason): "no verdict: \(reason)"
    }
  }
}
