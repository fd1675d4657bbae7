import Foundation
import Pinning
import PinningPlatform
import TLSTools

/// The registry server, assembled: watches, signs, stores, publishes.
///
///     let service = try RegistryService(configuration: configuration)
///     try await service.run { print("listening on \($0)") }
///
/// Everything that an operator can get wrong fails in `init` or `start`, before the first request:
/// the signing key, the anchors, the store, the address.
public final class RegistryService: Sendable {
  private let configuration: ServerConfiguration
  private let clock: any ServerClock
  private let log: ServerLog
  private let documents: PublishedDocuments
  private let health = ServiceHealth()
  private let store: any RegistryStore
  private let watcher: Watcher
  private let running = Locked<Running?>(nil)

  private struct Running {
    let server: HTTPServer
    /// Watches while this server leads, and follows what others store.
    let tasks: [Task<Void, Never>]
  }

  /// Checks the configuration against the machine: reads the signing key and the anchors, opens the
  /// store. Listens nowhere yet.
  ///
  /// - Parameters:
  ///   - clock: the time; tests pass their own.
  ///   - log: where events go; standard error at the configured level by default.
  ///   - observer: what looks at endpoints; TLS by default.
  /// - Throws: ``RegistryServiceError``.
  public init(
    configuration: ServerConfiguration, clock: any ServerClock = SystemClock(),
    log: ServerLog? = nil, observer: (any EndpointObserver)? = nil
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
    Self.warnIfExposed(configuration.tls.directory + "/prv.pem", log)
    let looking: any EndpointObserver
    if let observer { looking = observer } else { looking = try Self.observer(configuration.tls) }
    let store = try Self.open(configuration.storage)
    let documents = PublishedDocuments(files: configuration.documents.map(\.file))
    let health = self.health
    let services = KeeperServices(
      signer: signer, store: store, published: documents, health: health, log: log)
    watcher = Watcher(
      keepers: configuration.documents.map {
        DocumentKeeper(KeeperSettings($0, tls: configuration.tls), services: services)
      },
      observer: looking, clock: clock, tls: configuration.tls, health: health)
    self.configuration = configuration
    self.clock = clock
    self.log = log
    self.documents = documents
    self.store = store
    publicKeyPEM = signer.publicKeyPEM
  }

  /// The public key that clients verify documents with, in PEM.
  public let publicKeyPEM: String

  /// Publishes what the store has, listens, and begins to watch. Returns as soon as requests are
  /// answered; documents without a stored key follow with their endpoints' first look.
  ///
  /// - Throws: ``RegistryServiceError``. Calling it twice is ``RegistryServiceError/alreadyStarted``.
  public func start() async throws(RegistryServiceError) {
    guard address == nil else { throw .alreadyStarted }
    do throws(StoreError) {
      for keeper in watcher.keepers { try await keeper.open() }
    } catch { throw .store(error) }
    let site = RegistrySite(documents: documents, health: health)
    let server: HTTPServer
    do throws(HTTPServerError) {
      server = try HTTPServer(listen: configuration.listen, routing: site.rule) {
        .now(site.answer($0))
      }
    } catch { throw .listening(error) }
    let tasks = [Task { await self.lead() }, Task { await self.follow() }]
    running.withLock { $0 = Running(server: server, tasks: tasks) }
    log.event(
      .info, "started",
      [
        "address": "\(server.address)", "documents": "\(configuration.documents.count)",
        "endpoints": "\(configuration.documents.reduce(0) { $0 + $1.endpoints.count })",
      ])
  }

  /// Where it listens, with the port that the system chose where 0 was configured; `nil` while it
  /// does not.
  public var address: ListenAddress? { running.withLock { $0?.server.address } }

  /// The published document of a file, as every client gets it at this moment.
  public func currentDocument(_ file: String) -> PublishedDocument? { documents.document(file) }

  /// Looks at the endpoints of this name now, in every document, until no key waits for
  /// confirmation or the looks are used up. What was confirmed is published on return.
  ///
  /// - Returns: how many endpoints have the name.
  @discardableResult
  public func look(at fqdn: String) async -> Int {
    guard let host = try? HostName(fqdn) else { return 0 }
    var count = 0
    for keeper in watcher.keepers {
      for endpoint in await keeper.endpoints where endpoint.fqdn == host {
        count += 1
        await watcher.look(at: endpoint, for: keeper)
      }
    }
    return count
  }

