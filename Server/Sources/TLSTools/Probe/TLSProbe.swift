import Foundation
import SslPinningPlatform
import SslPinningRules

/// Probes TLS servers: connects, makes the handshake, checks chain and name, and sends no data.
///
/// - One absolute deadline covers the queue, the lookup, every address and the handshake. A server that
///   is silent, drips bytes or drops packets costs that time and no more.
/// - A server with a bad certificate is a result, not an error (`ProbedServer`, `ProbeVerdict`).
/// - Probes and lookups run on their own threads, outside the cooperative pool (`ProbeLoop`,
///   `NameResolver`): any number may run at once, and none blocks a task's thread.
/// - Handshakes accept TLS 1.0 and weak keys, to see what is there; the chain is then validated as
///   strictly as pinned clients do it (`ChainValidator`).
public final class TLSProbe: Sendable {
  private let loops: [ProbeLoop]
  private let anchors: ChainValidator
  private let lastID = Locked<UInt64>(0)

  /// Starts the probe's thread, which ends with the last reference.
  ///
  /// - Parameters:
  ///   - anchors: validate chains unless a probe has its own; nil takes the system's trust store
  ///     as it is now.
  ///   - kind: the kind of key that servers must show; `nil` for whatever they choose. A server without such a key
  ///     ends the handshake.
  /// - Throws: `local`.
  public convenience init(
    anchors: ChainValidator? = nil, showing kind: CertificateKeyKind? = nil
  ) throws(ProbeError) {
    try self.init(anchors: anchors, resolver: NameResolver(), showing: kind)
  }

  /// As above, with another resolver and number of threads; tests pass resolvers that fail or hang.
  ///
  /// - Parameter identity: what is shown to servers that ask for a certificate.
  package init(
    anchors: ChainValidator?, resolver: NameResolver, threads: Int = 1,
    showing kind: CertificateKeyKind? = nil, as identity: ServerIdentity? = nil
  ) throws(ProbeError) {
    do throws(CertificateError) {
      self.anchors = if let anchors { anchors } else { try .system() }
    } catch { throw .local(reason: error.description) }
    var loops: [ProbeLoop] = []
    do throws(ProbeError) {
      let proxies = ProxyDirectory(resolver: resolver)
      for _ in 0..<max(1, threads) {
        loops.append(try Self.loop(resolver, proxies, kind, identity))
      }
    } catch {
      for loop in loops { loop.send(.stop) }
      throw error
    }
    self.loops = loops
  }

  deinit {
    for loop in loops { loop.send(.stop) }
  }

  /// How many threads are enough to keep this machine's processors busy.
  package static var usefulThreads: Int {
    min(max(1, ProcessInfo.processInfo.activeProcessorCount), 16)
  }

  /// Probes one server: its addresses in turn, until one answers.
  ///
  /// - Parameters:
  ///   - milliseconds: the time for the whole probe.
  ///   - anchors: validates the chain instead of the probe's own.
  ///   - time: checks validity at this Unix time instead of the machine's clock.
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

  /// Probes one server on several routes: each of its addresses directly, and once through each proxy.
  /// The failure of one does not affect the others.
  ///
  /// - Parameters:
  ///   - addresses: where to connect instead of looking the name up; a proxy is then asked for the first.
  ///   - there: addresses that a proxy is asked for, beside one that it takes itself, by its route.
  ///   - kinds: what each place that finished a handshake is asked for as well, unless it showed a key of that kind. Those
  ///     are findings of their own, which fail where the server has no such key.
  ///   - hurried: the routes that get less time, because they were silent a moment ago, and how many milliseconds.
  ///   - cache: the process's verdicts on chains; shared by all probes.
  ///   - times: a chain must be valid at one of these Unix times; empty means now, by the machine's clock.
  /// - Returns: the findings in the order of the routes and, on one route, of its addresses; then those of other kinds.
  package func survey(
    _ host: HostName, port: UInt16, addresses: [Endpoint] = [], from routes: [ProbeRoute],
    addressesThere there: [Int: [Endpoint]] = [:], asking kinds: [CertificateKeyKind] = [],
    hurried: [Int: Int64] = [:], limits: ProbeLimits,
    trusting anchors: ChainValidator,
    cache: VerdictCache, at times: [Int64] = []
  ) async -> [ProbeFinding] {
    let reader = ChainReader(host: host, validator: anchors, cache: cache, times: times)
    return await run(
      host: host.description, port: port, addresses: addresses, limits: limits, hurried: hurried,
      there: there, kinds: kinds
    ) { continuation in
      .survey(routes, reader) { continuation.resume(returning: $0) }
    }
  }

  private func run<Outcome: Sendable>(
    host: String, port: UInt16, addresses: [Endpoint], limits: ProbeLimits,
    hurried: [Int: Int64] = [:], there: [Int: [Endpoint]] = [:], kinds: [CertificateKeyKind] = [],
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
          purpose: purpose(continuation), hurried: hurried, addressesThere: there, kinds: kinds)
        loop.send(.begin(job))
        // The cancellation handler may have run before there was a job to cancel.
        if Task.isCancelled { loop.send(.cancel(id)) }
      }
    } onCancel: {
      loop.send(.cancel(id))
    }
  }

  private static func loop(
    _ resolver: NameResolver, _ proxies: ProxyDirectory, _ kind: CertificateKeyKind?,
    _ identity: ServerIdentity?
  ) throws(ProbeError) -> ProbeLoop {
    let client: ProbeClient
    do throws(CertificateError) { client = try ProbeClient(showing: kind, as: identity) } catch {
      throw .local(reason: error.description)
    }
    do throws(SocketError) {
      return try ProbeLoop(client: client, resolver: resolver, proxies: proxies)
    } catch { throw .local(reason: error.description) }
  }
}
