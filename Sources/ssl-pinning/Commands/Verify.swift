import CanonicalJSON
import Foundation
import Pinning
import PinningPlatform
import TLSTools

/// `verify`: whether a registry is signed by a key, and what it says.
enum Verify {
  private static let at = Flag.unixTime("--at", "judge expiries at this moment instead of now")
  private static let json = Flag("--json", "one line of JSON instead of a table")
  private static let strict = Flag(
    "--strict", "exit 1 where anything is warned of: entries or hosts that clients cannot use")
  private static let timeout = Flag.seconds(
    "--timeout", "for fetching a URL, in all; 10 by default")

  static let command = Command(
    "verify", "check a registry's signature and show what it says",
    argument: Argument(
      placeholder: "FILE|URL", help: "the document; https, or http to this machine", count: .one),
    flags: RegistryTrustArguments.flags + [
      at.description, strict.description, json.description, TrustArguments.ca.description,
      timeout.description,
    ],
    notes: [
      "A document of format 2 is judged as a client judges that starts for the first time: it walks\n"
        + "the key sets from what the app ships, --key or --root-key, and believes the statement. The\n"
        + "format-1 signature decides nothing then; whether it is good is told, if --key is there.",
      "States: ok; expired (clients still count the key for 26 hours); denied (the statement has it\n"
        + "refused; clients of format 1 take it); unreadable (no client can use the entry). Each host of\n"
        + "the list is judged as a client judges it, with all patterns and CA pins that are for it.",
      "Warnings go to standard error and change nothing: the document is believed, and so are its other\n"
        + "entries. For CI, --strict makes them a no.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let place = invocation.arguments.first ?? InputFile.standardInput
    let trust = try TrustArguments.read(invocation)
    let shipped = try RegistryTrustArguments(invocation, place: place)
    let bytes = try await document(place, trust: trust, timeout: invocation[timeout] ?? 10)
    let now = invocation[at] ?? Int64(Date().timeIntervalSince1970)
    let registryTrust = try shipped.trust(for: bytes)
    let trusted: TrustedRegistry
    do throws(RegistryError) {
      trusted = try TrustedRegistry(accepting: bytes, under: registryTrust, at: now)
    } catch {
      if case .tooLarge = error { throw .couldNotFindOut("\(InputFile.name(of: place)): \(error)") }
      if invocation[json] {
        try Console.write(
          .members(["valid": .bool(false), "reason": .string(error.toldToOperators)]))
      }
      throw .no("\(InputFile.name(of: place)) is not valid: \(error.toldToOperators)")
    }
    let report: RegistryReport
    do throws(PolicyError) {
      report = try RegistryReport(
        trusted, at: now, Format1Signature(of: bytes, by: shipped.format1Key),
        newestKeySet(of: bytes))
    } catch { throw .no("\(InputFile.name(of: place)) makes no policy: \(error)") }
    if invocation[json] {
      try Console.write(report.json)
    } else {
      if let summary = report.summary { try Console.write(line: summary + "\n") }
      try Console.write(line: report.table)
      for problem in report.problems { Console.say("warning: \(problem)") }
    }
    return invocation[strict] && !report.problems.isEmpty ? .no : .yes
  }

  /// The newest key set of a document that was accepted: so all of them are believed.
  private static func newestKeySet(of bytes: [UInt8]) -> KeySet? {
    guard let sets = (try? JSONValue(parsing: bytes))?.objectValue?["keySets"] else { return nil }
    return (try? KeySetList(sets))?.newest?.keySet
  }

  private static func document(
    _ place: String, trust: TrustMode, timeout: Double
  ) async throws(CommandFailure) -> [UInt8] {
    let limit = RegistryLimits.standard.maximumBytes
    guard place.contains("://") else { return try InputFile.read(place, limit: limit) }
    let url: RegistryURL
    do throws(RegistryURL.Fault) { url = try RegistryURL(place) } catch {
      switch error {
      case .unreadable: throw .usage("\"\(place)\" is no URL of a registry")
      case .clearText: throw .usage("\"\(place)\" is clear text; hint: use https")
      case .scheme(let scheme): throw .usage("\(scheme) is not supported; hint: use https")
      }
    }
    let request = DocumentRequest(url: url, maximumBytes: limit, timeout: timeout)
    let fetcher: DocumentFetcher
    do throws(TrustError) { fetcher = try DocumentFetcher(trust: trust) } catch {
      throw .no("--ca cannot be used: \(error)")
    }
    let fetched: FetchedDocument
    do throws(FetchError) { fetched = try await fetcher.fetch(request) } catch {
      if case .unreachable(let reason) = error {
        throw .couldNotFindOut("\(place): no answer: \(TransportReason.text(reason, at: place))")
      }
      throw .couldNotFindOut("\(place): \(error)")
    }
    guard case .fresh(let bytes, _) = fetched else {
      throw .couldNotFindOut("\(place): \(FetchError.status(304))")
    }
    return bytes
  }
}
