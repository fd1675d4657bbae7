import SslPinningRules

#if canImport(Security)
  import Foundation
  import SslPinningRules
  import Security

  /// The verdict on one server-trust challenge, its one refresh included.
  ///
  /// - The system evaluates on a queue of ours: it may take a round trip on the network, and neither
  ///   the app's delegate queue nor a thread of Swift's pool may wait for that.
  /// - A refusal that newer pins could turn awaits the judge's refresh once, at most
  ///   ``PinnedTransport/longestRefresh``; the second verdict is final. The handshake waits, so
  ///   nothing of the request was sent.
  /// - Pins that change while the system evaluates are asked again.
  struct TrustJudgement: Sendable {
    /// What a connection was accepted on.
    struct Proof: Sendable {
      let host: HostName
      let evidence: ChainEvidence
      /// The generation of pins that accepted it.
      let generation: UInt64
    }

    private static let queue = DispatchQueue(
      label: "ssl-pinning.trust", qos: .userInitiated, attributes: .concurrent)

    let transport: PinnedTransport
    /// Whether a policy's leave for unlisted hosts counts. Not on a pinned session: HTTP/2 would
    /// carry requests to listed hosts over the connection of an unlisted one, unasked.
    let acceptsUnlisted: Bool

    /// Judges, records, and returns a proof where the connection is accepted.
    func verdict(
      on trust: HandedOver<SecTrust>, host spelling: String, port: Int
    ) async -> (evaluation: PinEvaluation, proof: Proof?) {
      let host: HostName
      do throws(HostNameError) { host = try HostName(spelling) } catch {
        let refusal = PinEvaluation(
          host: spelling, outcome: .unreadableHost(error), decision: .refuse)
        transport.judge.record(refusal)
        return (refusal, nil)
      }
      let moments = transport.judge.time?.dates ?? []
      let (evidence, certificates) = await withCheckedContinuation { continuation in
        Self.queue.async {
          let evidence = transport.validator.store.evidence(
            handshake: trust.value, host: host, at: moments)
          continuation.resume(
            returning: (evidence, PlatformTrustStore.certificates(of: trust.value)))
        }
      }
      var (evaluation, generation) = judged(evidence, host: host)
      if evaluation.decision == .refuse, transport.judge.wantsRefresh(after: evaluation) {
        await refresh(after: evaluation)
        (evaluation, generation) = judged(evidence, host: host)
      }
      transport.judge.record(
        evaluation, of: ConnectionFacts(port: port, certificates: certificates))
      transport.platform.sessions.follow(transport.judge.generation)
      guard evaluation.decision == .accept else {
        transport.platform.recent.note(evaluation, failing: host, at: PlatformSession.uptime)
        return (evaluation, nil)
      }
      transport.platform.recent.forget(host)
      return (evaluation, Proof(host: host, evidence: evidence, generation: generation))
    }

    /// The verdict of now, and the generation of pins that gave it.
    func judged(_ evidence: ChainEvidence, host: HostName) -> (PinEvaluation, UInt64) {
      var generation = transport.judge.generation
      var evaluation = transport.judge.evaluate(evidence, host: host)
      // A change meanwhile has flushed the connections that stood then; this one was not among them.
      for _ in 0..<3 where transport.judge.generation != generation {
        generation = transport.judge.generation
        evaluation = transport.judge.evaluate(evidence, host: host)
      }
      guard !acceptsUnlisted, evaluation.outcome == .unlisted, evaluation.decision == .accept
      else { return (evaluation, generation) }
      let refusal = PinEvaluation(
        host: evaluation.host, outcome: .unlisted, decision: .refuse,
        presented: evaluation.presented, registry: evaluation.registry)
      return (refusal, generation)
    }

    private func refresh(after refusal: PinEvaluation) async {
      let judge = transport.judge
      // The system's own clock: a handshake waits for real.
      let nanoseconds = UInt64(max(0, min(transport.longestRefresh, 86400)) * 1_000_000_000)
      await firstOf(
        { await judge.refresh(after: refusal) },
        { try? await Task.sleep(nanoseconds: nanoseconds) })
    }
  }
#endif
