import CanonicalJSON
import SslPinningRules

/// A verdict in full: host, rule, presented and expected pins, registry and its age.
struct VerdictReport {
  private let verdict: PinEvaluation
  private let now: Int64

  /// - Parameter now: Unix time in seconds, for ages.
  init(_ verdict: PinEvaluation, at now: Int64) {
    self.verdict = verdict
    self.now = now
  }

  /// One line that says it, then a table.
  var text: String {
    var table = TextTable()
    table.add(["  host", verdict.host])
    table.add(["  rule", verdict.rule])
    add(verdict.presented.map(\.base64), as: "presented", to: &table)
    add(verdict.expectedLeaf.map(text), as: "expected", to: &table)
    if !verdict.expectedCA.isEmpty {
      add(verdict.expectedCA.map(text), as: "expected CA", to: &table)
    }
    if let registry = verdict.registry {
      table.add(["  registry", "payload sha256 \(registry.payloadDigest)"])
      if let version = registry.version {
        table.add(["", "version \(version.epoch).\(version.version)"])
      }
      let stale = verdict.isStale ? ", stale" : ""
      table.add(["", "confirmed \(registry.age(at: now)) s ago\(stale)"])
    }
    return "\(sentence)\n\(table.text)"
  }

  /// The verdict's own line, with the tool's flags where the library's hint names what an app calls.
  private var sentence: String {
    guard let hint = verdict.hint else { return verdict.description }
    let own: String? =
      switch verdict.outcome {
      case .chainRejected(let fault) where fault.lacksAnchor: "--ca FILE names a CA of your own"
      case .unlisted: "add the host to the registry"
      case .clearText: "use https"
      default: nil
      }
    guard let own else { return verdict.description }
    return verdict.description.dropLast(hint.count) + own
  }

  var json: JSONValue {
    .members([
      "decision": .string(verdict.decision == .accept ? "accept" : "refuse"),
      "host": .string(verdict.host), "rule": .string(verdict.rule),
      "reason": .string(sentence),
      "presented": .array(verdict.presented.map { .string($0.base64) }),
      "expectedLeaf": .array(verdict.expectedLeaf.map(json)),
      "expectedCA": .array(verdict.expectedCA.map(json)),
      "registry": verdict.registry.map(json) ?? .null,
    ])
  }

  private func add(_ pins: [String], as name: String, to table: inout TextTable) {
    table.add(["  \(name)", pins.first ?? "(none)"])
    for pin in pins.dropFirst() { table.add(["", pin]) }
  }

  private func text(_ pin: Pin) -> String {
    pin.spki.base64 + (pin.expires.map { ", expires \(dateText($0))" } ?? "")
  }

  private func json(_ pin: Pin) -> JSONValue {
    .members([
      "pin": .string(pin.spki.base64), "expire": pin.expires.map(JSONValue.integer) ?? .null,
    ])
  }

  private func json(_ stamp: RegistryStamp) -> JSONValue {
    .members([
      "payloadDigest": .string(stamp.payloadDigest), "confirmed": .integer(stamp.confirmed),
      "age": .integer(stamp.age(at: now)), "stale": .bool(verdict.isStale),
      "epoch": stamp.version.map { .integer($0.epoch) } ?? .null,
      "version": stamp.version.map { .integer($0.version) } ?? .null,
    ])
  }
}
