import Foundation
import HTTPServing
import RegistryCore
import RegistryStores
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// The registry server, assembled: watches, signs, stores, publishes.
///
///     let service = try RegistryService(configuration: configuration)
///     try await service.run { print("listening on \($0)") }
///
/// Everything that an operator can get wrong fails in `init` or `start`, before the first request:
/// the signing key, the anchors, the address, a store that refuses. One that does not answer is waited for.
public final class RegistryService: Sendable {
  let inForce: Locked<ServerConfiguration>
  /// The tokens that edits end which wait for their turn: the edit before must not bring one back.
  let endedAhead = Locked<[UUID: Set<String>]>([:])
  let clock: SteadyClock
  let log: ServerLog
  let documents: PublishedDocuments
  let health = ServiceHealth()
  let store: SealedStore
  let metrics: ServerMetrics
  /// What reported chains are judged by.
  private let anchors: Locked<TrustAnchorCache?>
  /// What apps report; `nil` where nothing is collected.
  private let reports: ReportCollector?
  let services: CoordinatorServices
  let duty: Replication
  /// What waits for a second person.
  let proposals: ProposalBook
  /// Who is told of what begins and what is over.
  private let receivers: [any NotificationReceiver]
  /// What was passed in instead of probing over TLS.
  private let observer: (any EndpointProber)?
  private let answered = AnsweredQuestions()
  private let tokenKey: Locked<AdminTokenKey>
  private let running = Locked<Running?>(nil)
  let reloading = Locked<Task<Void, Never>?>(nil)
  /// What came of waiting for the store.
  let waiting = Locked(Waiting())
  /// The last of what runs one after the other.
  let turn = Locked<Task<Void, Never>?>(nil)

  private struct Running {
    var listeners: ServiceListeners
    /// Watches while this server leads, and follows what others store.
    let tasks: [Task<Void, Never>]
  }

  /// Checks the configuration against the machine: reads the signing key and the anchors, opens the
  /// store. Listens nowhere yet.
  ///
  /// - Parameters:
  ///   - clock: the time; tests pass their own.
  ///   - log: where events go; standard error at the configured level by default.
  ///   - observer: what probes endpoints; TLS by default.
  /// - Throws: ``RegistryServiceError``.
  public init(
    configuration: ServerConfiguration, clock: any ServerClock = SystemClock(),
    log: ServerLog? = nil, observer: (any EndpointProber)? = nil
  ) throws(RegistryServiceError) {
    let log =
      log
      ?? .standardError(
        level: configuration.logLevel, format: configuration.logFormat,
        isPretty: configuration.logPretty)
    let signer: DocumentSigner
    do throws(DocumentSignerError) {
      signer = try DocumentSigner(
        directory: configuration.tls.directory, publishing: configuration.publishing)
    } catch { throw .signer(error) }
    let clock = SteadyClock(clock) { [health] change in
      log.note(change)
      health.doubts(clock: change)
    }
    let metrics = ServerMetrics(
      version: ServerVersion.current, started: clock.now(), droppedLines: { log.droppedLines })
    metrics.configured(configuration.documents)
    let store = try Self.store(configuration, signer: signer, metrics: metrics, log: log)
    self.metrics = metrics
    documents = PublishedDocuments(files: configuration.documents.map(\.file))
    let signing = Locked(signer)
    services = CoordinatorServices(
      signing: signing, store: store, published: documents, health: health, log: log,
      metrics: metrics, isClockConfirmed: { clock.standing.isConfirmed },
      copies: LastCopies(
        store: store, directory: configuration.publishing.directory,
        mark: Self.markOfCopies(configuration), signer: { signing.withLock { $0 } }))
    let coordinators = configuration.documents.map { [services] in
      DocumentCoordinator(CoordinatorSettings($0, tls: configuration.tls), services: services)
    }
    let inForce = Locked(configuration)
    self.inForce = inForce
    let proposals = ProposalBook(store: store, log: log, metrics: metrics)
    self.proposals = proposals
    duty = Replication(
      MonitoringPlan(
        coordinators, try Self.observing(observer, configuration.tls, clock, answered),
        configuration),
      store: store, clock: clock, health: health, log: log, metrics: metrics,
      believesStore: { [services] in
        Self.tellMark(of: store, services, at: clock.now())
        if inForce.withLock(\.administration.needsSecondPerson) {
          await proposals.tidy(at: clock.now())
        }
        return await Self.check(store, log: log)
      },
      whenTakingOver: { await Self.tellMoved(by: inForce.withLock(\.documents), store, log) })
    let anchors = Locked(try Self.anchors(configuration))
    self.anchors = anchors
    let known = KnownKeys(coordinators: { [duty] in duty.coordinators })
    reports =
      configuration.reports.isEnabled
      ? ReportCollector(
        store: store, listed: { await known.knowledge().listed }, writer: UUID().uuidString,
        clock: clock, log: log, metrics: metrics,
        judge: ReportedChainJudge(
          validated: { certificates, host in
            let anchors = anchors.withLock { $0?.current() }
            return clock.standing.times.lazy.compactMap {
              anchors?.validated(certificates, for: host, at: $0)
            }.first
          }, knowledge: { await known.knowledge() }),
        limits: ReportLedger.Limits(groups: configuration.reports.maximumGroups)) : nil
    do throws(ReceiverError) {
      receivers = try configuration.notify.receivers { clock.standing.wall }
    } catch { throw .receiver(error) }
    self.observer = observer
    self.clock = clock
    self.log = log
    self.store = store
    tokenKey = Locked(try AdminTokenKey(configuration, signer: signer, log: log))
    publicKeyPEM = signer.publicKeyPEM
  }

