import RegistryCore
import SslPinningRules

extension HostTerms {
  /// Reads `ca`, `match` and `enforce` of an entry of `keys`.
  ///
  /// - Throws: ``ConfigurationError``: `match: any` without a CA would say nothing.
  init(_ entry: ConfigurationSection) throws(ConfigurationError) {
    self.init(
      ca: try NamedIssuers(entry, "ca"),
      match: try entry.choice("match", of: Match.self, called: "match") ?? .all,
      enforcement: try entry.choice("enforce", of: Enforcement.self, called: "enforcement") ?? .app)
    guard match == .all || !ca.pins.isEmpty else {
      throw entry.missing(
        "ca", because: "match", hint: "name the CAs that are enough, preferably two roots")
    }
  }
}

extension ServerConfiguration {
  /// Terms are told by statements, and clients unite those of all patterns that match a host.
  func checkTerms(_ publish: ConfigurationSection) throws(ConfigurationError) {
    for document in documents {
      let endpoints = document.endpoints
      if !publishing.statements, let first = endpoints.first(where: { !$0.terms.isStandard }) {
        throw publish.invalid(
          "statements", "\(first.id) has ca, match or enforce, which only statements tell",
          hint: "leave it true, or take those out")
      }
      guard let conflict = HostTerms.conflict(among: endpoints) else { continue }
      throw publish.invalid(
        "statements",
        "in \(document.file), \(conflict.one) and \(conflict.other) speak of the same host with different ca or"
          + " match, and clients take the CAs of both and the stricter match",
        hint: "write ca and match alike in both entries of keys, or put them into different files")
    }
  }
}
