import CanonicalJSON
import Foundation
import SslPinningRules

/// `admin confirm`, `admin withdraw`: changes that need two people (`ui.second_person`).
enum AdminProposals {
  private static let id = Argument(
    placeholder: "ID", help: "of the proposal, as admin pending prints it", count: .one)

  static let all = [
    Command(
      "admin confirm", "make a change that another person proposed", argument: id,
      flags: AdminCall.flags,
      notes: [
        "With a token of another name than who proposed it. Nothing is done if the key or its hosts are not as\n"
          + "they were then.",
        AdminCommands.notes,
      ], run: confirm),
    Command(
      "admin withdraw", "take a proposal back, or refuse it", argument: id, flags: AdminCall.flags,
      notes: [AdminCommands.notes], run: withdraw),
  ]

  private static func confirm(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let call = try AdminCall(invocation)
    _ = try await call.make(
      ["proposals", invocation.arguments.first ?? "", "confirm"], posting: .object([:]),
      expecting: ["changes", "warnings"])
    try call.say("done, and published")
    return .yes
  }

  private static func withdraw(
    _ invocation: Invocation
  ) async throws(CommandFailure) -> ExitStatus {
    let call = try AdminCall(invocation)
    _ = try await call.make(
      ["proposals", invocation.arguments.first ?? "", "withdraw"], posting: .object([:]),
      expecting: ["proposal"])
    try call.say("it is taken back")
    return .yes
  }

  /// What waits for a second person, as a table; `nil` if nothing does, or the server knows no proposals.
  static func waiting(
    _ call: AdminCall, at now: Int64
  ) async throws(CommandFailure) -> String? {
    let answer = try await call.askIfKnown(["proposals"], expecting: ["proposals"])
    let proposals = answer?["proposals"]?.arrayValue?.compactMap(\.objectValue) ?? []
    guard !proposals.isEmpty else { return nil }
    var table = TextTable(
      header: [
        "PROPOSAL", "WHAT", "FILE", "ENDPOINT", "PIN", "BY", "WAITS", "WHY", "REQUEST", "WARNINGS",
      ])
    for proposal in proposals {
      func text(_ name: String) -> String { proposal[name]?.stringValue ?? "" }
      table.add([
        text("id"), text("what"), text("file"), text("endpoint"), text("pin"), text("who"),
        AdminLists.span(proposal["at"], to: now), text("why"),
        // Who confirms it confirms all of it. A certificate request is long, and its key is the pin.
        text("what") == "stage" ? "" : text("request"),
        (proposal["warnings"]?.arrayValue ?? []).compactMap(\.stringValue).joined(separator: "; "),
      ])
    }
    return table.text
  }
}

extension AdminCall {
  /// Prints what was done or, if that needs a second person, how it is confirmed.
  func say(_ line: String, _ answer: JSONObject) throws(CommandFailure) {
    guard let proposal = answer["proposal"]?.objectValue else { return try say(line) }
    let id = proposal["id"]?.stringValue ?? ""
    let end = proposal["expires"]?.integerValue.map { ", until \(RFC3339.text($0))" } ?? ""
    try say(
      "proposed, and not done: another person confirms it by ssl-pinning admin confirm \(id)\(end)")
  }
}
