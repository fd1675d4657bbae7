import SslPinningRules

/// What people decided about hosts that another document is to speak for.
///
/// - Within a document it goes along with a host (see `Succession`). Each document has its own record, so to another one nothing
///   goes: `approval: manual`, terms and announced keys would be gone, and a host that people took out would be watched again.
///   (A key that waits is no first sight there, see ``DocumentListing``.)
/// - Endpoints that they added stay with it, too. If it goes to others, a new name included, nobody would watch them.
/// - So an edit that does this is refused, or told: people are to say it again where the host is then.
extension DocumentState {
  /// What becomes of a document by an edit.
  package enum Stay {
    /// It has these endpoints then.
    case keeps([WatchedEndpoint])
    /// It goes now, or went earlier.
    case goes, gone

    fileprivate var isGone: Bool { if case .gone = self { true } else { false } }
  }

  /// What people decided in a document, and an edit could leave behind.
  ///
  /// Made once a document and held against each other one, so all that does not depend on the other one is worked out here:
  /// a thousand documents are a million pairs.
  package struct Words {
    private let state: DocumentState
    private let isGone: Bool
    /// Endpoints of which something was said, and the hosts that stay with this document.
    private let sources: [WatchedEndpoint]
    private let kept: Set<HostPattern>
    /// What `sources` speak for.
    private var spoken = PatternIndex()

    /// - Parameter stay: what becomes of the document by the edit.
    /// - Returns: `nil` if nothing was decided that could be left behind, as in nearly all documents.
    package init?(in state: DocumentState, stay: Stay) {
      sources = (state.watched + state.orphans).filter { source in
        state.overrides[source.id]?.inherited != nil
          || state.keysByEndpoint[source.id]?.keys.contains { $0.staged != nil } == true
      }
      guard !sources.isEmpty || !state.tombstones.isEmpty else { return nil }
      self.state = state
      isGone = stay.isGone
      kept =
        if case .keeps(let own) = stay {
          Set(state.endpoints(configured: own).flatMap(\.patterns))
        } else { [] }
      spoken.insert("", sources.flatMap(\.patterns))
    }

    /// What would not go along to another document, for each endpoint.
    ///
    /// - Parameters:
    ///   - endpoints: those of the other document after the edit.
    ///   - other: that document as it was.
    package func left(by endpoints: [WatchedEndpoint], of other: DocumentState) -> [String] {
      let met = endpoints.filter {
        state.tombstones[$0.id] != nil || spoken.overlaps("none", $0.patterns)
      }
      guard !met.isEmpty else { return [] }
      let spokeFor = Dictionary(
        other.watched.map { ($0.id, Set($0.patterns)) }, uniquingKeysWith: { $0.union($1) })
      let known = spokeFor.values.reduce(into: Set<HostPattern>()) { $0.formUnion($1) }
      var left: [String] = []
      for endpoint in met {
        if state.tombstones[endpoint.id] != nil, spokeFor[endpoint.id] == nil {
          left.append(
            "\(endpoint.id) was taken out, and would be watched again; hint: leave it out of the configuration"
          )
        }
        let new = endpoint.patterns.filter { spokeFor[endpoint.id]?.contains($0) != true }
        for source in sources {
          // What leaves now counts for whoever speaks for its host there, be it moved or known there before. What left earlier,
          // for an endpoint that comes back there, or for a host of which nobody there speaks yet.
          let others =
            source.isOrphan || isGone
            ? new.filter { source.place == endpoint.id || !known.contains($0) } : endpoint.patterns
          let isMoved = source.patterns.contains { pattern in
            !kept.contains(pattern) && others.contains { $0.overlaps(pattern) }
          }
          if isMoved { left += state.words(about: source, missing: endpoint) }
        }
      }
      return Set(left).sorted()
    }
  }

  /// What people added here that nobody would watch, if this document goes and others take hosts of its over.
  ///
  /// - Parameters:
  ///   - documents: all that there are after the edit, and what they were. If this one went earlier, only new hosts of theirs count.
  ///   - isGone: whether it went earlier.
  package func addedLeft(
    by documents: [(endpoints: [WatchedEndpoint], state: DocumentState)], isGone: Bool
  ) -> [String] {
    let left = added.filter { tombstones[$0.id] == nil }
    guard !left.isEmpty else { return [] }
    var (spokenFor, taken): (Set<HostPattern>, Set<HostPattern>) = ([], [])
    for (endpoints, state) in documents {
      let patterns = state.endpoints(configured: endpoints).flatMap(\.patterns)
      spokenFor.formUnion(patterns)
      let known = Set(isGone ? state.watched.flatMap(\.patterns) : [])
      taken.formUnion(patterns.filter { !known.contains($0) })
    }
    let goesOn = watched.flatMap(\.patterns).contains { mine in taken.contains { $0.overlaps(mine) }
    }
    guard goesOn else { return [] }
    return left.filter { !spokenFor.isSuperset(of: $0.patterns) }.map {
      "\($0.id) was added, and would not be watched any more; hint: write it into the configuration, or take it out here before"
    }.sorted()
  }

  /// What people decided about orphans of this state since `before`, by a server whose configuration still has their endpoints:
  /// where their hosts are by this one, nothing of it counts, and whoever decided it does not know.
  func wordsLeft(by theirs: DocumentState, since before: DocumentState) -> [DocumentNotice] {
    let (live, known) = (Set(theirs.watched.map(\.id)), Set(before.orphans.map(\.id)))
    return orphans.filter { live.contains($0.place) && known.contains($0.id) }.flatMap {
      orphan -> [String] in
      let plain = WatchedEndpoint(fqdn: orphan.fqdn)
      let old = before.words(about: orphan, missing: plain)
      return words(about: orphan, missing: plain).filter { !old.contains($0) }
    }.map(DocumentNotice.wordsLeft)
  }

  private func words(about source: WatchedEndpoint, missing endpoint: WatchedEndpoint) -> [String] {
    var words: [String] = []
    if overrides[source.id]?.approval == .manual, endpoint.approval != .manual {
      words.append(
        "the keys of \(source.id) wait for a person, and would not any more; hint: write approval: manual at the endpoint, or take it back here"
      )
    }
    if let terms = overrides[source.id]?.terms, !endpoint.terms.isSame(as: terms) {
      words.append(
        "\(source.id) is asked for \(terms), and would be for \(endpoint.terms); hint: write ca, match and enforce at the endpoint"
      )
    }
    let (keys, denied) = (keysByEndpoint[source.id]?.keys ?? [], deniedPins)
    if keys.contains(where: { $0.staged != nil && !denied.contains($0.pin) }) {
      words.append(
        "a key of \(source.id) is announced, and would not be any more; hint: revoke it here, and announce it there afterwards"
      )
    }
    return words
  }
}
