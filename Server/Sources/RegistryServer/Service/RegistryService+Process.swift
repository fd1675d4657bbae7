import Foundation
import HTTPServing
import RegistryCore
import SslPinningPlatform
import TLSTools

/// The service as all that a process does: signals, and who started it.
extension RegistryService {
  /// Starts, runs until SIGTERM or SIGINT, and stops cleanly. A second signal ends the process at
  /// once. A signal that comes while it starts counts too. SIGHUP reads the configuration again, also if it came before
  /// this was called.
  ///
  /// - Parameters:
  ///   - read: reads the configuration again; where it throws, everything stays as it was.
  ///   - manager: is told when it has started, reads its configuration again, and stops, and that it watches.
  ///   - whenListening: is called once with the address, port included.
  /// - Throws: what ``start()`` throws, also of a store that did not answer then, and refuses now.
  public func run(
    reading read: (@Sendable () throws(ConfigurationError) -> ServerConfiguration)? = nil,
    manager: ServiceManager? = nil,
    whenListening: (ListenAddress) -> Void = { _ in }
  ) async throws(RegistryServiceError) {
    let signal = await listenForSignals(read, manager)
    // What the configuration was made of.
    ProcessMemory.giveBack()
    let listening: @Sendable () -> String = { [self] in
      address.map { "listening on \($0)" } ?? "not listening"
    }
    waiting.withLock {
      $0.whenOver = { refusal in
        if refusal == nil {
          manager?.notify(.ready, status: listening())
        } else {
          signal.end("store_refused")
        }
      }
    }
    // It holds this service, which holds it.
    defer { waiting.withLock { $0.whenOver = nil } }
    try await start()
    signal.catchUp()
    if let address {
      whenListening(address)
      // Ready also while the store is away: documents are served, and a start that lasts would be ended and begun anew
      // by the service manager. It gets its signs of life meanwhile: what is not begun is not stuck.
      let wait = health.awaitedStore.map { ", waiting for the store: \($0.reason)" } ?? ""
      manager?.notify(.ready, status: listening() + wait)
    }
    let supervising = Task { [self] in
      var supervision = Supervision(
        manager, clock: clock, log: log, metrics: metrics, fault: { self.fault(at: $0) },
        giveBack: duty.giveBack)
      await supervision.run()
    }
    let name = await signal.wait()
    let refusal = waiting.withLock { $0.refusal }
    if refusal == nil { log.event(.info, "signal", ["signal": name]) }
    manager?.notify(.stopping)
    await stop()
    supervising.cancel()
    await supervising.value
    if let refusal { throw .store(refusal) }
  }

  /// What the watching is stuck in.
  private func fault(at now: Int64) -> MonitorProgress.Fault? {
    let patience = MonitorProgress.patience(timeout: inForce.withLock(\.tls.timeout))
    return duty.progress?.fault(at: now, patience: patience)
  }

  private func listenForSignals(
    _ read: (@Sendable () throws(ConfigurationError) -> ServerConfiguration)?,
    _ manager: ServiceManager?
  ) async -> TerminationSignal {
    await TerminationSignal { [self] in
      // One after another, in the order of the signals.
      reloading.withLock { last in
        last = Task { [last] in
          await readAgain(read) {
            await last?.value
            manager?.notify(.reloading)
          }
          manager?.notify(.ready)
        }
      }
    }
  }

  /// Reads the configuration again in its turn: tokens end at once, the edit before may take its time. Also if it cannot be read
  /// any more by then.
  func readAgain(
    _ read: (@Sendable () throws(ConfigurationError) -> ServerConfiguration)?,
    inTurn wait: () async -> Void
  ) async {
    let edit = read.flatMap { try? $0() }
    let ended = edit.map(endTokens(ahead:))
    await wait()
    if let edit { endTokens(edit) }
    await readAgain(read)
    if let ended { endedAhead.withLock { $0[ended] = nil } }
  }

  /// Reads the configuration again, as SIGHUP has it.
  package func readAgain(
    _ read: (@Sendable () throws(ConfigurationError) -> ServerConfiguration)?
  ) async {
    guard let read else {
      log.event(
        .warn, "signal_ignored",
        ["signal": "SIGHUP", "message": "there is no configuration to read again"])
      return
    }
    let configuration: ServerConfiguration
    do throws(ConfigurationError) { configuration = try read() } catch {
      refuse("\(error)", isRead: false)
      return
    }
    endTokens(configuration)
    // What it was made of, and in the end what was in force before.
    ProcessMemory.giveBack()
    defer { ProcessMemory.giveBack() }
    do throws(RegistryServiceError) {
      let moved = try await checkTerms(configuration)
      try await reload(configuration, judged: true)
      tellMoved(moved)
    } catch {
      refuse("\(error)", isRead: true)
      return
    }
    health.configuration(refused: nil)
    var isSigned = true
    for coordinator in duty.coordinators where await coordinator.cannotSign { isSigned = false }
    metrics.reloaded(isInForce: true, isSigned: isSigned, at: clock.now())
    log.event(.info, "configuration_read_again")
  }

  /// Whatever becomes of the rest of an edit: what a token has asked for must neither put its end off nor have it refused.
  private func endTokens(_ configuration: ServerConfiguration) {
    inForce.withLock { known in
      let ended = Set(known.administration.revokedTokens)
      known.administration.revokedTokens += configuration.administration.revokedTokens
        .filter { !ended.contains($0) }
    }
  }

  /// The same of an edit that waits for its turn.
  ///
  /// - Returns: what they are known by in ``endedAhead`` until then.
  func endTokens(ahead configuration: ServerConfiguration) -> UUID {
    let id = UUID()
    endedAhead.withLock { $0[id] = Set(configuration.administration.revokedTokens) }
    return id
  }

  /// Has metrics, probes, notifications and the log tell when the certificate ends that the listener shows from now on.
  func tellEnd(of identity: ListenerIdentity?) {
    metrics.service.listener(endsAt: identity?.ends)
    health.listener(endsAt: identity?.ends) { [clock] in clock.now() }
    if let end = health.listenerEnd {
      log.event(.warn, "listener_certificate_ends", ["message": end.message])
    }
  }

  /// A configuration that was to be read again is no good.
  ///
  /// - Parameter isRead: whether it could be read, so that it ended tokens.
  private func refuse(_ reason: String, isRead: Bool) {
    health.configuration(refused: reason)
    metrics.reloaded(isInForce: false, at: clock.now())
    let tokens = isRead ? ", but tokens in its ui.revoked_tokens are none any more" : ""
    log.event(
      .error, "configuration_refused",
      ["reason": reason, "message": "everything stays as it was\(tokens)"])
  }
}