  /// The public key that clients verify documents with, in PEM.
  public let publicKeyPEM: String

  /// Publishes what the store has, listens, and begins to watch. Returns as soon as requests are
  /// answered; documents without a stored key follow with their endpoints' first probe.
  ///
  /// - Throws: ``RegistryServiceError``. Calling it twice is ``RegistryServiceError/alreadyStarted``.
  public func start() async throws(RegistryServiceError) {
    guard address == nil else { throw .alreadyStarted }
    let configuration = inForce.withLock { $0 }
    do throws(StoreError) { try await open() } catch {
      guard isAbsence(error) else { throw .store(error) }
      await beginWaiting(because: error)
    }
    warn(of: configuration, services.signer)
    let tokens = SeenTokens { [inForce, endedAhead] in
      let ahead = endedAhead.withLock { Set($0.values.joined()) }
      return ahead.union(inForce.withLock { $0.administration.revokedTokens })
    }
    let administration = administrationSite(configuration, tokens)
    let console = configuration.administrationRefusal == nil ? WebConsoleRoutes() : nil
    let isApart = configuration.administration.listen != nil
    let site = RegistryRoutes(
      documents: documents, health: health, administration: isApart ? nil : administration,
      console: isApart ? nil : console,
      reports: reports.map { [metrics] in ReportRoutes($0, metrics: metrics) },
      metrics: MetricsRoute(
        metrics: metrics, coordinators: { [duty] in duty.coordinators }, clock: clock,
        health: health, reports: reports, tokens: tokens),
      hasMetrics: configuration.metricsListen == nil)
    let listeners: ServiceListeners
    do throws(HTTPServerError) {
      listeners = try ServiceListeners(
        configuration, site,
        console: ConsoleListenerRoutes(
          documents: documents, health: health, administration: administration, console: console,
          metrics: metrics))
    } catch {
      throw .listening(error)
    }
    tellEnd(of: listeners.identity)
    let isOpen = health.awaitedStore == nil
    let work = Task { [self] in
      if !isOpen, !(await waitForStore()) { return }
      await withTaskGroup(of: Void.self) { group in
        group.addTask { [duty] in await duty.lead() }
        group.addTask { [duty] in await duty.follow() }
        if let reports { group.addTask { await reports.run() } }
      }
    }
    // Also while the store is awaited: that is told.
    let telling = notifier(tokens).map { notifier in Task { await notifier.run() } }
    let tasks = [work] + (telling.map { [$0] } ?? [])
    running.withLock { $0 = Running(listeners: listeners, tasks: tasks) }
    log.event(
      .info, "started",
      [
        "address": "\(listeners.documents.address)",
        "metrics": "\(listeners.metrics?.address ?? listeners.documents.address)",
        "console": "\(listeners.console?.address ?? listeners.documents.address)",
        "documents": "\(configuration.documents.count)",
        "endpoints": "\(configuration.documents.reduce(0) { $0 + $1.endpoints.count })",
      ])
    warnIfShared(configuration)
  }

