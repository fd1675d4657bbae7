import HTTPServing
import RegistryCore
import SslPinningPlatform
import TLSTools

/// The service as all that a process does: signals, and who started it.
extension RegistryService {
  /// Starts, runs until SIGTERM or SIGINT, and stops cleanly. A second signal ends the process at
  /// once. A signal that comes while it starts counts too. SIGHUP reads the configuration again.
  ///
  /// - Parameters:
  ///   - read: reads the configuration again; where it throws, everything stays as it was.
  ///   - manager: is told when it has started, reads its configuration again, and stops, and that it watches.
  ///   - whenListening: is called once with the address, port included.
  /// - Throws: what ``start()`` throws.
  public func run(
    reading read: (@Sendable () throws(ConfigurationError) -> ServerConfiguration)? = nil,
    manager: ServiceManager? = nil,
    whenListening: (ListenAddress) -> Void = { _ in }
  ) async throws(RegistryServiceError) {
    DescriptorLimit.raise()
    let signal = await listenForSignals(read, manager)
    // What the configuration was made of.
    ProcessMemory.giveBack()
    try await start()
    if let address {
      whenListening(address)
      manager?.notify(.ready, status: "listening on \(address)")
    }
    let beats = Task { [self] in
      guard let manager else { return }
      await manager.keepAlive(clock: clock, log: log) { fault(at: $0) }
    }
    let name = await signal.wait()
    log.event(.info, "signal", ["signal": name])
    manager?.notify(.stopping)
    await stop()
    beats.cancel()
    await beats.value
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
          await last?.value
          manager?.notify(.reloading)
          await readAgain(read)
          manager?.notify(.ready)
        }
      }
    }
  }
}
