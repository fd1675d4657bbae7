import CanonicalJSON
import Foundation
import SslPinningRules
import TLSTools

/// `admin …`: what people decide about keys, and about the server's clock, over the running server's administration.
enum AdminCommands {
  static let file = Flag.text(
    "--file", "NAME", "the document that the endpoint is in", isRequired: true)
  static let endpoint = Flag.text(
    "--endpoint", "HOST[:PORT]", "whose key it is, as the console calls it; port 443 by default",
    isRequired: true)
  static let why = Flag.text("--why", "TEXT", "for the history and for whoever reads it")
  private static let issuer = Flag.text(
    "--issuer", "PIN",
    "the pin of the CA that issued its certificate, as you have read it: the approval is refused if it is another by now"
  )
  private static let force = Flag(
    "--force", "also where hosts are left without a key that their servers show")

  static let all =
    AdminLists.all + keys + AdminProposals.all + AdminEndpoints.all + [
      Command(
        "admin adopt-clock", "say that the clock of the server's machine is right",
        flags: [requiredWhy.description] + AdminCall.flags,
        notes: [
          "A server whose clock jumped goes on by its last time, until the kernel calls the clock\n"
            + "synchronised or somebody says this. It is the clock of the one server that is asked."
        ], run: adoptClock)
    ]

  private static let keys = [
    Command(
      "admin stage", "publish a key ahead of its use",
      argument: Argument(
        placeholder: "PIN|FILE", help: "the key: a pin, or a certificate, CSR or public key in PEM",
        count: .one),
      flags: [file.description, endpoint.description, why.description] + AdminCall.flags,
      notes: [notes], run: stage),
    Command(
      "admin approve", "publish a key that waits for a person", argument: pin,
      flags: [file.description, endpoint.description, issuer.description, why.description]
        + AdminCall.flags,
      notes: [notes], run: approve),
    Command(
      "admin revoke", "publish a key no more, without denying it", argument: pin,
      flags: [file.description, endpoint.description, why.description, force.description]
        + AdminCall.flags,
      notes: [notes], run: revoke),
    Command(
      "admin deny", "refuse a key wherever it stands", argument: pin,
      flags: [requiredWhy.description, force.description] + AdminCall.flags,
      notes: [
        "Where hosts would be left without a key that their servers show, or the key is that of a CA above\n"
          + "it, they are listed, nothing is changed, and the exit code is 1. --force does it all the same.",
        notes,
      ], run: deny),
    Command(
      "admin allow", "refuse a key no more", argument: pin,
      flags: [why.description] + AdminCall.flags, notes: [notes], run: allow),
  ]

  private static let requiredWhy = Flag.text(
    "--why", "TEXT", "for the history and for whoever reads it", isRequired: true)
  private static let pin = Argument(
    placeholder: "PIN", help: "the key's pin, in base64", count: .one)
  static let notes =
    "Asks the server that runs, and returns when the change is published. Everything else of the\n"
    + "administration is in the console and in the API (docs/administration.md)."

  private static func stage(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let text = invocation.arguments.first ?? ""
    var body = JSONObject()
    if let pin = try? SPKIPin(base64: text) {
      body["pin"] = .string(pin.base64)
    } else {
      let pem = String(decoding: try InputFile.read(text, limit: 1 << 20), as: UTF8.self)
      body[try member(for: pem, in: text)] = .string(pem)
    }
    body["note"] = invocation[why].map { .string($0) }
    return try await change("stage", body, invocation) { "\($0) is published ahead of its use" }
  }

  private static func approve(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    var body = try decision(invocation)
    body["issuer"] = invocation[issuer].map { .string($0) }
    return try await change("approve", body, invocation) { "\($0) is published" }
  }

  private static func revoke(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    var body = try decision(invocation)
    body["force"] = .bool(invocation[force])
    return try await change("revoke", body, invocation) { "\($0) is published no more" }
  }

  private static func deny(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    var body = try decision(invocation)
    body["why"] = .string(try invocation.require(requiredWhy))
    body["force"] = .bool(invocation[force])
    let call = try AdminCall(invocation)
    let answer = try await call.make(
      ["denials"], posting: .object(body), expecting: changed)
    let isNew = answer["changes"]?.arrayValue?.isEmpty == false
    let pin = answer["pin"]?.stringValue ?? "it"
    try call.say("\(pin) is denied\(isNew ? "" : " already")", answer)
    return .yes
  }

  private static func allow(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let body = try decision(invocation)
    let call = try AdminCall(invocation)
    let answer = try await call.make(
      ["allowances"], posting: .object(body), expecting: changed)
    try call.say("\(answer["pin"]?.stringValue ?? "it") is denied no more", answer)
    return .yes
  }

  /// What the answer to a change has.
  static let changed = ["pin", "changes", "warnings"]

  private static func adoptClock(
    _ invocation: Invocation
  ) async throws(CommandFailure) -> ExitStatus {
    let why = try invocation.require(requiredWhy)
    let call = try AdminCall(invocation)
    let answer = try await call.make(
      ["clock", "adopt"], posting: .members(["why": .string(why)]), expecting: ["time", "before"])
    func text(_ member: String) -> String {
      answer[member]?.integerValue.map(RFC3339.text) ?? "?"
    }
    try call.say("the server goes by \(text("time")) now, and not by \(text("before")) any more")
    return .yes
  }

  private static func change(
    _ action: String, _ body: JSONObject, _ invocation: Invocation,
    _ told: (String) -> String
  ) async throws(CommandFailure) -> ExitStatus {
    let path = try endpointPath(invocation) + [action]
    let call = try AdminCall(invocation)
    let answer = try await call.make(path, posting: .object(body), expecting: changed)
    try call.say(told(answer["pin"]?.stringValue ?? "the key"), answer)
    return .yes
  }

  /// Where the API has the endpoint that is named.
  static func endpointPath(_ invocation: Invocation) throws(CommandFailure) -> [String] {
    var id = try invocation.require(endpoint)
    guard !id.contains("/") else {
      throw .usage("--endpoint is no URL; hint: HOST[:PORT], as the console calls it")
    }
    if id.hasSuffix("]") || !id.contains(":") { id += ":443" }
    return ["documents", try invocation.require(file), "endpoints", id]
  }

  private static func decision(_ invocation: Invocation) throws(CommandFailure) -> JSONObject {
    let text = invocation.arguments.first ?? ""
    guard let pin = try? SPKIPin(base64: text) else {
      throw .usage(
        "\"\(text)\" is no pin; hint: 44 characters of base64, as admin pending prints them")
    }
    var body: JSONObject = ["pin": .string(pin.base64)]
    body["why"] = invocation[why].map { .string($0) }
    return body
  }

  /// What the administration calls the kind of key in a PEM text.
  private static func member(for pem: String, in path: String) throws(CommandFailure) -> String {
    // Before it leaves this machine.
    guard !pem.contains("PRIVATE KEY-----") else {
      throw .usage(
        "\(path) holds a private key; hint: send its public half: openssl pkey -pubout")
    }
    if let block = try? PEMBlock.blocks(in: [UInt8](pem.utf8)).first,
      let form = PEMKey.Form(label: block.label)
    {
      return form.rawValue
    }
    throw .usage(
      "\(path) is neither a pin nor PEM; hint: a certificate, a CSR or a public key")
  }
}
