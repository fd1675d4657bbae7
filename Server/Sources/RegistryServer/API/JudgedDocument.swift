import RegistryCore
import SslPinningPlatform
import SslPinningRules

/// A document as changes are judged by it.
struct JudgedDocument: Sendable {
  let file: String
  /// The endpoints that the configuration has.
  let configured: [WatchedEndpoint]
  let state: DocumentState
  /// Who decides about new keys of endpoints that say nothing else.
  var approval = ApprovalMode.auto

  /// The endpoints in force.
  var endpoints: [WatchedEndpoint] { state.endpoints(configured: configured) }

  /// An endpoint as it would be in force if it were added; `nil` if it cannot be.
  func adding(_ endpoint: WatchedEndpoint) -> WatchedEndpoint? {
    var next = state
    let request = DocumentState.Request(who: "", at: 0, why: "")
    do throws(AdministrationError) {
      _ = try next.add(endpoint, configured: configured, request)
    } catch { return nil }
    return next.endpoints(configured: configured).first { $0.id == endpoint.id }
  }

  /// Who speaks for a host of an endpoint that is not there yet, and has a key.
  func listing(_ endpoint: WatchedEndpoint) -> [WatchedEndpoint] {
    speaking(for: endpoint).filter { state.keysByEndpoint[$0.id]?.keys.isEmpty == false }
  }

  /// Who speaks for a host of an endpoint that is not there yet.
  func speaking(for endpoint: WatchedEndpoint) -> [WatchedEndpoint] {
    (endpoints + state.orphans).filter { other in
      other.patterns.contains { pattern in endpoint.patterns.contains(where: pattern.overlaps) }
    }
  }
}

extension DocumentCoordinator {
  var judged: JudgedDocument {
    JudgedDocument(
      file: file, configured: settings.configuration.endpoints, state: state,
      approval: settings.approval)
  }
}

/// All documents as a change of one of them is judged by them: read when its turn has come, since what was read before may be minutes
/// old by then.
final class AllDocuments: Sendable {
  private let coordinators: @Sendable () -> [DocumentCoordinator]
  private let coordinator: DocumentCoordinator
  private let read = Locked<[JudgedDocument]?>(nil)

  /// - Parameters:
  ///   - coordinators: those in force; an edit of the configuration may bring others.
  ///   - coordinator: the one whose document is changed.
  init(
    _ coordinators: @escaping @Sendable () -> [DocumentCoordinator],
    from coordinator: DocumentCoordinator
  ) {
    (self.coordinators, self.coordinator) = (coordinators, coordinator)
  }

  /// Reads them. The first time also what another server stored of the others; after that no longer, or whoever changes the
  /// document again and again would keep this change from beginning.
  func look(at now: Int64) async {
    let isFirst = read.withLock { $0 == nil }
    var documents: [JudgedDocument] = []
    for other in coordinators() {
      if isFirst, other !== coordinator { await other.refresh(at: now) }
      documents.append(await other.judged)
    }
    let found = documents
    read.withLock { $0 = found }
  }

  /// The others.
  var others: [JudgedDocument] {
    (read.withLock { $0 } ?? []).filter { [file = coordinator.file] in $0.file != file }
  }

  /// All of them, the one that is changed as it is now.
  func documents(with own: JudgedDocument) -> [JudgedDocument] {
    (read.withLock { $0 } ?? []).map { document in
      guard document.file == own.file else { return document }
      var own = own
      own.approval = document.approval
      return own
    }
  }
}
