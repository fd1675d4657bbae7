import CanonicalJSON
import Foundation
import SslPinningRules

/// `admin pending`, `admin denials`, `admin history`: what waits for people, and what they decided, all of it.
enum AdminLists {
  private static let limit = Flag.number(
    "--limit", "N", "how many entries, the newest first; 100 by default", in: 1...1_000_000)

  static let all = [
    Command(
      "admin pending", "list what waits for a person: keys, and changes for a second one",
      flags: AdminCall.flags,
      notes: [
        "With its issuer and that one's pin (admin approve --issuer), how long the key has waited, when it was last\n"
          + "seen, how many apps reported it, and which vantage points saw it.\n"
          + "A key that nobody has seen for a while is perhaps gone again. --json has the keys alone.",
        AdminCommands.notes,
      ], run: pending),
    Command(
      "admin denials", "list the keys that are refused", flags: AdminCall.flags,
      notes: [AdminCommands.notes], run: denials),
    Command(
      "admin history", "list what happened to a document's endpoints and keys",
      flags: [AdminCommands.file.description, limit.description] + AdminCall.flags,
      notes: [AdminCommands.notes], run: history),
    Command(
      "admin tokens", "list the tokens that were used since the server started",
      flags: AdminCall.flags,
      notes: [
        "To end one, put its id into ui.revoked_tokens of each server's configuration, and SIGHUP.",
        "The list is that of the one server that is asked.",
      ], run: tokens),
  ]

  private static func pending(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let call = try AdminCall(invocation, scope: .read)
    let items = try await call.list(["pending"], "items") { answer, known in
      Int64(known) < answer["total"]?.integerValue ?? 0
        ? ["offset": Int64(known), "limit": 1000] : nil
    }
    let now = Int64(Date().timeIntervalSince1970)
    var table = TextTable(
      header: [
        "FILE", "ENDPOINT", "PIN", "ISSUER", "ISSUER PIN", "WAITS", "LAST SEEN", "APPS", "BY",
        "BECAUSE",
      ])
    for item in items {
      let candidate = item["candidate"]?.objectValue
      let chain = candidate?["chain"]?.arrayValue?.compactMap(\.objectValue) ?? []
      table.add([
        item["file"]?.stringValue ?? "", item["endpoint"]?.stringValue ?? "",
        candidate?["pin"]?.stringValue ?? "",
        chain.first?["issuer"]?.stringValue ?? "",
        // A certificate that signed itself is its own issuer.
        (chain.dropFirst().first ?? candidate)?["pin"]?.stringValue ?? "",
        span(candidate?["firstSeen"], to: now), span(candidate?["lastSeen"], to: now) + " ago",
        apps(candidate?["met"]?.objectValue),
        (candidate?["vantages"]?.arrayValue ?? []).compactMap(\.stringValue)
          .joined(separator: ", "),
        (candidate?["reasons"]?.arrayValue ?? []).compactMap { reason in
          reason.stringValue ?? reason.objectValue?["reason"]?.stringValue
        }.joined(separator: ", "),
      ])
    }
    try call.say(items.isEmpty ? "no key waits" : table.text)
    if !call.printsJSON, let proposals = try await AdminProposals.waiting(call, at: now) {
      try call.say("\n" + proposals)
    }
    return .yes
  }

  /// How many apps meet a key, as they reported; a server of before says nothing of it.
  private static func apps(_ met: JSONObject?) -> String {
    guard let apps = met?["apps"]?.integerValue, let reports = met?["reports"]?.integerValue else {
      return "?"
    }
    return reports == 0 ? "none" : "about \(apps)"
  }

  /// A time that has passed, in the largest unit that says it: a server's clock may run ahead of this one.
  static func span(_ since: JSONValue?, to now: Int64) -> String {
    guard let since = since?.integerValue else { return "?" }
    let seconds = max(0, now - since)
    return switch seconds {
    case ..<120: "\(seconds) s"
    case ..<7200: "\(seconds / 60) min"
    case ..<172_800: "\(seconds / 3600) h"
    default: "\(seconds / 86_400) days"
    }
  }

  private static func denials(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let call = try AdminCall(invocation, scope: .read)
    let denials = try await call.make(["denials"], expecting: ["denials"])["denials"]?.arrayValue
    var table = TextTable(header: ["PIN", "SINCE", "BY", "WHY"])
    for denial in denials?.compactMap(\.objectValue) ?? [] {
      table.add([
        denial["pin"]?.stringValue ?? "", denial["at"]?.integerValue.map(dateText) ?? "",
        denial["by"]?.stringValue ?? "", denial["why"]?.stringValue ?? "",
      ])
    }
    try call.say(denials?.isEmpty ?? true ? "no key is denied" : table.text)
    return .yes
  }

  private static func tokens(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let call = try AdminCall(invocation)
    let tokens = try await call.make(["tokens"], expecting: ["tokens"])["tokens"]?.arrayValue
    var table = TextTable(header: ["ID", "NAME", "SCOPE", "EXPIRES", "LAST USED", "FROM", ""])
    for token in tokens?.compactMap(\.objectValue) ?? [] {
      table.add([
        token["id"]?.stringValue ?? "", token["name"]?.stringValue ?? "",
        token["scope"]?.stringValue ?? "", token["expires"]?.integerValue.map(RFC3339.text) ?? "",
        token["lastUsed"]?.integerValue.map(RFC3339.text) ?? "", token["peer"]?.stringValue ?? "",
        token["revoked"] == .bool(true) ? "revoked" : "",
      ])
    }
    try call.say(table.text)
    return .yes
  }

  private static func history(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let path = ["documents", try invocation.require(AdminCommands.file), "history"]
    let call = try AdminCall(invocation, scope: .read)
    let entries = try await call.list(path, "entries", atMost: Int(invocation[limit] ?? 100)) {
      answer, _ in
      answer["next"]?.integerValue.map { ["before": $0, "limit": 1000] }
    }
    var table = TextTable(header: ["TIME", "EVENT", "ENDPOINT", "PIN", "WHO", "WHY"])
    for entry in entries {
      table.add([
        entry["time"]?.integerValue.map(RFC3339.text) ?? "", entry["event"]?.stringValue ?? "",
        entry["endpoint"]?.stringValue ?? "", entry["pin"]?.stringValue ?? "",
        entry["who"]?.stringValue ?? "", entry["why"]?.stringValue ?? "",
      ])
    }
    try call.say(entries.isEmpty ? "nothing happened yet" : table.text)
    return .yes
  }
}