  /// Opens the store and publishes what it has.
  ///
  /// - Throws: ``StoreError``. It may be called again then, and begins anew.
  func open() async throws(StoreError) {
    let configuration = inForce.withLock { $0 }
    try await openStore(configuration)
    for coordinator in duty.coordinators { try await coordinator.open(at: clock.now()) }
    await beginTime()
    // Each knows by now what the others deny.
    for coordinator in duty.coordinators { await coordinator.shareDenials(at: clock.now()) }
    for coordinator in duty.coordinators { await coordinator.checkSigning(at: clock.now()) }
    await tellOdds(configuration, duty.coordinators)
    await tellUnknown(configuration.documents, duty.coordinators)
    if let warning = await store.warning {
      log.event(.warn, "storage_may_lose", ["message": warning])
    }
    await copyDocuments(to: configuration.publishing.directory)
    await tellRoots(of: duty.coordinators)
    await reports?.open()
  }

  private func notifier(_ tokens: SeenTokens) -> Notifier? {
    guard !receivers.isEmpty else { return nil }
    let survey = ConditionSurvey(
      duty: duty, services: services, metrics: metrics, tokens: tokens, clock: clock,
      reports: reports ?? NoReports(clock: clock))
    return Notifier(receivers, clock: clock, log: log, metrics: metrics) {
      await survey.conditions()
    }
  }

  /// A clock that is wrong at the start is told by what was signed before.
  private func beginTime() async {
    var newest: Int64?
    for coordinator in duty.coordinators {
      let state = await coordinator.state
      if !state.document.isEmpty { newest = max(newest ?? state.signed, state.signed) }
    }
    clock.begin(after: newest, life: DocumentSigner.horizon)
  }

  private func administrationSite(
    _ configuration: ServerConfiguration, _ tokens: SeenTokens
  ) -> AdministrationRouter {
    let routes = AdministrationRoutes(
      administration: RegistryAdministration(
        coordinators: { [duty] in duty.coordinators }, store: store, clock: clock,
        changed: { [duty] _ in await duty.update() }),
      services: services, isLeading: { [duty] in duty.isLeading },
      reports: reports ?? NoReports(clock: clock), tokens: tokens, proposals: proposals,
      needsSecondPerson: { [inForce] in
        inForce.withLock(\.administration.needsSecondPerson)
      }, tokenKeyID: { [tokenKey] in tokenKey.withLock { $0 }.id },
      version: ServerVersion.current)
    return AdministrationRouter(
      routes: routes.all,
      refusal: { [inForce] in
        // Whether it is on, and served in the clear, is in force until a restart.
        configuration.administrationRefusal ?? inForce.withLock { $0.shortKeyRefusal }
      },
      postponed: { [health] in
        health.awaitedStore.map { .storeAway($0.reason) }
      },
      tokenKey: { [tokenKey] in tokenKey.withLock { $0 } }, tokens: tokens,
      times: { [clock] in clock.standing.times }, log: log)
  }

  /// Where it listens, with the port that the system chose where 0 was configured; `nil` while it
  /// does not.
  public var address: ListenAddress? {
    running.withLock { $0?.listeners.documents.address }
  }

  /// Where metrics are served; as ``address`` where they have no listener of their own.
  public var metricsAddress: ListenAddress? {
    running.withLock { $0.map { ($0.listeners.metrics ?? $0.listeners.documents).address } }
  }

  /// Where the administration is served; as ``address`` if it has no listener of its own.
  public var consoleAddress: ListenAddress? {
    running.withLock { $0.map { ($0.listeners.console ?? $0.listeners.documents).address } }
  }

  /// The published document of a file, as every client gets it at this moment.
  public func currentDocument(_ file: String) -> PublishedDocument? { documents.document(file) }

