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
    "--previous", "FILE", "the document before: warn of what this one does to the hosts there")
  private static let after = Flag.text(
    "--after", "FILE|URL", "what clients may hold: whether they would go on from it to this one")
  private static let timeout = Flag.seconds(
    "--timeout", "for fetching a URL, in all; 10 by default")

  static let command = Command(
    "verify", "check a registry's signature and show what it says",
    argument: Argument(
      placeholder: "FILE|URL", help: "the document; https, or http to this machine", count: .one),
    flags: RegistryTrustArguments.flags + [
      at.description, after.description, previous.description, strict.description,
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
      "With --previous it is told what becomes of servers and hosts that the document before lets in, as sign\n"
        + "tells it: leaf pins that are replaced or forgotten, hosts that are left out. Nobody's signature is\n"
        + "looked at there, and clients may have an older one.",
      "A document that was signed after a backup may have a number that clients have passed. Before it is\n"
        + "published, --after with the URL, or a copy of what is served, tells: exit code 1.",
      "Warnings go to standard error and change nothing: the document is believed, and so are its other\n"
        + "entries. For CI, --strict makes them a no.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let place = invocation.arguments.first ?? InputFile.standardInput
    let trust = try TrustArguments.read(invocation)
    let shipped = try RegistryTrustArguments(invocation, place: place)
    let served =
      place.contains("://")
      ? try ServedRegistry(place, trust: trust, timeout: invocation[timeout] ?? 10) : nil
    let bytes: [UInt8]
    if let served {
      bytes = try await served.document()
    } else {
      bytes = try InputFile.read(place, limit: RegistryLimits.standard.maximumBytes)
    }
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
    if let held = invocation[after] {
      try await check(
        bytes, after: held, under: try shipped.trust(for: bytes), trust, invocation, at: now)
    }
    let since = try invocation[previous].map { (path) throws(CommandFailure) in
      try changes(to: trusted, since: path, at: now)
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
        newestKeySet(of: bytes), elsewhere + (since ?? []))
    } catch { throw .no("\(InputFile.name(of: place)) makes no policy: \(error)") }
    if invocation[json] {
      try Terminal.write(report.json)
    } else {
      if let summary = report.summary { try Terminal.write(line: summary + "\n") }
      try Terminal.write(line: report.table)
      Terminal.warn(report.problems)
    }
    return invocation[strict] && !report.problems.isEmpty ? .no : .yes
  }

  /// What becomes of the hosts of an older document.
  private static func changes(
    to trusted: TrustedRegistry, since path: String, at now: Int64
  ) throws(CommandFailure) -> [String] {
    guard let document = PublishedDocument(try InputFile.json(path), path),
      let before = document.list(under: try document.statement(of: document.registry ?? ""))
    else { throw .no("\(path) is no document of a registry with a usable key") }
    let next = StatedList(list: trusted.registry, statement: trusted.statement)
    return try HostChanges(from: [before], to: next, at: now).told(.init(trusted.statement))
  }

  /// Refuses a document that clients would not take in place of the one that they hold.
  private static func check(
    _ bytes: [UInt8], after place: String, under registryTrust: RegistryTrust, _ trust: TrustMode,
    _ invocation: Invocation, at now: Int64
  ) async throws(CommandFailure) {
    let held: [UInt8]
    if place.contains("://") {
      held = try await ServedRegistry(place, trust: trust, timeout: invocation[timeout] ?? 10)
        .document()
    } else {
      held = try InputFile.read(place, limit: RegistryLimits.standard.maximumBytes)
    }
    do throws(RegistryError) {
      let registry = try TrustedRegistry(bundled: held, under: registryTrust, at: now)
      if let refusal = registry.update(with: bytes, under: registryTrust, at: now).refusal {
        throw refusal
      }
    } catch {
      throw .no(
        "clients that hold \(InputFile.name(of: place)) would refuse it: \(error.toldToOperators)")
    }
  }

  /// The newest key set of a document that was accepted: so all of them are believed.
  private static func newestKeySet(of bytes: [UInt8]) -> KeySet? {
    guard let sets = (try? JSONValue(parsing: bytes))?.objectValue?["keySets"] else { return nil }
    return (try? KeySetList(sets))?.newest?.keySet
  }
}
