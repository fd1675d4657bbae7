import CanonicalJSON
import Pinning
import TLSTools

/// What the command line says of a statement; the rest comes from the document published last.
enum StatementArguments {
  private static let keySets = Flag.text(
    "--key-sets", "FILE", "the chain that keys sign-set printed; none: the app's own keys sign")
  private static let settings = Flag.text(
    "--statement", "FILE", "JSON with hosts, denied, removed; what is left out stays as it was")
  private static let previous = Flag.text(
    "--previous", "FILE", "the document published last, where PAYLOAD.json is not that")
  private static let version = Flag.number(
    "--version", "N", "above the one published last; by default one more, 1 in a new epoch",
    in: 0...JSONNumber.greatestInteger)
  private static let issued = Flag.unixTime("--issued", "the statement's date; now by default")
  private static let days = Flag.number(
    "--expires-days", "DAYS", "how long it is valid; 90 by default, 400 at most but for --retired",
    in: 30...36_500)
  private static let retired = Flag(
    "--retired",
    "say that the registry goes back to format 1: the root keys sign; --expires-days far off")

  static let flags = [
    RegistryNameArgument.flag.description, keySets.description, settings.description,
    previous.description, version.description, issued.description, days.description,
    retired.description,
  ]

  /// Refuses flags that say nothing without an online key.
  static func refuse(_ invocation: Invocation) throws(CommandFailure) {
    let texts = [RegistryNameArgument.flag, keySets, settings, previous].filter {
      invocation[$0] != nil
    }.map(\.description.name)
    let numbers = [version, issued, days].filter { invocation[$0] != nil }.map(\.description.name)
    let given = texts + numbers + (invocation[retired] ? [retired.description.name] : [])
    guard let first = given.first else { return }
    throw .usage("\(first) is for statements; hint: --online-key signs one")
  }

  /// The document published last, if any is at hand: `--previous`, or the input, or what the result takes
  /// the place of. A count that began anew there would have every client refuse what is signed.
  static func last(
    _ invocation: Invocation, beside input: PublishedDocument?
  ) throws(CommandFailure) -> PublishedDocument? {
    if let path = invocation[previous] {
      try InputFile.refuseSharedInput(path, invocation)
      guard let last = PublishedDocument(try InputFile.json(path), path), last.hasStatement else {
        throw .no("\(path) has no statement; hint: leave --previous out for the first one")
      }
      return last
    }
    if let input, input.hasStatement { return input }
    let replaced = try OutputFile.present(invocation).flatMap {
      PublishedDocument($0.json, $0.path)
    }
    return replaced?.hasStatement == true ? replaced : input
  }

  /// What is to be said.
  ///
  /// - Parameters:
  ///   - last: the document published last.
  ///   - now: Unix time in seconds.
  static func plan(
    _ invocation: Invocation, after last: PublishedDocument?, now: Int64
  ) throws(CommandFailure) -> StatementPlan {
    let place = last?.place ?? ""
    let wanted = invocation[RegistryNameArgument.flag]
    let before = try last?.json["keySets"].map { (json) throws(CommandFailure) in
      try KeySetFile.list(json, place, name: wanted)
    }
    let chain = try invocation[keySets].map { (path) throws(CommandFailure) in
      let list = try KeySetFile.read(path, name: wanted ?? before?.registry)
      guard list.goesOn(from: before) else {
        throw .no("\(path) does not go on from the key sets of \(place)")
      }
      return list
    }
    let sets = chain ?? before
    let old = last?.json["statement"]?.objectValue
    guard let registry = wanted ?? sets?.registry ?? old?["registry"]?.stringValue else {
      let flag = RegistryNameArgument.flag.description
      throw .usage("missing \(flag.usage): \(flag.help)")
    }
    let statement = try read(old, place, registry)
    let plan = StatementPlan(
      registry: registry, keySets: sets, chain: chain, last: statement,
      listed: statement == nil ? [] : last?.patterns(under: statement) ?? [],
      settings: try changes(invocation), version: invocation[version],
      issued: invocation[issued] ?? now, lifetime: (invocation[days] ?? 90) * 86_400,
      isRetired: invocation[retired])
    // A new epoch is how a stolen online key is withdrawn: what it signed last may be the thief's.
    guard !plan.beginsEpoch || invocation[previous] != nil else {
      throw .no(
        "the statement of \(place) is of epoch \(plan.last?.number.epoch ?? 0), and its hosts, denied and"
          + " removed are from whoever had the online keys then; hint: look them over, then name it with"
          + " --previous")
    }
    if plan.last?.isRetired == true, !plan.isRetired {
      Console.say(
        "warning: the registry was retired, and this statement ends that; hint: --retired")
    }
    return plan
  }

  private static func read(
    _ json: JSONObject?, _ place: String, _ registry: String
  ) throws(CommandFailure) -> Statement? {
    do throws(DocumentFault) {
      return try json.map { (json) throws(DocumentFault) in
        try Statement(json, registry: registry)
      }
    } catch { throw .no("the statement of \(place) cannot be gone on from: \(error)") }
  }

  /// The members of the settings file.
  private static func changes(_ invocation: Invocation) throws(CommandFailure) -> JSONObject {
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
