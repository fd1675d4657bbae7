import CanonicalJSON
import Pinning
import TLSTools

/// What clients could not use of a payload, and what would make old ones refuse it.
enum PayloadWarnings {
  private static let members: Set<String> = ["domainName", "key", "fqdn", "expire", "date"]

  /// - Parameters:
  ///   - statement: what will stand beside the payload, be it a retired one; `nil` in format 1.
  ///   - clock: Unix time in seconds at which clients are imagined to read it.
  static func say(of payload: JSONObject, under statement: Statement?, at clock: Int64) {
    // A list without a usable key is refused as a whole.
    if let registry = try? Registry(payload: payload, settings: statement?.hosts ?? []),
      let draft = try? registry.draftPolicy(under: statement, at: clock)
    {
      let hosts = HostProblems.texts(of: registry, under: draft.policy, at: draft.time)
      let removed = HostProblems.texts(of: registry, removed: statement?.removed ?? [])
      for problem in registry.problems.map(\.description) + hosts + removed {
        Console.say("warning: \(problem)")
      }
    }
    let entries = payload["keys"]?.arrayValue?.compactMap(\.objectValue) ?? []
    let unknown = Set(entries.flatMap(\.keys)).subtracting(members)
      .union(Set(payload.keys).subtracting(["keys"]))
    guard !unknown.isEmpty else { return }
    Console.say(
      "warning: format-1 clients in the field leave out \(unknown.sorted().joined(separator: ", "))"
        + " before they check the signature, and refuse the document; hint: put it beside the payload"
    )
  }
}
