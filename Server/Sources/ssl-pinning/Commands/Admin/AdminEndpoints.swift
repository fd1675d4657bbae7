import CanonicalJSON
import SslPinningRules

/// `admin add`, `remove`, `pause`, `resume`, `terms`: which endpoints the running server probes, and what clients ask of
/// their hosts.
enum AdminEndpoints {
  private static let port = Flag.number("--port", "PORT", "443 by default", in: 1...65_535)
  private static let address = Flag.text(
    "--address", "IP", "where it is dialled, in place of what its name resolves to")
  private static let patterns = Flag.texts(
    "--pattern", "PATTERN",
    "hosts whose clients meet it, such as *.example.com; its name by default")
  private static let interval = Flag.text(
    "--interval", "DURATION", "between two probes, as in 30s; the document's by default")

  private static let authorities = Flag.texts(
    "--ca", "PIN", "a key that stands above the hosts' certificates; replaces all that were named")
  private static let noAuthority = Flag("--no-ca", "name no CA any more")
  private static let match = Flag.text(
    "--match", "WORD", "all: a listed key under one of the CAs; any: one of the two")
  private static let enforce = Flag.text(
    "--enforce", "WORD", "on: every app refuses, irreversibly; app: each app decides")
  private static let force = Flag(
    "--force", "also where the hosts' servers show none of the CAs")

  static let all = [
    Command(
      "admin add", "begin to watch an endpoint",
      argument: Argument(placeholder: "HOST", help: "its name", count: .one),
      flags: [
        AdminCommands.file.description, port.description, address.description,
        patterns.description, interval.description, AdminCommands.why.description,
      ] + AdminCall.flags,
      notes: [
        "Its keys are published once they are confirmed. An endpoint that was taken out is watched again.",
        AdminCommands.notes,
      ], run: add),
    Command(
      "admin remove", "watch an endpoint no more, and publish its keys no more", flags: flags,
      notes: [
        "Clients forget hosts that no other endpoint of the document has, and refuse them.",
        AdminCommands.notes,
      ], run: remove),
    Command(
      "admin pause", "probe an endpoint no more, while its keys stay published", flags: flags,
      notes: [AdminCommands.notes],
      run: { invocation async throws(CommandFailure) in
        try await change("paused", true, "is paused", invocation)
      }),
    Command(
      "admin resume", "probe a paused endpoint again", flags: flags, notes: [AdminCommands.notes],
      run: { invocation async throws(CommandFailure) in
        try await change("paused", false, "is probed", invocation)
      }),
    Command(
      "admin terms", "set what clients ask of an endpoint's hosts beside a listed key",
      flags: [
        AdminCommands.file.description, AdminCommands.endpoint.description,
        authorities.description, noAuthority.description, match.description, enforce.description,
        force.description, AdminCommands.why.description,
      ] + AdminCall.flags,
      notes: [
        "What no flag names stays as it is. Under --match any, whoever gets a certificate of such a CA gets in.",
        AdminCommands.notes,
      ], run: terms),
  ]

  private static let flags =
    [
      AdminCommands.file.description, AdminCommands.endpoint.description,
      AdminCommands.why.description,
    ] + AdminCall.flags

  private static func add(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let host = invocation.arguments.first ?? ""
    let path = ["documents", try invocation.require(AdminCommands.file), "endpoints"]
    var body: JSONObject = ["fqdn": .string(host)]
    body["port"] = invocation[port].map { .integer($0) }
    body["address"] = invocation[address].map { .string($0) }
    body["interval"] = invocation[interval].map { .string($0) }
    body["why"] = invocation[AdminCommands.why].map { .string($0) }
    let named = invocation[patterns] ?? []
    if !named.isEmpty { body["patterns"] = .array(named.map { .string($0) }) }
    let call = try AdminCall(invocation)
    let answer = try await call.make(path, posting: .object(body), expecting: ["id", "changes"])
    try call.say("\(answer["id"]?.stringValue ?? host) is watched", answer)
    return .yes
  }

  private static func remove(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    try await act("remove", [:], "is not watched any more", invocation)
  }

  private static func terms(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let named = invocation[authorities] ?? []
    guard named.isEmpty || !invocation[noAuthority] else {
      throw .usage("--ca and --no-ca contradict each other; hint: pass one of them")
    }
    var body: JSONObject = ["force": .bool(invocation[force])]
    if !named.isEmpty || invocation[noAuthority] {
      body["ca"] = .array(named.map { .string($0) })
    }
    body["match"] = invocation[match].map { .string($0) }
    body["enforce"] = invocation[enforce].map { .string($0) }
    guard body.count > 1 else {
      throw .usage("nothing to change; hint: --ca, --no-ca, --match or --enforce")
    }
    return try await act("terms", body, "has these terms", invocation)
  }

  private static func change(
    _ member: String, _ value: Bool, _ told: String, _ invocation: Invocation
  ) async throws(CommandFailure) -> ExitStatus {
    try await act("change", [member: .bool(value)], told, invocation)
  }

  private static func act(
    _ action: String, _ members: JSONObject, _ told: String, _ invocation: Invocation
  ) async throws(CommandFailure) -> ExitStatus {
    let path = try AdminCommands.endpointPath(invocation)
    var body = members
    body["why"] = invocation[AdminCommands.why].map { .string($0) }
    let call = try AdminCall(invocation)
    let answer = try await call.make(
      path + [action], posting: .object(body), expecting: ["changes", "warnings"])
    let isNew = answer["changes"]?.arrayValue?.isEmpty == false
    try call.say("\(path.last ?? "it") \(told)\(isNew ? "" : " already")", answer)
    return .yes
  }
}