  /// Stops cleanly: no new connections, answers under way go out, looks end, everything known is
  /// stored. Further calls do nothing.
  public func stop() async {
    guard let running = running.withLock({ $0.take() }) else { return }
    health.stopping()
    log.event(.info, "stopping")
    for task in running.tasks { task.cancel() }
    await running.server.stop()
    for task in running.tasks { await task.value }
    for keeper in watcher.keepers { await keeper.close(at: clock.now()) }
    await store.close()
    log.event(.info, "stopped")
  }

  /// Watches while this server leads, and tries to lead while another does.
  private func lead() async {
    while !Task.isCancelled {
      var leadership: (any StoreLeadership)?
      do throws(StoreError) { leadership = try await store.lead() } catch {
        log.event(.warn, "leadership_unknown", ["reason": "\(error)"])
      }
      if let leadership {
        await watch(under: leadership)
      } else {
        // A leader that dies is followed within 10 seconds, the store's own time to notice included.
        // Not by the clock: nothing is decided by it, and a clock that is set changes nothing.
        try? await Task.sleep(for: .seconds(1))
      }
    }
  }

  private func watch(under leadership: any StoreLeadership) async {
    log.event(.info, "leading")
    // What the one before stored last.
    for keeper in watcher.keepers { await keeper.upkeep(at: clock.now()) }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [watcher] in await watcher.run() }
      group.addTask { await leadership.ended() }
      await withTaskCancellationHandler {
        _ = await group.next()
      } onCancel: {
        Task { await leadership.resign() }
      }
      group.cancelAll()
      await leadership.resign()
    }
    log.event(.info, "not_leading")
  }

  /// Takes over what other servers store, as the store tells of it and once in a while regardless.
  private func follow() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [self] in
        for await name in store.changes() {
          for keeper in watcher.keepers where name.isEmpty || keeper.file == name {
            await keeper.refresh()
          }
        }
      }
      group.addTask { [self] in
        while !Task.isCancelled {
          do { try await clock.sleep(milliseconds: Self.refreshInterval) } catch { return }
          for keeper in watcher.keepers { await keeper.refresh() }
        }
      }
    }
  }

  /// How often a store is asked for changes that it should have told.
  private static let refreshInterval: Int64 = 60_000

  /// Starts, runs until SIGTERM or SIGINT, and stops cleanly. A second signal ends the process at
  /// once. A signal that comes while it starts counts too. SIGHUP is logged and changes nothing.
  ///
  /// - Parameter whenListening: is called once with the address, port included.
  /// - Throws: what ``start()`` throws.
  public func run(
    whenListening: (ListenAddress) -> Void = { _ in }
  ) async throws(RegistryServiceError) {
    DescriptorLimit.raise()
    let signal = await listenForSignals()
    try await start()
    if let address { whenListening(address) }
    await stop(at: signal)
  }

  /// Waits for SIGTERM or SIGINT, then stops cleanly. A second signal ends the process at once.
  ///
  /// Hazard: a signal that comes between ``start()`` and this call ends the process; ``run(whenListening:)``
  /// has no such gap.
  /// - Parameter whenWaiting: is called once, when a signal would stop the service cleanly.
  public func runUntilTerminated(whenWaiting: () -> Void = {}) async {
    let signal = await listenForSignals()
    whenWaiting()
    await stop(at: signal)
  }

  private func listenForSignals() async -> TerminationSignal {
    await TerminationSignal { [log] in
      log.event(
        .warn, "signal_ignored",
        [
          "signal": "SIGHUP",
          "message": "nothing is read again while the server runs; hint: restart it",
        ])
    }
  }

  private func stop(at signal: TerminationSignal) async {
    log.event(.info, "signal", ["signal": await signal.wait()])
    await stop()
  }

  private static func warnIfExposed(_ path: String, _ log: ServerLog) {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & 0o077 != 0 else { return }
    log.event(
      .warn, "signing_key_exposed",
      ["file": path, "message": "others can read the signing key; hint: chmod 600 \(path)"])
  }

  private static func open(
    _ storage: StorageConfiguration
  ) throws(RegistryServiceError) -> any RegistryStore {
    switch storage {
    case .memory: return MemoryStore()
    case .sqlite(let path):
      do throws(StoreError) { return try SQLiteStore(path: path) } catch { throw .store(error) }
    case .fileSystem(let directory):
      do throws(StoreError) { return try FileSystemStore(directory: directory) } catch {
        throw .store(error)
      }
    case .postgres, .redis:
      throw .store(.failed(operation: "opening the store", reason: "not built in yet"))
    }
  }

  private static func observer(
    _ tls: TLSConfiguration
  ) throws(RegistryServiceError) -> any EndpointObserver {
    do throws(AnchorsError) { return try TLSEndpointObserver(tls) } catch { throw .anchors(error) }
  }
}
