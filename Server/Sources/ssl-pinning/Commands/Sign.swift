import CanonicalJSON
import Foundation
import SslPinningRules
import TLSTools

/// `sign`: a payload in, a registry document out. Of format 1, or with `--online-key` of format 2.
enum Sign {
  private static let key = Flag.text(
    "--key", "FILE", "the private key of format 1, prv.pem: RSA of 1024 bits or more")
  private static let onlineKey = Flag.texts(
    "--online-key", "FILE",
    "a private online key: makes format 2, it signs the statement; with --retired a root key")

  static let command = Command(
    "sign", "sign a registry's payload",
    argument: Argument(
      placeholder: "PAYLOAD.json|-",
      help: "an object with keys, or a document that these keys signed, to sign it anew",
      count: .one),
    flags: [key.description, onlineKey.description] + StatementArguments.flags
      + [OutputFile.flag.description],
    notes: [
      "Prints {\"payload\": …, \"signature\": …}: RSA PKCS#1 v1.5 with SHA-512 over the payload's\n"
        + "RFC 8785 form. Entries that clients could not use are told, and signed all the same. A document\n"
        + "that clients would refuse as a whole is not written: they are asked before, as verify asks them.",
      "A document is signed anew only if it is as the given keys signed it: others may write to where\n"
        + "it is published. To change it, edit its payload and pass {\"keys\": …} alone.",
      "With --online-key a signed statement stands beside that (format 2). The document published\n"
        + "last, which is --previous, or PAYLOAD.json itself, or what --out replaces, gives what is not\n"
        + "said anew: name, key sets, hosts, denied, removed, mirrors; the version goes up by one, and is above that\n"
        + "of whatever --out replaces, which must be of the same registry. If there was none, say so with\n"
        + "--first. Key sets in a document are believed if --key signed the first of them, or with\n"
        + "--key-sets. Without --key format-1 clients refuse the document.",
      "What is signed is remembered beside the first --online-key, in its file's name with .signed behind. A\n"
        + "document that is older is refused, or another one of the same number: put a good copy in its place.\n"
        + "--older goes on from it nevertheless, with a number that clients take. The document alone does not say\n"
        + "which registry it is of: a file that is named is called that, or --registry-name says it.",
      "Refused are a date ahead that would end a pin which counts today, a new epoch that leaves a host\n"
        + "out without naming it in removed, or that goes on from a document that --previous does not name,\n"
        + "and a PAYLOAD.json of an older epoch that is not --previous: a thief may have signed it. Refused,\n"
        + "too, is a --statement without a denial, CA pins, match all, enforce or a removed host that the one\n"
        + "before has, unless --allow-loosening says that this is meant. --deny adds a denial. So is a list\n"
        + "without a host that a wider pattern matches: clients go by that one's pins at once. Name the host in\n"
        + "removed, or list its key for the wider pattern. Where a wider pattern demands leaf pins, a host with\n"
        + "CA pins alone needs the leaf keys that its servers show as well, even the same ones: sign warns of that\n"
        + "when it is new, and verify each time.",
      "Refused is a list, of any format, that replaces all leaf pins of a host at once, unless --allow-loosening\n"
        + "says that this is meant: list both keys, switch the servers, then leave the old one out. It counts what\n"
        + "clients demand of the host, whatever patterns say so before and after. --deny of all keys of a host is\n"
        + "told. No document says which pins clients keep of a host that was left out: it is told then that they\n"
        + "end with the list that has the host again. Refused, too, is a list over one that\n"
        + "another key than --key signed where --out stands, unless --first says that nobody has it.",
      "With --retired the registry goes back to format 1. The retired statement stays beside each list that\n"
        + "--key alone signs from then on, until --end-retirement; believed if --key signed it or the first of\n"
        + "its key sets, or with --key-sets. Its hosts and denied stay in force: a list without the pins of a\n"
        + "host there that had some is refused.",
      "  sign --first --key prv.pem --online-key prv.pem --registry-name app.json payload.json \\\n"
        + "    --out app.json\n"
        + "  sign --key prv.pem --online-key prv.pem app.json --out app.json    (daily, from cron)",
      "--statement FILE holds what is in force beside the pins: {\"hosts\": [{\"domainName\": …, \"ca\":\n"
        + "[pins], \"match\": \"all\" or \"any\", \"enforce\": true}], \"denied\": [pins], \"removed\": [hosts],\n\"mirrors\": [URLs]}.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) throws(CommandFailure) -> ExitStatus {
    let onlinePaths = invocation[onlineKey] ?? []
    guard invocation[key] != nil || !onlinePaths.isEmpty else {
      throw .usage(UsageError.missingFlag(key.description).description + "; hint: --help")
    }
    if onlinePaths.isEmpty { try StatementArguments.refuse(invocation) }
    for path in [invocation[key]].compactMap({ $0 }) + onlinePaths {
      try InputFile.refuseSharedInput(path, invocation)
    }
    let format1Key = try invocation[key].map { (path) throws(CommandFailure) in
      try SigningKeyArgument.format1Key(path)
    }
    try OutputFile.lock(invocation)
    let path = invocation.arguments.first ?? InputFile.standardInput
    let name = InputFile.name(of: path)
    let document = try InputFile.json(path)
    let payload = try payload(of: document, name)
    let input = PublishedDocument(document, name)
    var made = RegistryDocument(registry: "", payload: payload)
    var onlineKeys: [TrustSigningKey] = []
    let now = Int64(Date().timeIntervalSince1970)
    var retired: PublishedDocument?
    var statement: Statement?
    var before: [PublishedDocument] = []
    var last: PublishedDocument?
    var memory: LastSigned?
    var keySets: KeySetList?
    if onlinePaths.isEmpty {
      try input?.check(format1Key: format1Key)
      let replaced = try PublishedDocuments.replaced(
        invocation, hint: "put a good copy of it there, or remove it if it never was a document")
      if let replaced, !StatementArguments.isFirst(invocation) {
        try refuse(replaced, unlessSignedBy: format1Key)
      }
      retired = try retiredStatement(beside: input, replacing: replaced)
      keySets = try StatementArguments.chain(invocation, behind: retired, format1Key: format1Key)
      statement = try retired?.statement(of: retired?.registry ?? "")
      before = [input, replaced].compactMap { $0 }
    } else {
      onlineKeys = try SigningKeyArgument.trustKeys(onlinePaths)
      let documents = try StatementArguments.documents(invocation, beside: input)
      let plan = try StatementArguments.plan(
        invocation, after: documents, beside: onlinePaths[0], format1Key: format1Key, now: now)
      try plan.check(zip(onlinePaths, onlineKeys).map { ($0, $1) }, format1Key: format1Key)
      guard !plan.beginsEpoch || format1Key != nil || input == nil else {
        throw .no(
          "only online keys of the epoch before vouch for the payload of \(name); hint: look it over, then"
            + " pass it alone, {\"keys\": …}")
      }
      for published in [input, documents.last].compactMap({ $0 }) {
        try published.check(format1Key: format1Key, onlineKeys: onlineKeys, chain: plan.keySets)
      }
      if format1Key == nil,
        let signed = documents.before.first(where: { $0.json["signature"] != nil })
      {
        Terminal.say(
          "warning: \(signed.place) has a signature of format 1, and clients of format 1 will refuse a"
            + " document without; hint: --key")
      }
      made = try plan.document(of: payload, at: now)
      try plan.memory.check()
      memory = plan.memory
      (last, keySets, before) = (documents.last, plan.keySets, documents.all)
    }
    var signed: JSONObject
    do throws(SigningKeyError) {
      signed = try made.signed(format1Key: format1Key, onlineKeys: onlineKeys)
    } catch { throw .no("cannot sign: \(error)") }
    PayloadWarnings.say(
      of: payload, under: made.statement ?? statement, at: made.terms?.issued ?? now, after: before)
    for member in ["statement", "statementSignatures", "keySets"] {
      if let value = retired?.json[member] { signed[member] = value }
    }
    let place = retired.map { "the document with the retired statement of \($0.place)" }
    try PublishedDocument(.object(signed), place ?? "the document")?.checkAsClients(
      after: last, format1Key: format1Key, onlineKeys: onlineKeys, chain: keySets, at: now)
    if onlinePaths.isEmpty, let list = StatedList(payload, under: statement) {
      let lists = before.compactMap { $0.list(under: statement) }
      try HostChanges(from: lists, to: list, at: now)
        .checkList(beside: statement, loosens: StatementArguments.loosens(invocation))
    }
    try OutputFile.write(.object(signed), invocation)
    memory?.remember(made.statement, in: invocation[OutputFile.flag])
    if last?.place == input?.place { warnOfTwo(after: last, made.statement, invocation) }
    return .yes
  }

  /// Two statements of one number are a fork, and clients refuse the second one that they meet.
  private static func warnOfTwo(
    after last: PublishedDocument?, _ statement: Statement?, _ invocation: Invocation
  ) {
    guard let last, let number = statement?.number, let out = invocation[OutputFile.flag],
      OutputFile.resolved(last.place) != OutputFile.resolved(out), InputFile.exists(last.place)
    else { return }
    Terminal.say(
      "warning: \(last.place) stays as it was: sign the next statement after \(out), or \(number.epoch).\(number.version)"
        + " would be given twice, and clients refuse the second one")
  }

  /// The document whose retired statement stays beside the list: clients that were away must still meet it.
  /// No other statement does: its digest is of the old list.
  private static func retiredStatement(
    beside input: PublishedDocument?, replacing replaced: PublishedDocument?
  ) throws(CommandFailure) -> PublishedDocument? {
    guard let stated = [replaced, input].compactMap({ $0 }).first(where: \.hasStatement) else {
      return nil
    }
    if stated.isRetired {
      guard let replaced, let input, let newer = try input.number, let older = try replaced.number,
        newer > older
      else { return stated }
      // The registry has gone on since: clients that hold that would refuse the older retirement.
      guard input.isRetired else {
        throw .no(
          "\(input.place) has statement \(newer.epoch).\(newer.version), and \(replaced.place) was retired"
            + " before, with \(older.epoch).\(older.version): clients that hold the newer one would refuse the"
            + " list; hint: --online-key signs the next one; pass its payload alone, {\"keys\": …}, only if it was"
            + " never published"
        )
      }
      return input
    }
    guard replaced?.hasStatement != true else {
      throw .no(
        "clients that hold the statement of \(stated.place) would refuse a document without one;"
          + " hint: --online-key signs the next one")
    }
    Terminal.say(
      "warning: clients that hold the statement of \(stated.place) will refuse a document"
        + " without one; hint: --online-key")
    return nil
  }

  /// Clients of the list that is replaced trust the key that signed it, and would refuse every other one.
  private static func refuse(
    _ replaced: PublishedDocument, unlessSignedBy key: SigningKey?
  ) throws(CommandFailure) {
    do throws(CommandFailure) { try replaced.check(format1Key: key) } catch {
      let cause = error.message.components(separatedBy: "; hint: ")[0]
      throw .no(
        "\(cause), and clients of that one would refuse another key's list; hint: the key that signed it, or a good"
          + " copy in its place; --first says that nobody has it")
    }
  }

  private static func payload(
    of document: JSONValue, _ name: String
  ) throws(CommandFailure) -> JSONObject {
    guard let object = document.objectValue else { throw .no("\(name) is not a JSON object") }
    guard let inner = object["payload"] else { return object }
    guard object["keys"] == nil else {
      throw .no("\(name) has both payload and keys; hint: pass the one or the other")
    }
    guard let payload = inner.objectValue else {
      throw .no("the payload of \(name) is not a JSON object")
    }
    return payload
  }
}
