import CanonicalJSON
import SslPinningRules

/// What a record of an earlier version says of hosts that left the configuration: it has them by their patterns, in `vanished`,
/// as the document had listed them, and for each endpoint whose name does not say it what that spoke for.
struct EarlierRecord {
  private var spoken: [String: [HostPattern]] = [:]
  private var vanished: [StateReader] = []

  init(_ record: StateReader) throws(StateFault) {
    if let patterns = record.object["spokenPatterns"] {
      let reader = try StateReader(patterns, "spokenPatterns")
      for (id, _) in reader.object { spoken[id] = try reader.patterns(id) }
    }
    if record.object["vanished"] != nil {
      vanished = try record.list("vanished") { reader throws(StateFault) in reader }
    }
  }

  /// Gives a state the orphans, and the endpoints that were in force.
  func complete(_ state: inout DocumentState) throws(StateFault) {
    for reader in vanished { try adopt(reader, &state) }
    let entries = DocumentEntry.listed(in: state.document)
    let listed = Dictionary(grouping: entries, by: \.pattern).mapValues { Set($0.map(\.pin)) }
    let (settings, denied) = (DocumentEntry.settings(in: state.document), state.deniedPins)
    let orphans = Set(state.orphans.map(\.id))
    for id in state.keysByEndpoint.keys.sorted() where !orphans.contains(id) {
      guard var endpoint = WatchedEndpoint(id: id) else { continue }
      if let patterns = spoken[id] {
        endpoint.patterns = patterns
      } else {
        // No pattern is guessed from a name: neighbours would be listed with its keys.
        let own = Set(state.keysByEndpoint[id]?.keys.map(\.pin) ?? []).intersection(
          entries.map(\.pin))
        let said = entries.filter { entry in
          entry.fqdn == endpoint.fqdn && own.contains(entry.pin)
            && listed[entry.pattern]?.isSuperset(of: own) == true
        }
        endpoint.patterns = Set(said.map(\.pattern)).sorted { $0.description < $1.description }
        if endpoint.patterns.isEmpty { continue }
      }
      // One that left long ago has keys that were revoked since at the place to which its hosts went.
      let pins = endpoint.patterns.reduce(into: denied) { $0.formUnion(listed[$1] ?? []) }
      if !listed.isEmpty { state.keysByEndpoint[id]?.keys.removeAll { !pins.contains($0.pin) } }
      guard state.keysByEndpoint[id]?.keys.isEmpty == false else { continue }
      let terms = endpoint.patterns.compactMap { settings[$0] }.map { HostTerms($0) }
      endpoint.terms = terms.dropFirst().reduce(terms.first) { $0?.united(with: $1) } ?? .standard
      state.watched.append(endpoint)
    }
  }

  private func adopt(_ reader: StateReader, _ state: inout DocumentState) throws(StateFault) {
    guard let pattern = try? HostPattern(try reader.string("pattern")) else {
      throw reader.fault("pattern")
    }
    let signed = try reader.integer("signed")
    let speakers = try reader.strings("speakers")
    let known = speakers.flatMap { state.keysByEndpoint[$0]?.keys ?? [] }
    var fqdn = pattern.base
    let keys = try reader.list("entries") { entry throws(StateFault) in
      let (pin, date) = (try entry.pin("pin"), try entry.integer("date"))
      if let name = try? HostName(try entry.string("fqdn")) { fqdn = name }
      return known.first { $0.pin == pin }
        ?? KnownKey(pin: pin, firstSeen: min(date, signed), lastSeen: signed)
    }
    let authorities = try reader.list("authorities") { entry throws(StateFault) in
      (try entry.pin("pin"), try entry.integer("lastSeen"))
    }
    var former =
      speakers.lazy.compactMap { WatchedEndpoint(id: $0) }.first ?? WatchedEndpoint(fqdn: fqdn)
    let settings = reader.object["settings"].flatMap { try? HostSettings($0) }
    former.terms = settings.map { HostTerms($0) } ?? .standard
    let orphan = former.orphan(for: pattern)
    state.orphans.append(orphan)
    state.keysByEndpoint[orphan.id] = EndpointKeys(
      keys: keys, authorities: Dictionary(authorities, uniquingKeysWith: max))
    var said = DocumentState.Override()
    said.terms = try HostTerms(in: reader)
    if reader.object["manual"] == .bool(true) { said.approval = .manual }
    if !said.isEmpty { state.overrides[orphan.id] = said }
  }
}