  /// Whether no probe is under way or due: until the clock moves on, nothing happens by itself.
  package var isAtRest: Bool { duty.isAtRest }

  /// Probes the endpoints of this name now, in every document, until no key waits for
  /// confirmation or the probes are used up. What was confirmed is published on return.
  ///
  /// - Returns: how many endpoints have the name.
  @discardableResult
  public func probe(_ fqdn: String) async -> Int {
    guard health.awaitedStore == nil, let host = try? HostName(fqdn) else { return 0 }
    var count = 0
    for coordinator in duty.coordinators {
      for endpoint in await coordinator.endpoints where endpoint.fqdn == host {
        count += 1
        await duty.probe(endpoint, of: coordinator)
      }
    }
    return count
  }

  /// Stops cleanly: no new connections, answers under way go out, probes end, everything known is stored. One that
  /// follows stores nothing: the leader may have another configuration. Further calls do nothing.
  public func stop() async {
    guard let running = running.withLock({ $0.take() }) else { return }
    health.stopping()
    log.event(.info, "stopping")
    let led = duty.isLeading ? duty.coordinators : []
    for task in running.tasks { task.cancel() }
    await running.listeners.stop()
    for task in running.tasks { await task.value }
    for coordinator in led { await coordinator.close(at: clock.now()) }
    await documents.copy(to: nil)
    await reports?.flush()
    await store.close()
    log.event(.info, "stopped")
  }

  /// Takes another configuration in force, without a request that is dropped: documents, endpoints and
  /// how they are watched, keys and key sets, the certificate, time-outs, the log. What needs a restart
  /// stays as it is and is told.
  ///
  /// - Parameter judged: whether an edit that loses what people decided is refused.
  /// - Throws: ``RegistryServiceError``; then everything stays as it was.
  public func reload(
    _ read: ServerConfiguration, judged: Bool = false
  ) async throws(RegistryServiceError) {
    let result: Result<Void, RegistryServiceError> = await inTurn { [self] in
      do throws(RegistryServiceError) { return .success(try await take(read, judged)) } catch {
        return .failure(error)
      }
    }
    try result.get()
  }

  private func take(
    _ read: ServerConfiguration, _ judged: Bool
  ) async throws(RegistryServiceError) {
    // Then all documents are read once it is open.
    let isOpen = health.awaitedStore == nil
    let old = inForce.withLock { $0 }
    let new = read.whileRunning(over: old)
    try await RestartTrial.tryOut(read, over: old)
    let next = try await prepare(new)
    defer { services.edits.open() }
    if judged { try await judge(read) }
    do throws(HTTPServerError) { try change(server: new.server, to: next.identity) } catch {
      throw .listening(error)
    }
    // Before the documents take their turns: what a token has asked for must not put off its end.
    tokenKey.withLock { $0 = next.tokenKey }
    inForce.withLock { $0.administration = new.administration }
    services.signing.withLock { $0 = next.signer }
    if await store.use(next.sealKeys) {
      // What was signed by the key before is signed anew, and what could not be read by it is read.
      for coordinator in duty.coordinators {
        await coordinator.changeSigningKey()
        if isOpen { await coordinator.refresh(at: clock.now()) }
      }
    }
    anchors.withLock { $0 = next.anchors }
    let settings = Dictionary(
      new.documents.map { ($0.file, $0) }, uniquingKeysWith: { first, _ in first })
    for coordinator in next.coordinators {
      guard let document = settings[coordinator.file] else { continue }
      await coordinator.reconfigure(CoordinatorSettings(document, tls: new.tls))
    }
    let known = duty.coordinators
    documents.serve(files: new.documents.map(\.file))
    // What the store has of documents that have come.
    for coordinator in next.coordinators
    where isOpen && !known.contains(where: { $0 === coordinator }) {
      await coordinator.refresh(at: clock.now())
    }
    for coordinator in next.coordinators where isOpen {
      await coordinator.shareDenials(at: clock.now())
    }
    for coordinator in next.coordinators where isOpen {
      await coordinator.checkSigning(at: clock.now())
    }
    health.configured(new.documents.map(\.file))
    for coordinator in known where settings[coordinator.file] == nil {
      let state = await coordinator.known
      if !state.document.isEmpty { tellLeft(coordinator.file, signed: state.signed) }
    }
    if isOpen { await tellOdds(new, next.coordinators) }
    metrics.configured(new.documents)
    log.change(level: new.logLevel, format: new.logFormat, isPretty: new.logPretty)
    inForce.withLock { $0 = new }
    await duty.replace(MonitoringPlan(next.coordinators, next.observer, new))
    if !isOpen { await publishCopies() }
    warn(of: new, next.signer)
    for change in read.changes(from: old) {
      log.event(
        change.effect == .afterRestart ? .warn : .info, "configuration_changed",
        [
          "key": change.setting.rawValue, "old": change.old, "new": change.new,
          "effect": change.effect == .afterRestart ? "after a restart" : "in force",
        ])
    }
  }

