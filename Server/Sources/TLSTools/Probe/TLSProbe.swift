import Foundation
import SslPinningPlatform
import SslPinningRules

/// Looks at TLS servers: dials, shakes hands, judges the chain and the name, sends nothing.
///
/// - One absolute deadline covers everything: the queue, the lookup, every address, the handshake.
///   A server that is silent, drips bytes or never answers a packet costs that time and no more.
/// - A server with a bad certificate is a result, not an error (`ProbedServer`, `ProbeVerdict`).
/// - Probes run on threads of their own, off the cooperative pool, with lookups on a few more
///   (`ProbeLoop`, `NameResolver`): any number may run at once, none blocks a task's thread.
/// - A handshake is offered down to TLS 1.0 and without demands on key strength, to see what is
///   there; the chain is then judged as strictly as pinned clients judge it (`ChainValidator`).
public final class TLSProbe: Sendable {
  private let loops: [ProbeLoop]
  private let anchors: ChainValidator
  private let lastID = Locked<UInt64>(0)

  /// Starts the probe's thread; it ends with the last reference.
  ///
  /// - Parameter anchors: what chains are judged by unless a probe says otherwise; nil takes the
  ///   system's trust store as it is now.
  /// - Throws: `local`.
  public convenience init(anchors: ChainValidator? = nil) throws(ProbeError) {
    try self.init(anchors: anchors, resolver: NameResolver())
  }

  /// As above, with a resolver that fails or hangs on demand, and for as many threads.
  package init(
    anchors: ChainValidator?, resolver: NameResolver, threads: Int = 1
  ) throws(ProbeError) {
    do throws(CertificateError) {
      self.anchors = if let anchors { anchors } else { try .system() }
    } catch { throw .local(reason: error.description) }
    var loops: [ProbeLoop] = []
    do throws(ProbeError) {
      let proxies = ProxyDirectory(resolver: resolver)
      for _ in 0..<max(1, threads) { loops.append(try Self.loop(resolver, proxies)) }
    } catch {
      for loop in loops { loop.send(.stop) }
      throw error
    }
    self.loops = loops
  }

  deinit {
    for loop in loops { loop.send(.stop) }
  }

  /// How many threads keep this machine's processors busy.
  package static var usefulThreads: Int {
    min(max(1, ProcessInfo.processInfo.activeProcessorCount), 16)
  }

  /// Looks at one server: its addresses in turn, until one answers.
  ///
  /// - Parameters:
  ///   - milliseconds: the time for everything.
  ///   - anchors: judges this chain by other anchors.
  ///   - time: judges validity at this Unix time instead of the machine's clock.
  public func probe(
    _ target: ProbeTarget, milliseconds: Int64 = 10_000, trusting anchors: ChainValidator? = nil,
    at time: Int64? = nil
  ) async throws(ProbeError) -> ProbedServer {
    let validator = anchors ?? self.anchors
    let outcome = await run(
      host: target.host, port: target.port, addresses: target.connectTo,
      limits: .only(total: milliseconds)
    ) { continuation in
      .one(target, validator, time: time) { continuation.resume(returning: $0) }
    }
    return try outcome.get()
  }

  /// Looks at one server from several places: at each of its addresses from here, and once through
  /// each proxy. One that fails hides nothing of the others.
  ///
  /// - Parameters:
  ///   - addresses: where to dial instead of looking the name up; a proxy is then asked for the
  ///     first of them.
  ///   - hurried: the routes that are given a second at most.
  ///   - cache: what the process knows of chains already; shared by all that look.
  ///   - times: a chain counts that is valid at one of these Unix times; none: by the machine's clock.
  /// - Returns: the findings in the order of the routes, and of the addresses as they were found.
  package func survey(
    _ host: HostName, port: UInt16, addresses: [Endpoint] = [], from routes: [ProbeRoute],
    hurried: Set<Int> = [], limits: ProbeLimits, trusting anchors: ChainValidator,
    cache: VerdictCache, at times: [Int64] = []
  ) async -> [ProbeFinding] {
    let reader = ChainReader(host: host, validator: anchors, cache: cache, times: times)
    return await run(
      host: host.description, port: port, addresses: addresses, limits: limits, hurried: hurried
    ) { continuation in
      .survey(routes, reader) { continuation.resume(returning: $0) }
    }
  }

  private func run<Outcome: Sendable>(
    host: String, port: UInt16, addresses: [Endpoint], limits: ProbeLimits,
    hurried: Set<Int> = [],
    _ purpose: @Sendable (CheckedContinuation<Outcome, Never>) -> ProbeRequest.Purpose
  ) async -> Outcome {
    let deadline = Deadline.after(milliseconds: limits.total)
    let id = lastID.withLock { last in
      last += 1
      return last
    }
    let loop = loops[Int(id % UInt64(loops.count))]
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let job = ProbeRequest(
          id: id, host: host, port: port, addresses: addresses, limits: limits, deadline: deadline,
          purpose: purpose(continuation), hurried: hurried)
        loop.send(.begin(job))
        // The handler may have run before there was a job to cancel.
        if Task.isCancelled { loop.send(.cancel(id)) }
      }
    } onCancel: {
      loop.send(.cancel(id))
    }
  }

  private static func loop(
    _ resolver: NameResolver, _ proxies: ProxyDirectory
  ) throws(ProbeError) -> ProbeLoop {
    let client: ProbeClient
    do throws(CertificateError) { client = try ProbeClient() } catch {
      throw .local(reason: error.description)
    }
    do throws(SocketError) {
      return try ProbeLoop(client: client, resolver: resolver, proxies: proxies)
    } catch { throw .local(reason: error.description) }
  }
}
