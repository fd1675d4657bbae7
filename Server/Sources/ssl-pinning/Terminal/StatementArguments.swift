import CanonicalJSON
import SslPinningRules
import TLSTools

/// What the command line says of a statement; the rest comes from the document published last.
enum StatementArguments {
  private static let keySets = Flag.text(
    "--key-sets", "FILE", "the chain that keys sign-set printed; none: the app's own keys sign")
  private static let settings = Flag.text(
    "--statement", "FILE",
    "JSON with hosts, denied, removed, mirrors; what is left out stays as it was")
  private static let previous = Flag.text(
    "--previous", "FILE", "the document published last, where PAYLOAD.json is not that")
  private static let version = Flag.number(
    "--version", "N", "above the one published last; by default one more, 1 in a new epoch",
    in: 0...JSONNumber.greatestInteger)
  private static let issued = Flag.unixTime(
    "--issued", "the statement's date, whatever the last one says; now by default")
  private static let days = Flag.number(
    "--expires-days", "DAYS",
    "how long it is valid; 90 by default, 400 at most; with --retired 36500, any number",
    in: 30...longest)
  private static let longest: Int64 = 36_500
  private static let retired = Flag(
    "--retired", "say that the registry goes back to format 1: the root keys sign")
  private static let endRetirement = Flag(
    "--end-retirement", "say that a registry that was retired has statements again")
  private static let deny = Flag.texts(
    "--deny", "PIN", "a key that is refused from now on, besides those that were denied before")
  private static let allowLoosening = Flag(
    "--allow-loosening",
    "mean it where denials, CA pins, match all, enforce, removed hosts or leaf pins are taken back or replaced"
  )

  private static let older = Flag(
    "--older",
    "go on from a document older than what the key signed last; what was decided since is lost; not for cron"
  )

  private static let mirror = Flag.texts(
    "--mirror", "URL",
    "where else the document is served; those given take the place of those before")

  private static let first = Flag(
    "--first",
    "say that this registry never had a statement, or in format 1 that nobody has the list before;"
      + " not for cron")

  static let flags = [
    RegistryNameArgument.flag.description, keySets.description, settings.description,
    previous.description, first.description, version.description, issued.description,
    days.description, retired.description, endRetirement.description, deny.description,
    allowLoosening.description, older.description, mirror.description,
  ]

  /// Whether the operator means it where something is taken back.
  static func loosens(_ invocation: Invocation) -> Bool { invocation[allowLoosening] }

  /// Whether the operator says that nothing was published before.
  static func isFirst(_ invocation: Invocation) -> Bool { invocation[first] }

  /// Refuses flags that say nothing without an online key.
  static func refuse(_ invocation: Invocation) throws(CommandFailure) {
    let texts = [RegistryNameArgument.flag, settings, previous].filter {
      invocation[$0] != nil
    }.map(\.description.name)
    let numbers = [version, issued, days].filter { invocation[$0] != nil }.map(\.description.name)
    let switches = [retired, endRetirement, older].filter { invocation[$0] }
      .map(\.description.name)
    let lists = [mirror, deny].filter { invocation[$0] != nil }.map(\.description.name)
    guard let name = (texts + numbers + switches + lists).first else { return }
    throw .usage("\(name) is for statements; hint: --online-key signs one")
  }

  /// The documents at hand.
  static func documents(
    _ invocation: Invocation, beside input: PublishedDocument?
  ) throws(CommandFailure) -> PublishedDocuments {
    for flag in [settings, keySets] { try OutputFile.refuse(flag, invocation) }
    let named = try invocation[previous].map { (path) throws(CommandFailure) in
      try InputFile.refuseSharedInput(path, invocation)
      guard let last = PublishedDocument(try InputFile.json(path), path), last.hasStatement else {
        throw .no(
          "\(path) has no statement; hint: --first in place of --previous for the first one")
      }
      return last
    }
    let documents = try PublishedDocuments(input, previous: named, invocation)
    if let last = documents.last {
      guard !invocation[first] else {
        throw .usage(
          "--first is for a registry that never had a statement, and \(last.place) has one;"
            + " hint: leave --first out")
      }
    } else if !invocation[first] {
      // A document that was cut short or stripped looks like a registry that never had a statement. A
      // number says nothing of what that one denied.
      throw .usage(
        "no statement is at hand to go on from, and clients refuse one that counts anew; hint: --previous"
          + " names the document published last, or --first says that there was none")
    }
    return documents
  }

