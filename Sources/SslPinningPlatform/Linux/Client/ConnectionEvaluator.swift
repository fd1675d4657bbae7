#if os(Linux)
  import CSslPinningShims
  import Foundation
  import SslPinningRules

  /// Turns what libcurl and OpenSSL ask about a request's connection into verdicts of the judge: the
  /// same as ``SessionHook``, for transfers of our own.
  ///
  /// - The host is the URL's, never the SNI's (empty for IP addresses).
  /// - A refusal that newer pins could turn, and a kept connection that no longer passes, are noted
  ///   with the request, once each; the loop starts it again on a fresh connection. Nothing of it was
  ///   sent.
  /// - A connection without a verdict takes no request. That is no refusal: its server showed no key yet.
  final class ConnectionEvaluator: Sendable {
    private let judge: any PinEvaluating
    private let validator: ChainValidator

    init(judge: any PinEvaluating, validator: ChainValidator) {
      self.judge = judge
      self.validator = validator
    }

    func judge(_ request: ClientRequest, storeContext: OpaquePointer) -> JudgedConnection? {
      let target = request.target
      let generation = judge.currentGeneration()
      let verdict = validator.chainVerdict(
        storeContext: storeContext, host: target.host, judge: judge)
      let evaluation = verdict.evaluation
      let facts = ConnectionFacts(port: target.url.port ?? 443, verdict)
      if evaluation.decision == .accept {
        return JudgedConnection(
          spelling: target.spelling, host: target.host, accepted: generation,
          by: (evaluation, facts))
      }
      if !request.wasRefreshed, judge.requestRefresh(after: evaluation) {
        request.verdict = .refresh(evaluation)
        request.pending = PendingRefusal(
          evaluation: evaluation, host: target.host, connection: facts)
      } else {
        refuse(request, evaluation, facts)
      }
      return nil
    }

    func confirm(_ request: ClientRequest, _ connection: JudgedConnection?) -> Bool {
      let target = request.target
      guard let connection else {
        // libcurl gives out connections behind a proxy that are still being made: no key was shown there yet.
        request.verdict = .unmade
        return false
      }
      let verdict = connection.takeVerdict()
      let generation = judge.currentGeneration()
      if connection.isAccepted(for: target.spelling, generation: generation) {
        endWaiting(request)
        if let (evaluation, facts) = verdict { judge.record(evaluation, of: facts) }
        return true
      }
      guard target.host == connection.host else {
        // Judged for another name: its evidence says nothing about this one.
        if request.wasRetried {
          refuse(request, target, "the verdict is for another host")
        } else {
          request.verdict = .retry(nil)
        }
        return false
      }
      let again = validator.chainVerdict(
        presented: connection.presented, host: target.host, judge: judge)
      let evaluation = again.evaluation
      let facts = ConnectionFacts(port: target.url.port ?? 443, again)
      if evaluation.decision == .accept {
        endWaiting(request)
        connection.accept(under: generation, by: evaluation)
        judge.record(evaluation, of: facts)
        return true
      }
      // The server may long have another key: a fresh connection decides.
      if request.wasRetried {
        refuse(request, evaluation, facts)
      } else {
        request.verdict = .retry(evaluation)
      }
      return false
    }

    private func refuse(_ request: ClientRequest, _ target: RequestTarget, _ reason: String) {
      refuse(
        request,
        PinEvaluation(
          host: String(cString: target.spelling), outcome: .unjudged(reason), decision: .refuse),
        ConnectionFacts(port: target.url.port ?? 443))
    }

    private func refuse(
      _ request: ClientRequest, _ evaluation: PinEvaluation, _ facts: ConnectionFacts
    ) {
      endWaiting(request, before: evaluation)
      judge.record(evaluation, of: facts)
      request.verdict = .refused(evaluation)
    }

    private func endWaiting(_ request: ClientRequest, before later: PinEvaluation? = nil) {
      _ = request.pending?.end(by: validator, judge: judge, before: later)
      request.pending = nil
    }

    /// What a request ends with that fails with `error`: with the refusal that no other verdict followed, if that
    /// stands; not a cancelled one, nor one that may have arrived.
    func end(of request: ClientRequest, failing error: any Error) -> any Error {
      guard let refusal = request.pending?.end(by: validator, judge: judge) else { return error }
      request.pending = nil
      let isCancelled = (error as? URLError)?.code == .cancelled
      return isCancelled || !request.mayStartAnew ? error : refusal
    }

    // MARK: The C side: unwraps pointers and decides nothing.

    func options(
      store: OpaquePointer, checkHost: Bool, mostConnections: Int, mostKept: Int, features: UInt32
    ) -> pp_client_options {
      pp_client_options(
        context: Unmanaged.passUnretained(self).toOpaque(), judge: Self.judge,
        release_proof: Self.releaseProof, confirm: Self.confirm, feed: Self.feed, store: store,
        check_host: checkHost, most_connections: mostConnections, most_kept: mostKept,
        libcurl_features: features)
    }

    private static let judge:
      @convention(c) (
        UnsafeMutableRawPointer?, UnsafeMutablePointer<pp_exchange>?, OpaquePointer?,
        UnsafeMutablePointer<UnsafeMutableRawPointer?>?
      ) -> Bool = { context, exchange, storeContext, proof in
        guard let context, let request = request(of: exchange), let storeContext, let proof,
          let connection = verdicts(context).judge(request, storeContext: storeContext)
        else { return false }
        proof.pointee = Unmanaged.passRetained(connection).toOpaque()
        return true
      }

    private static let releaseProof: @convention(c) (UnsafeMutableRawPointer?) -> Void = {
      guard let proof = $0 else { return }
      Unmanaged<JudgedConnection>.fromOpaque(proof).release()
    }

    private static let confirm:
      @convention(c) (
        UnsafeMutableRawPointer?, UnsafeMutablePointer<pp_exchange>?, UnsafeMutableRawPointer?
      ) -> Bool = { context, exchange, proof in
        guard let context, let request = request(of: exchange) else { return false }
        let connection = proof.map {
          Unmanaged<JudgedConnection>.fromOpaque($0).takeUnretainedValue()
        }
        return verdicts(context).confirm(request, connection)
      }

    private static let feed:
      @convention(c) (
        UnsafeMutableRawPointer?, UnsafeMutablePointer<pp_exchange>?, UnsafeMutableRawPointer?, Int
      ) -> Int = { _, exchange, bytes, capacity in
        guard let bytes, case .feed(let feed)? = request(of: exchange)?.body else {
          return Int(PP_FEED_FAILED)
        }
        return feed.fill(bytes, capacity: capacity)
      }

    private static func verdicts(_ context: UnsafeMutableRawPointer) -> ConnectionEvaluator {
      Unmanaged<ConnectionEvaluator>.fromOpaque(context).takeUnretainedValue()
    }

    static func request(of exchange: UnsafeMutablePointer<pp_exchange>?) -> ClientRequest? {
      guard let owner = exchange?.pointee.owner else { return nil }
      return Unmanaged<ClientRequest>.fromOpaque(owner).takeUnretainedValue()
    }
  }
#endif
