import RegistryCore
import SslPinningRules

/// Hosts that an edit gives to another document.
enum MovedHosts {
  /// What is said of hosts that leave a document for another one while its record is not believed: no copy tells what people
  /// decided about them.
  ///
  /// - Parameter patterns: what it spoke for.
  static func unknown(
    _ documents: [DocumentConfiguration], in file: String, _ patterns: [HostPattern]
  ) -> [String] {
    let kept = Set(documents.filter { $0.file == file }.flatMap(\.endpoints).flatMap(\.patterns))
    var moved = PatternIndex()
    for pattern in patterns where !kept.contains(pattern) {
      moved.insert(pattern.description, [pattern])
    }
    return documents.filter { $0.file != file }.flatMap { new in
      new.endpoints.filter { moved.overlaps("", $0.patterns) }.map {
        "what people decided in \(file) does not go along to \(new.file): its record is not believed, so nobody knows"
          + " whether keys of \($0.id) wait for a person, are announced, or what else apps are asked for; hint: put"
          + " the record right first (ssl-pinning store reset), or write approval, ca and match at the endpoint and restart"
      }
    }
  }

  /// What of people's decisions in these documents would stay behind, where the documents have these states.
  static func messages(
    _ documents: [DocumentConfiguration], _ states: [String: DocumentState], in files: Set<String>,
    areLive: Bool = false
  ) -> [String] {
    let configured = Dictionary(
      documents.map { ($0.file, $0.endpoints) }, uniquingKeysWith: { $0 + $1 })
    let new = documents.map { ($0.endpoints, states[$0.file] ?? DocumentState()) }
    return files.sorted().flatMap { file -> [String] in
      guard let state = states[file] else { return [] }
      let stay = configured[file].map(DocumentState.Stay.keeps) ?? (areLive ? .goes : .gone)
      let words =
        DocumentState.Words(in: state, stay: stay).map { words in
          documents.filter { $0.file != file }.flatMap { other in
            words.left(by: other.endpoints, of: states[other.file] ?? DocumentState())
              .map { "\(other.file): \($0)" }
          }
        } ?? []
      let added = configured[file] == nil ? state.addedLeft(by: new, isGone: !areLive) : []
      return (words + added.map { "another document: \($0)" }).map {
        "what people decided in \(file) does not go along to \($0)"
      }
    }
  }
}

/// Endpoints that the configuration has, and that people took out: nothing of them is on the list, however often the
/// configuration is read.
enum TakenOutEndpoints {
  static func ids(in document: DocumentConfiguration, _ state: DocumentState) -> [String] {
    guard !state.tombstones.isEmpty else { return [] }
    return document.endpoints.map(\.id).filter { state.tombstones[$0] != nil }
  }

  static func message(_ id: String, _ file: String, _ state: DocumentState) -> String {
    // A copy names hosts, and no endpoint: nobody knows who took it out.
    let reason =
      state.tombstones[id]?.by == HistoryEntry.monitor
      ? "its hosts were removed in the last published copy" : "an administrator took it out"
    return
      "\(id) is configured in \(file) and not watched: \(reason); hint: ssl-pinning admin add, or"
      + " take it out of the configuration as well"
  }
}

/// Endpoints at which people said otherwise than the configuration who decides about new keys. Whoever writes
/// `approval: manual` must not believe that keys wait where they do not.
enum OverruledApprovals {
  /// - Parameter usual: `tls.approval`. Against `auto`, which nobody has to write, a person's word is no news.
  static func messages(
    in document: DocumentConfiguration, _ state: DocumentState, _ usual: ApprovalMode
  ) -> [String] {
    let written = Dictionary(
      document.endpoints.map { ($0.id, $0.approval) }, uniquingKeysWith: { one, _ in one }
    ).compactMapValues(\.self)
    return state.endpoints(configured: document.endpoints).compactMap { endpoint in
      guard let said = written[endpoint.id] ?? (usual == .manual ? usual : nil),
        let own = endpoint.approval, own != said
      else { return nil }
      return
        "\(endpoint.id) in \(document.file) does not go by approval: \(said.rawValue) of the configuration: an"
        + " administrator set \(own.rawValue); hint: change that in the console, or by PATCH of the endpoint"
    }
  }
}