  /// What is to be said.
  ///
  /// - Parameters:
  ///   - documents: those at hand.
  ///   - key: the file of the key that signs, beside which is what it signed last.
  ///   - format1Key: a chain whose set 1 it signed is believed.
  ///   - now: Unix time in seconds.
  static func plan(
    _ invocation: Invocation, after documents: PublishedDocuments, beside key: String,
    format1Key: SigningKey?, now: Int64
  ) throws(CommandFailure) -> StatementPlan {
    let last = documents.last
    let place = last?.place ?? ""
    let sets = try chain(invocation, after: last, format1Key: format1Key)
    let named = last?.json["statement"]?.objectValue?["registry"]?.stringValue
    guard let registry = invocation[RegistryNameArgument.flag] ?? sets?.registry ?? named else {
      let flag = RegistryNameArgument.flag.description
      throw .usage("missing \(flag.usage): \(flag.help)")
    }
    let statements = try documents.statements(of: registry)
    try refuseUnsaid(registry, of: last, invocation)
    let statement = try last?.statement(of: registry)
    let plan = StatementPlan(
      registry: registry, keySets: sets, last: statement,
      memory: LastSigned(
        beside: key, of: registry, before: statement, at: place, takesOlder: invocation[older]),
      published: statements.map { ($0.document.place, $0.statement.number) },
      before: documents.lists(of: registry),
      settings: try changes(invocation, after: statement), version: invocation[version],
      issued: invocation[issued] ?? now, isDated: invocation[issued] != nil,
      // Clients that were away must meet a retired one, whenever they come back.
      lifetime: (invocation[days] ?? (invocation[retired] ? longest : 90)) * 86_400,
      isRetired: invocation[retired], loosens: invocation[allowLoosening])
    // A new epoch is how a stolen online key is withdrawn: what it signed last may be the thief's.
    guard !plan.beginsEpoch || documents.previous != nil else {
      throw .no(
        "the statement of \(place) is of epoch \(plan.last?.number.epoch ?? 0), and its hosts, denied and"
          + " removed are from whoever had the online keys then; hint: look them over, then name it with"
          + " --previous")
    }
    // The same for the payload: --previous vouches for no other document.
    if let input = documents.input, !documents.isInputNamed,
      let epoch = try input.statement(of: registry)?.number.epoch, epoch < plan.epoch
    {
      throw .no(
        "\(input.place) is of epoch \(epoch), and its payload is from whoever had the online keys then;"
          + " hint: look it over, then pass it alone, {\"keys\": …}")
    }
    // The root keys said so, and the next one to sign may be a job that is still in cron.
    let wasRetired = plan.last?.isRetired == true && !plan.isRetired
    guard wasRetired == invocation[endRetirement] else {
      throw wasRetired
        ? .no(
          "\(place) is retired until a statement ends that, and this one would;"
            + " hint: without --online-key, --key signs the list and the retired statement stays")
        : .usage(
          "--end-retirement is for a registry that was retired; hint: leave it out")
    }
    if wasRetired, let last = plan.last, plan.issued < last.expires {
      let isTold = plan.beginsEpoch || plan.issued > last.issued
      Terminal.say(
        "warning: until \(RFC3339.text(last.expires)) whoever hands out documents can show the retirement that this ends, and a"
          + " list of format 1 with it, to apps that have not met this statement; hint: ship a release "
          + (isTold
            ? "with minimumRegistry, as ssl-pinning verify prints it, or without the format-1 key"
            : "without the format-1 key, or with the minimumRegistry of a statement issued after"
              + " \(RFC3339.text(last.issued))"))
    }
    if invocation[first], let file = invocation[OutputFile.flag]?.split(separator: "/").last,
      !file.utf8.elementsEqual(registry.utf8)
    {
      Terminal.say(
        "warning: the registry is \"\(registry)\", and a client asks for the last part of its URL, which is"
          + " \(file) here; hint: --registry-name, or registryName in the app")
    }
    return plan
  }

  /// Refuses a name that the document alone says. Another registry's document, which the same keys signed, may have
  /// been put in the place of this one's.
  private static func refuseUnsaid(
    _ registry: String, of last: PublishedDocument?, _ invocation: Invocation
  ) throws(CommandFailure) {
    guard let last, let out = invocation[OutputFile.flag],
      invocation[RegistryNameArgument.flag] == nil, invocation[keySets] == nil
    else { return }
    let files: [String?] = [out, invocation[previous], invocation.arguments.first]
    let names = files.compactMap { $0?.split(separator: "/").last }
    guard !names.contains(where: { $0.utf8.elementsEqual(registry.utf8) }) else { return }
    throw .no(
      "\(last.place) is of the registry \"\(registry)\", and no file that is named here is called that: is it another"
        + " registry's? hint: --registry-name \(registry), if this one is meant")
  }

