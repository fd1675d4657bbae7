import CanonicalJSON
import Pinning
import TLSTools

/// What clients could not use of a payload, and what would make old ones refuse it.
enum PayloadWarnings {
  private static let members: Set<String> = ["domainName", "key", "fqdn", "expire", "date"]

  /// - Parameter clock: Unix time in seconds at which clients are imagined to read it.
  static func say(of document: RegistryDocument, at clock: Int64) {
    let payload = document.payload
    // A list without a usable key is refused as a whole.
    if let registry = try? Registry(payload: payload, settings: document.terms?.hosts ?? []),
      let draft = try? registry.draftPolicy(under: document.statement, at: clock)
    {
      let hosts = HostProblems.texts(of: registry, under: draft.policy, at: draft.time)
      let removed = HostProblems.texts(of: registry, removed: document.statement?.removed ?? [])
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
