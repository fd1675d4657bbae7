import SslPinningRules

/// What a list in another format does to servers, held against what this one does.
///
/// - Clients are asked, not lists: what each side demands of a host is put to the clients' own policy, with every
///   chain that differs in a key which either side lists.
/// - Each pattern is asked by hosts that stand for all that it matches. A host that the other side does not pin is told
///   by whoever leaves it out. The same goes for unlisted hosts, if the list unites its entries.
/// - A host that only reports refuses nobody.
extension PinPolicy {
  /// - Parameter read: the other list as its clients read it.
  func differences(from read: PinPolicy) -> [PolicyRemark] {
    var told: Set<String> = []
    let leaves = Set(rules.flatMap { $0.entry.leaf.pins.map(\.spki) })
    let authorities = Set(rules.flatMap { $0.entry.ca.pins.map(\.spki) })
    return groups.flatMap { group in
      group.samples.flatMap { subject, host -> [PolicyRemark] in
        let (listed, other) = (entry(for: host), read.entry(for: host))
        if overlap == .mostSpecific, listed?.enforcement != .enforce,
          other?.enforcement == .enforce
        {
          let text = "refuses servers that are let in here: those without its pins"
          guard told.insert("\(group.base) \(text)").inserted else { return [] }
          return [.init(subject, "\(read.format.title) \(text)")]
        }
        guard let here = Side(listed, host), let there = Side(other, host) else { return [] }
        // What is read without roles still is a server's key, or a CA's.
        let pins = here.pins.union(there.pins)
        let chains = Chain.all(
          leaves: pins.intersection(leaves), authorities: pins.intersection(authorities), here,
          there)
        let texts = [
          Self.text(
            "lets in servers that are refused here",
            chains.filter { there.accepts($0) && !here.accepts($0) }),
          Self.text(
            "refuses servers that are let in here",
            chains.filter { here.accepts($0) && !there.accepts($0) }),
        ]
        return texts.compactMap { $0 }.filter { told.insert("\(group.base) \($0)").inserted }
          .map { .init(subject, "\(read.format.title) \($0)") }
      }
    }
  }

  private static func text(_ what: String, _ chains: [Chain]) -> String? {
    chains.isEmpty ? nil : "\(what): \(Chain.text(chains))"
  }

  /// These pins without those that let nobody in: denied ones, and if there is a time, those that are over. A role
  /// that has no pin left stays demanded.
  ///
  /// - Parameter now: Unix seconds.
  func usable(at now: Int64? = nil) -> PinPolicy {
    func counting(_ pins: PinSet) -> PinSet {
      PinSet(
        pins.pins.filter { pin in
          !denied.contains(pin.spki) && now.map { pins.contains(pin.spki, at: $0) } ?? true
        })
    }
    let left = rules.map { rule in
      var entry = rule.entry
      if entry.demands(.leaf) { entry.required.insert(.leaf) }
      if entry.demands(.ca) { entry.required.insert(.ca) }
      (entry.leaf, entry.ca) = (counting(entry.leaf), counting(entry.ca))
      return rule.demanding(entry)
    }
    return PinPolicy(
      format: format, rules: left, overlap: overlap, denied: denied, anchors: anchors,
      remarks: remarks)
  }

  /// The pins that ``usable(at:)`` took out.
  func leftOut(in usable: PinPolicy) -> [PolicyRemark] {
    zip(rules, usable.rules).compactMap { old, new in
      let count = Set(old.entry.pins.map(\.spki)).subtracting(new.entry.pins.map(\.spki)).count
      return count == 0
        ? nil
        : .init(
          "\(old.entry.pattern)",
          "\(count) pin\(count == 1 ? " is" : "s are") denied, or over: left out")
    }
  }
}
