import PinningPlatform

/// Looks at TLS servers: dials, shakes hands, judges the chain and the name, sends nothing.
///
/// - One absolute deadline covers everything: the queue, the lookup, every address, the handshake.
///   A server that is silent, drips bytes or never answers a packet costs that time and no more.
/// - A server with a bad certificate is a result, not an error (`ProbeResult`).
/// - Probes run on one thread of their own, off the cooperative pool, with lookups on a few more
///   (`ProbeLoop`, `NameResolver`): any number may run at once, none blocks a task's thread.
/// - A handshake is offered down to TLS 1.0 and without demands on key strength, to see what is
///   there; the chain is then judged as strictly as pinned clients judge it (`ChainJudge`).
public final class TLSProbe: Sendable {
  private let loop: ProbeLoop
  private let anchors: TrustAnchors
  private let lastID = Locked<UInt64>(0)

  /// Starts the probe's thread; it ends with the last reference.
  ///
  /// - Parameter anchors: what chains are judged by unless a probe says otherwise; nil takes the
  ///   system's trust store as it is now.
  /// - Throws: `local`.
  public convenience init(anchors: TrustAnchors? = nil) throws(ProbeError) {
    try self.init(anchors: anchors, resolver: NameResolver())
  }

  /// As above, with a resolver that fails or hangs on demand.
  package init(anchors: TrustAnchors?, resolver: NameResolver) throws(ProbeError) {
    let client: ProbeClient
    do throws(CertificateError) {
      client = try ProbeClient()
      self.anchors = if let anchors { anchors } else { try .system() }
    } catch { throw .local(reason: error.description) }
    do throws(SocketError) {
      loop = try ProbeLoop(client: client, resolver: resolver)
    } catch { throw .local(reason: error.description) }
  }

  deinit { loop.stop() }

  /// Looks at one server.
  ///
  /// - Parameters:
  ///   - milliseconds: the time for everything.
  ///   - anchors: judges this chain by other anchors.
  ///   - time: judges validity at this Unix time instead of the machine's clock.
  public func probe(
    _ target: ProbeTarget, milliseconds: Int64 = 10_000, trusting anchors: TrustAnchors? = nil,
    at time: Int64? = nil
  ) async throws(ProbeError) -> ProbeResult {
    let deadline = Deadline.after(milliseconds: milliseconds)
    let id = lastID.withLock { last in
      last += 1
      return last
    }
    let isCancelled = Locked(false)
    let judge = ChainJudge(anchors: anchors ?? self.anchors, time: time)
    let outcome: Result<ProbeResult, ProbeError> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        loop.begin(
          ProbeJob(
            id: id, target: target, deadline: deadline, judge: judge, isCancelled: isCancelled,
            complete: { continuation.resume(returning: $0) }))
      }
    } onCancel: { [loop] in
      isCancelled.withLock { $0 = true }
      loop.wake()
    }
    return try outcome.get()
  }
}