  /// The key sets that the operator vouches for: those of `--key-sets`, or those of the document
  /// published last if `--key` signed the first of them.
  ///
  /// Signatures of online keys vouch for no chain: whoever knows their public halves makes up one that
  /// names them, and has it signed by the next cron job.
  private static func chain(
    _ invocation: Invocation, after last: PublishedDocument?, format1Key: SigningKey?,
    hint: String = "name a good copy with --previous"
  ) throws(CommandFailure) -> KeySetList? {
    let place = last?.place ?? ""
    let wanted = invocation[RegistryNameArgument.flag]
    let before = try last?.json["keySets"].map { (json) throws(CommandFailure) in
      try KeySetFile.list(json, place, name: wanted)
    }
    if let path = invocation[keySets] {
      let list = try KeySetFile.read(path, name: wanted ?? before?.registry)
      guard list.goesOn(from: before) else {
        throw .no(
          "\(path) does not go on from the key sets of \(place); hint: those there may have been changed:"
            + " \(hint)")
      }
      return list
    }
    guard let before else { return nil }
    guard let format1Key, before.isSigned(by: format1Key) else {
      throw .no(
        "nobody at hand vouches for the key sets of \(place): --key did not sign the first of them;"
          + " hint: --key-sets FILE, as keys sign-set printed it")
    }
    return before
  }

  /// The key sets behind a retired statement that stays beside a list of format 1: believed as above, or
  /// whoever writes to where the list is published has it signed beside a retirement of their own.
  static func chain(
    _ invocation: Invocation, behind retired: PublishedDocument?, format1Key: SigningKey?
  ) throws(CommandFailure) -> KeySetList? {
    guard retired != nil || invocation[keySets] == nil else {
      throw .usage(
        "--key-sets is for statements, and no retired one is at hand; hint: --online-key signs one")
    }
    return try chain(
      invocation, after: retired, format1Key: format1Key, hint: "put a good copy there")
  }

  /// The members that take the place of what the last statement says.
  private static func changes(
    _ invocation: Invocation, after last: Statement?
  ) throws(CommandFailure) -> JSONObject {
    var members = try file(invocation)
    if let pins = invocation[deny] {
      for pin in pins where (try? SPKIPin(base64: pin)) == nil {
        throw .usage(
          "--deny \(pin) is no pin; hint: the base64 of 32 bytes, as ssl-pinning pin prints it")
      }
      // What is no list is refused with the rest of the statement.
      let before = members["denied"] ?? last?.json["denied"] ?? .array([])
      if let denied = before.arrayValue {
        let new = pins.map(JSONValue.string).filter { !denied.contains($0) }
        members["denied"] = .array(denied + new)
      }
    }
    guard let urls = invocation[mirror] else { return members }
    for (index, url) in urls.enumerated() {
      guard (try? RegistryMirror(url)) != nil else {
        throw .usage(
          "\"\(url)\" is no URL of a mirror; hint: https://host/path/app.json, without user, query and"
            + " fragment")
      }
      guard !urls[..<index].contains(url) else { throw .usage("--mirror \(url) is given twice") }
    }
    guard urls.count <= RegistryMirror.most else {
      throw .usage("\(urls.count) mirrors are more than the \(RegistryMirror.most) of a statement")
    }
    members["mirrors"] = .array(urls.map(JSONValue.string))
    return members
  }

  private static func file(_ invocation: Invocation) throws(CommandFailure) -> JSONObject {
    guard let path = invocation[settings] else { return [:] }
    try InputFile.refuseSharedInput(path, invocation)
    let name = InputFile.name(of: path)
    guard let members = try InputFile.json(path).objectValue else {
      throw .no("\(name) is not a JSON object; hint: {\"denied\": []}")
    }
    try refuse(members, beside: StatementPlan.settings, name)
    for host in members["hosts"]?.arrayValue?.compactMap(\.objectValue) ?? [] {
      try refuse(host, beside: StatementPlan.hostSettings, "a host of \(name)")
    }
    return members
  }

  /// Refuses misspelt members: signed, they would say nothing to anybody.
  private static func refuse(
    _ object: JSONObject, beside known: [String], _ name: String
  ) throws(CommandFailure) {
    for member in object.keys where !known.contains(member) {
      throw .no(
        "\(name) has \"\(member)\", which no statement has;"
          + " hint: \(known.joined(separator: ", "))")
    }
  }
}
