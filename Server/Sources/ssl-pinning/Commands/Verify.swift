import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// `verify`: whether a registry is signed by a key, and what it says.
enum Verify {
  private static let at = Flag.unixTime("--at", "judge expiries at this moment instead of now")
  private static let json = Flag("--json", "one line of JSON instead of a table")
  private static let strict = Flag(
    "--strict", "exit 1 where anything is warned of: entries or hosts that clients cannot use")
  private static let previous = Flag.text(
    "--previous", "FILE|URL",
    "what clients may hold: whether they would go on from it, and what becomes of the hosts there")
  private static let save = Flag.text(
    "--save", "FILE",
    "write the document here if it is valid; with --previous, if clients go on to it")
  private static let timeout = Flag.seconds(
    "--timeout", "for fetching a URL, in all; 10 by default")

  static let command = Command(
    "verify", "check a registry's signature and show what it says",
    argument: Argument(
      placeholder: "FILE|URL", help: "the document; https, or http to this machine", count: .one),
    flags: RegistryTrustArguments.flags + [
      at.description, previous.description, save.description, strict.description,
      json.description, TrustArguments.ca.description, timeout.description,
    ],
    notes: [
      "A document of format 2 is judged as a client judges that starts for the first time: it walks\n"
        + "the key sets from what the app ships, --key or --root-key, and believes the statement. The\n"
        + "format-1 signature decides nothing then; whether it is good is told, if --key is there.",
      "States: ok; expired (clients still count the key for 26 hours); denied (the statement has it\n"
        + "refused; clients of format 1 take it); unreadable (no client can use the entry). Each host of\n"
        + "the list is judged as a client judges it, with all patterns and CA pins that are for it.",
      "Of a URL, URL/statement is fetched as well, which clients ask for first: one that is not the\n"
        + "document's own is warned of. There may be none. So are its mirrors, and one is warned of that is\n"
        + "silent, or has another statement.",
      "--previous is the URL, or a copy of what is served, before the document takes its place. One that clients\n"
        + "would refuse after it gives exit code 1: a document that was signed after a backup may have a number that\n"
        + "they have passed. Else it is told what becomes of servers and hosts that the one before lets in, as sign\n"
        + "tells it: leaf pins that are replaced or forgotten, hosts that are left out; and what the statement takes\n"
        + "back: denials, CA pins, match all, enforce, removed hosts.",
      "--save keeps a document that an app ships up to date: --previous and --save name the same file.",
      "Warnings go to standard error and change nothing: the document is believed, and so are its other\n"
        + "entries. For CI, --strict makes them a no.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let place = invocation.arguments.first ?? InputFile.standardInput
    let trust = try TrustArguments.read(invocation)
    let shipped = try RegistryTrustArguments(invocation, place: place)
    // Before anything is read: what is compared is what is replaced.
    if let path = invocation[save] { try OutputFile.lock(beside: path) }
    let (bytes, served) = try await read(place, trust, invocation)
    let now = invocation[at] ?? Int64(Date().timeIntervalSince1970)
    let registryTrust = try shipped.trust(for: bytes)
    let trusted: TrustedRegistry
    do throws(RegistryError) {
      trusted = try TrustedRegistry(accepting: bytes, under: registryTrust, at: now)
    } catch {
      if case .tooLarge = error { throw .couldNotFindOut("\(InputFile.name(of: place)): \(error)") }
      if invocation[json] {
        try Terminal.write(
          .members(["valid": .bool(false), "reason": .string(error.toldToOperators)]))
      }
      throw .no("\(InputFile.name(of: place)) is not valid: \(error.toldToOperators)")
    }
    var changes: [String] = []
    if let place = invocation[previous] {
      let held = try await read(place, trust, invocation).bytes
      changes = try Self.changes(
        from: held, place, to: trusted, bytes, try shipped.trust(for: held), at: now)
    }
    var elsewhere: [String] = []
    if let served {
      elsewhere = [await served.statementProblem(of: bytes, trusted)].compactMap { $0 }
      elsewhere += await served.mirrorProblems(of: trusted, under: registryTrust, at: now)
    }
    let report: RegistryReport
    do throws(PolicyError) {
      report = try RegistryReport(
        trusted, at: now, Format1Signature(of: bytes, by: shipped.format1Key),
        newestKeySet(of: bytes), format1Problems(of: bytes) + elsewhere + changes)
    } catch { throw .no("\(InputFile.name(of: place)) makes no policy: \(error)") }
    if invocation[json] {
      try Terminal.write(report.json)
    } else {
      if let summary = report.summary { try Terminal.write(line: summary + "\n") }
      try Terminal.write(line: report.table)
      Terminal.warn(report.problems)
    }
    guard !invocation[strict] || report.problems.isEmpty else { return .no }
    if let path = invocation[save] { try OutputFile.write(bytes, to: path) }
    return .yes
  }

  /// A document, and where it is served if it is.
  private static func read(
    _ place: String, _ trust: TrustMode, _ invocation: Invocation
  ) async throws(CommandFailure) -> (bytes: [UInt8], served: ServedRegistry?) {
    guard place.contains("://") else {
      return (try InputFile.read(place, limit: RegistryLimits.standard.maximumBytes), nil)
    }
    let served = try ServedRegistry(place, trust: trust, timeout: invocation[timeout] ?? 10)
    return (try await served.document(), served)
  }

  /// What becomes of the hosts of a document that clients hold, if they go on from it.
  private static func changes(
    from held: [UInt8], _ place: String, to next: TrustedRegistry, _ bytes: [UInt8],
    _ trust: RegistryTrust, at now: Int64
  ) throws(CommandFailure) -> [String] {
    let name = InputFile.name(of: place)
    let before: TrustedRegistry
    do throws(RegistryError) {
      before = try TrustedRegistry(bundled: held, under: trust, at: now)
    } catch { throw .no("\(name) is nothing that such clients hold: \(error.toldToOperators)") }
    if let refusal = before.update(with: bytes, under: trust, at: now).refusal {
      throw .no("clients that hold \(name) would refuse it: \(refusal.toldToOperators)")
    }
    let hosts = try HostChanges(
      from: [StatedList(list: before.registry, statement: before.statement)],
      to: StatedList(list: next.registry, statement: next.statement), at: now
    ).told(.init(next.statement))
    guard let old = before.statement, let new = next.statement else { return hosts }
    let texts = Loosening.texts(from: old, to: new, now: next.registry.patterns)
    return hosts + texts.sorted().map { "the statement takes back \($0)" }
  }

  private static func format1Problems(of bytes: [UInt8]) -> [String] {
    let payload = (try? JSONValue(parsing: bytes))?.objectValue?["payload"]?.objectValue
    return payload.map(PayloadWarnings.format1Problems) ?? []
  }

  /// The newest key set of a document that was accepted: so all of them are believed.
  private static func newestKeySet(of bytes: [UInt8]) -> KeySet? {
    guard let sets = (try? JSONValue(parsing: bytes))?.objectValue?["keySets"] else { return nil }
    return (try? KeySetList(sets))?.newest?.keySet
  }
}
