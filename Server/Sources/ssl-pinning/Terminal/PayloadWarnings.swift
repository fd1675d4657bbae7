import CanonicalJSON
import SslPinningRules
import TLSTools

/// What clients could not use of a payload, and what would make old ones refuse it.
enum PayloadWarnings {
  private static let members: Set<String> = ["domainName", "key", "fqdn", "expire", "date"]

  /// - Parameters:
  ///   - statement: what will stand beside the payload, be it a retired one; `nil` in format 1.
  ///   - clock: Unix time in seconds at which clients are imagined to read it.
  ///   - documents: what was published before; what servers get along with since then is not told every day.
  static func say(
    of payload: JSONObject, under statement: Statement?, at clock: Int64,
    after documents: [PublishedDocument]
  ) {
    if let registry = StatedList(payload, under: statement)?.list,
      let draft = try? registry.draftPolicy(under: statement, at: clock)
    {
      let hosts = HostProblems.texts(
        of: registry, under: draft.policy, at: draft.time, known: documents.flatMap(shadows))
      let removed = HostProblems.texts(of: registry, removed: statement?.removed ?? [])
      let pins = PinStates(
        registry: registry, statement: statement, denied: draft.policy.denied, time: draft.time)
      Terminal.warn(registry.problems.map(\.description) + hosts + removed + pins.warnings)
    }
    let entries = payload["keys"]?.arrayValue?.compactMap(\.objectValue) ?? []
    let unknown = Set(entries.flatMap(\.keys)).subtracting(members)
      .union(Set(payload.keys).subtracting(["keys"]))
    guard !unknown.isEmpty else { return }
    Terminal.say(
      "warning: format-1 clients in the field leave out \(unknown.sorted().joined(separator: ", "))"
        + " before they check the signature, and refuse the document; hint: put it beside the payload"
    )
  }

  /// Those that were there before, as clients found them then.
  private static func shadows(of document: PublishedDocument) -> [HostProblems.Shadow] {
    let statement = (try? document.statement(of: document.registry ?? "")) ?? nil
    guard let list = document.list(under: statement)?.list,
      let draft = try? list.draftPolicy(under: statement, at: statement?.issued ?? 0)
    else { return [] }
    return HostProblems.shadows(of: list, under: draft.policy, at: draft.time)
  }
}