  /// What a configuration needs of the machine, before any of it is in force.
  private struct Prepared {
    let signer: DocumentSigner
    let sealKeys: SealKeys
    let observer: any EndpointProber
    let anchors: TrustAnchorCache?
    let tokenKey: AdminTokenKey
    let identity: ListenerIdentity?
    let coordinators: [DocumentCoordinator]
  }

  private func prepare(
    _ new: ServerConfiguration
  ) async throws(RegistryServiceError) -> Prepared {
    let signer: DocumentSigner
    do throws(DocumentSignerError) {
      signer = try DocumentSigner(directory: new.tls.directory, publishing: new.publishing)
    } catch { throw .signer(error) }
    let sealKeys = try await CommandSigning.run {
      Result { () throws(RegistryServiceError) in try Self.sealKeys(of: signer, new) }
    }.get()
    do throws(StoreError) {
      if let fault = try await store.refusal(of: sealKeys) { throw StoreError.seal(fault) }
    } catch { throw .store(error) }
    let identity: ListenerIdentity?
    do throws(HTTPServerError) { identity = try new.server.listenerIdentity() } catch {
      throw .listening(error)
    }
    let observer = try Self.observing(observer, new.tls, clock, answered)
    let tokenKey = try AdminTokenKey(new, signer: signer, log: log)
    let known = Dictionary(
      duty.coordinators.map { ($0.file, $0) }, uniquingKeysWith: { first, _ in first })
    var coordinators: [DocumentCoordinator] = []
    for document in new.documents {
      if let coordinator = known[document.file] {
        coordinators.append(coordinator)
      } else {
        let coordinator = DocumentCoordinator(
          CoordinatorSettings(document, tls: new.tls), services: services)
        do throws(StoreError) {
          if health.awaitedStore == nil { try await coordinator.check() }
        } catch { throw .store(error) }
        coordinators.append(coordinator)
      }
    }
    return Prepared(
      signer: signer, sealKeys: sealKeys, observer: observer, anchors: try Self.anchors(new),
      tokenKey: tokenKey, identity: identity, coordinators: coordinators)
  }

  /// What reported chains are judged by; `nil` where no reports are taken.
  private static func anchors(
    _ configuration: ServerConfiguration
  ) throws(RegistryServiceError) -> TrustAnchorCache? {
    guard configuration.reports.isEnabled else { return nil }
    do throws(AnchorsError) { return try TrustAnchorCache(file: configuration.tls.anchors) } catch {
      throw .anchors(error)
    }
  }

  /// Has the listener go by other time-outs, and show another certificate where that is another one.
  private func change(
    server configuration: HTTPConfiguration, to identity: ListenerIdentity?
  ) throws(HTTPServerError) {
    guard var listeners = running.withLock({ $0?.listeners }) else { return }
    try listeners.change(configuration, to: identity)
    tellEnd(of: listeners.identity)
    running.withLock { $0?.listeners = listeners }
  }

  private func copyDocuments(to directory: String?) async {
    guard let directory else { return }
    await documents.copy(
      to: StaticFiles(
        directory: directory,
        copying: { [services] in services.copies?.note(copies: $0, areWritten: $1) },
        numbering: { [services] in services.copies?.number(of: $0, $1) }
      ) { [health, log, clock] file, outcome in
        outcome.tell(of: file, health, log, at: clock.now())
      })
  }
}
