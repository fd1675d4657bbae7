#if os(Linux)
  import CSslPinningShims
  import Foundation
  import FoundationNetworking
  import SslPinningRules

  /// One pinned session's side of the hook: turns what libcurl asks into verdicts of the judge.
  ///
  /// - The host is the URL's, never the SNI's (empty for IP addresses).
  /// - A refusal that newer pins could turn, and a reused connection that no longer passes, are
  ///   parked, once each, and replayed on a fresh connection. Nothing of the request was sent.
  /// - Nothing here waits: these calls stand on the queue that all sessions of the process share.
  final class SessionHook: Sendable {
    let transport: PinnedTransport
    private let longestWait: Double
    private let cookieStorage: HTTPCookieStorage?
    /// What transfers that are about to be parked were refused for.
    private let parkedFor = Locked<[UInt64: PinEvaluation]>([:])

    /// How many verdicts wait for their transfer to be parked: for tests of its book-keeping.
    var waitingCount: Int { parkedFor.withLock(\.count) }

    init(
      transport: PinnedTransport, requestTimeout: Double, cookieStorage: HTTPCookieStorage? = nil
    ) {
      self.transport = transport
      self.cookieStorage = cookieStorage
      // Before the configuration's time-out, or the app hears of that instead of the refusal. A
      // shorter one that stands on a request alone is not known here.
      longestWait = min(transport.longestRefresh, max(0.1, requestTimeout * 0.8))
    }

    func admit(scheme: String, host: String) -> (pp_decision, text: String) {
      guard scheme == "https" else {
        return refuse(host: host, outcome: .clearText(scheme: scheme))
      }
      do throws(HostNameError) {
        _ = try HostName(host)
        return (PP_ACCEPT, "")
      } catch {
        return refuse(host: host, outcome: .unreadableHost(error))
      }
    }

    func judge(
      _ transfer: pp_transfer, storeContext: OpaquePointer
    ) -> (pp_decision, JudgedConnection?, text: String) {
      let spelling = String(cString: transfer.host)
      let host: HostName
      do throws(HostNameError) { host = try HostName(spelling) } catch {
        let (decision, text) = refuse(host: spelling, outcome: .unreadableHost(error))
        return (decision, nil, text)
      }
      let generation = transport.judge.generation
      let verdict = transport.validator.verdict(
        storeContext: storeContext, host: host, judge: transport.judge)
      let evaluation = verdict.evaluation
      let facts = ConnectionFacts(port: Int(transfer.port), certificates: verdict.presented)
      if evaluation.decision == .accept {
        transport.judge.record(evaluation, of: facts)
        let proof = JudgedConnection(
          spelling: transfer.host, host: host, presented: verdict.presented, accepted: generation)
        return (PP_ACCEPT, proof, "")
      }
      if !transfer.refreshed, transport.judge.wantsRefresh(after: evaluation) {
        parkedFor.withLock { $0[transfer.id] = evaluation }
        // The text is for the case that the transfer cannot be parked.
        return (PP_REFRESH, nil, transport.refusals.note(evaluation))
      }
      let (decision, text) = refuse(evaluation, facts)
      return (decision, nil, text)
    }

    func confirm(
      _ transfer: pp_transfer, _ connection: JudgedConnection?
    ) -> (pp_decision, text: String) {
      guard let connection else {
        return refuse(
          host: String(cString: transfer.host),
          outcome: .unjudged("no verdict of this session stands on it"))
      }
      let generation = transport.judge.generation
      if connection.isAccepted(for: transfer.host, generation: generation) {
        return (PP_ACCEPT, "")
      }
      let spelling = String(cString: transfer.host)
      guard let host = try? HostName(spelling), host == connection.host else {
        // Judged for another name: its verdict says nothing about this one.
        if transfer.attempt == 0 { return (PP_RETRY, "") }
        return refuse(host: spelling, outcome: .unjudged("the verdict is for another host"))
      }
      let evaluation = transport.validator.verdict(
        presented: connection.presented, host: host, judge: transport.judge
      ).evaluation
      let facts = ConnectionFacts(port: Int(transfer.port), certificates: connection.presented)
      if evaluation.decision == .accept {
        connection.accept(under: generation)
        transport.judge.record(evaluation, of: facts)
        return (PP_ACCEPT, "")
      }
      // The server may long have another key: a fresh connection decides.
      if transfer.attempt == 0 { return (PP_RETRY, transport.refusals.note(evaluation)) }
      return refuse(evaluation, facts)
    }

    /// Resumes the parked transfer once newer pins are in force, at the latest after
    /// ``PinnedTransport/longestRefresh``.
    func parked(session: UInt64, transfer: UInt64) {
      guard let refusal = parkedFor.withLock({ $0.removeValue(forKey: transfer) }) else {
        pp_session_resume(session, transfer)
        return
      }
      let judge = transport.judge
      Task {
        await judge.refresh(after: refusal)
        pp_session_resume(session, transfer)
      }
      DispatchQueue.global().asyncAfter(deadline: .now() + longestWait) {
        pp_session_resume(session, transfer)
      }
    }

    /// A transfer that was to be parked is gone, and what it was refused for with it.
    func ended(transfer: UInt64) {
      parkedFor.withLock { _ = $0.removeValue(forKey: transfer) }
    }

    /// The cookies that the session's storage has for a URL, as a field's value: a redirected request
    /// takes none along to another origin, but that one's own it has.
    func cookies(for url: String) -> String? {
      guard let url = URL(string: url), let found = cookieStorage?.cookies(for: url) else {
        return nil
      }
      let value = HTTPCookie.requestHeaderFields(with: found)["Cookie"] ?? ""
      return value.isEmpty ? nil : value
    }

    private func refuse(
      host: String, outcome: PinEvaluation.Outcome
    ) -> (pp_decision, text: String) {
      refuse(PinEvaluation(host: host, outcome: outcome, decision: .refuse), ConnectionFacts())
    }

    private func refuse(
      _ evaluation: PinEvaluation, _ facts: ConnectionFacts
    ) -> (pp_decision, text: String) {
      transport.judge.record(evaluation, of: facts)
      return (PP_REFUSE, transport.refusals.note(evaluation))
    }
  }
#endif
