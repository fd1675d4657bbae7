#if os(Linux)
  import CSslPinningShims
  import Foundation
  import FoundationNetworking
  import SslPinningRules

  /// One pinned session's side of the hook: turns what libcurl asks into verdicts of the judge.
  ///
  /// - The host is the URL's, never the SNI's (empty for IP addresses).
  /// - A refusal that newer pins could turn, and a reused connection that no longer passes, are
  ///   parked, and replayed on another connection. Nothing of the request was sent.
  /// - A connection that no longer passes is left to what is under way on it: the host's next requests share a newer
  ///   one with the replays. A replay that meets such a connection again gets one of its own.
  /// - Nothing here waits: these calls stand on the queue that all sessions of the process share.
  final class SessionHook: Sendable {
    let transport: PinnedTransport
    /// Seconds. Foundation's timer counts whole ones.
    let requestTimeout: Double
    private let cookieStorage: HTTPCookieStorage?
    /// What transfers were refused for that have no other verdict yet.
    private let pending = Locked<[UInt64: PendingRefusal]>([:])

    /// How many refusals wait for another verdict: for tests of its book-keeping.
    var waitingCount: Int { pending.withLock(\.count) }

    init(
      transport: PinnedTransport, requestTimeout: Double, cookieStorage: HTTPCookieStorage? = nil
    ) {
      self.transport = transport
      self.cookieStorage = cookieStorage
      self.requestTimeout = requestTimeout.rounded(.down)
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
      let generation = transport.judge.currentGeneration()
      let verdict = transport.validator.chainVerdict(
        storeContext: storeContext, host: host, judge: transport.judge)
      let evaluation = verdict.evaluation
      let facts = ConnectionFacts(port: Int(transfer.port), verdict)
      if evaluation.decision == .accept {
        let proof = JudgedConnection(
          spelling: transfer.host, host: host, accepted: generation, by: (evaluation, facts))
        return (PP_ACCEPT, proof, "")
      }
      if !transfer.refreshed, transport.judge.requestRefresh(after: evaluation) {
        pending.withLock {
          $0[transfer.id] = PendingRefusal(evaluation: evaluation, host: host, connection: facts)
        }
        // The text is for the case that the transfer cannot be parked.
        return (PP_REFRESH, nil, transport.refusals.note(evaluation))
      }
      endWaiting(transfer.id, before: evaluation)
      let (decision, text) = refuse(evaluation, facts)
      return (decision, nil, text)
    }

    func confirm(
      _ transfer: pp_transfer, _ connection: JudgedConnection?
    ) -> (pp_decision, text: String) {
      guard let connection else {
        // libcurl gives out connections behind a proxy that are still being made.
        if !transfer.is_alone { return (PP_RETRY, "") }
        return refuse(
          host: String(cString: transfer.host),
          outcome: .unjudged("no verdict of this session stands on it"))
      }
      let verdict = connection.takeVerdict()
      let generation = transport.judge.currentGeneration()
      if connection.isAccepted(for: transfer.host, generation: generation) {
        endWaiting(transfer.id)
        if let (evaluation, facts) = verdict { transport.judge.record(evaluation, of: facts) }
        return (PP_ACCEPT, "")
      }
      let spelling = String(cString: transfer.host)
      guard let host = try? HostName(spelling), host == connection.host else {
        // Judged for another name: its verdict says nothing about this one.
        if !transfer.is_alone { return (PP_RETRY, "") }
        return refuse(host: spelling, outcome: .unjudged("the verdict is for another host"))
      }
      let again = transport.validator.chainVerdict(
        presented: connection.presented, host: host, judge: transport.judge)
      let evaluation = again.evaluation
      let facts = ConnectionFacts(port: Int(transfer.port), again)
      if evaluation.decision == .accept {
        endWaiting(transfer.id)
        connection.accept(under: generation, by: evaluation)
        transport.judge.record(evaluation, of: facts)
        return (PP_ACCEPT, "")
      }
      // The server may long have another key: another connection decides.
      if !transfer.is_alone { return (PP_RETRY, transport.refusals.note(evaluation)) }
      return refuse(evaluation, facts)
    }

    private static let timers = DispatchQueue(label: "ssl-pinning.session.timers")

    /// Resumes the parked transfer once newer pins are in force, at the latest after
    /// ``PinnedTransport/longestRefresh``, and before its time is over: the app would hear of that instead of the refusal.
    /// One that only leaves its connection goes on at once, also if it waited for pins before: they are fetched once.
    func parked(session: UInt64, _ transfer: pp_transfer) {
      let id = transfer.id
      guard transfer.awaits_pins, let refusal = pending.withLock({ $0[id]?.evaluation }) else {
        pp_session_resume(session, id, 0)
        return
      }
      let timeout = RequestTimer.seconds(of: transfer.owner) ?? requestTimeout
      @Sendable func resume() { pp_session_resume(session, id, timeout) }
      let left = timeout > 0 ? max(0.1, timeout * 0.8 - transfer.elapsed) : .infinity
      Self.timers.asyncAfter(
        deadline: .now() + min(transport.longestRefresh, left), execute: resume)
      let judge = transport.judge
      promptTask {
        await judge.refresh(after: refusal)
        resume()
      }
    }

    /// A transfer has failed, or is gone.
    ///
    /// - Returns: the text of the refusal that it had and that no other verdict followed, if that stands.
    func ended(transfer: UInt64) -> String? {
      endWaiting(transfer).map(transport.refusals.note)
    }

    @discardableResult
    private func endWaiting(
      _ transfer: UInt64, before later: PinEvaluation? = nil
    ) -> PinEvaluation? {
      pending.withLock { $0.removeValue(forKey: transfer) }?
        .end(by: transport.validator, judge: transport.judge, before: later)
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

    /// Whether the session's jar takes the cookies of a `Set-Cookie` field. Foundation sends those with a domain to all
    /// hosts below it, knows no public suffixes, and keeps one jar for pinned hosts and others:
    ///
    /// - Whom no pin vouches for, an unlisted host or one that report-only forgives, sets cookies for itself alone.
    /// - A pinned host sets them for its parents as well, but for a top-level domain.
    ///
    /// Read by Foundation's own parser, so that both find the same.
    func takesCookies(_ value: String, for url: String, _ connection: JudgedConnection?) -> Bool {
      guard let url = URL(string: url) else { return false }
      let value = value.trimmingCharacters(in: .whitespacesAndNewlines)
      let isPinned = connection?.isPinned ?? false
      return HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": value], for: url)
        .allSatisfy { cookie in
          // Without a dot in front it is the host's own.
          guard cookie.domain.hasPrefix(".") else { return true }
          let isTop = cookie.domain.split(separator: ".").count < 2
          return isPinned && (!isTop || cookie.domain.dropFirst() == url.host?.lowercased() ?? "")
        }
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

  /// The time that Foundation's own timer gives a request. Foundation does not tell libcurl, and `getAllTasks` is no way to
  /// learn it: Foundation reads its list of tasks on another thread than the one that changes it, which can end the process.
  ///
  /// So it is read from the object that hears libcurl, on the queue that this object belongs to. If a Foundation keeps the
  /// timer elsewhere, the session's time-out counts.
  enum RequestTimer {
    private static let ownerClass: AnyClass? = NSClassFromString("FoundationNetworking._EasyHandle")

    /// - Parameter owner: the object that Foundation gave libcurl to write to.
    /// - Returns: seconds, which Foundation counts whole.
    static func seconds(of owner: UnsafeRawPointer?) -> Double? {
      // An object begins with its class: nothing else is taken for one.
      guard let owner, let ownerClass,
        owner.load(as: UInt.self) == UInt(bitPattern: ObjectIdentifier(ownerClass))
      else { return nil }
      let object = Unmanaged<AnyObject>.fromOpaque(owner).takeUnretainedValue()
      let timer = Mirror(reflecting: object).descendant("timeoutTimer", "some", "milliseconds")
      return (timer as? Int).map { Double($0) / 1000 }
    }
  }

  /// The C side of ``SessionHook``: unwraps pointers, writes texts, and decides nothing.
  enum HookCallbacks {
    static func options(for hook: SessionHook, store: OpaquePointer, checkHost: Bool)
      -> pp_session_options
    {
      pp_session_options(
        context: Unmanaged.passRetained(hook).toOpaque(), release: releaseHook, admit: admit,
        judge: judge, release_proof: releaseProof, confirm: confirm, parked: parked, ended: ended,
        cookies: cookies, takes_cookies: takesCookies, store: store, timeout: hook.requestTimeout,
        check_host: checkHost)
    }

    private static let releaseHook: @convention(c) (UnsafeMutableRawPointer?) -> Void = {
      guard let context = $0 else { return }
      Unmanaged<SessionHook>.fromOpaque(context).release()
    }

    private static let releaseProof: @convention(c) (UnsafeMutableRawPointer?) -> Void = {
      guard let proof = $0 else { return }
      Unmanaged<JudgedConnection>.fromOpaque(proof).release()
    }

    private static let admit:
      @convention(c) (
        UnsafeMutableRawPointer?, UnsafePointer<pp_transfer>?, UnsafeMutablePointer<CChar>?
      ) -> pp_decision = { context, transfer, message in
        guard let context, let transfer else { return PP_REFUSE }
        let (decision, text) = hook(context).admit(
          scheme: String(cString: transfer.pointee.scheme),
          host: String(cString: transfer.pointee.host))
        write(text, to: message)
        return decision
      }

    private static let judge:
      @convention(c) (
        UnsafeMutableRawPointer?, UnsafePointer<pp_transfer>?, OpaquePointer?,
        UnsafeMutablePointer<UnsafeMutableRawPointer?>?, UnsafeMutablePointer<CChar>?
      ) -> pp_decision = { context, transfer, storeContext, proof, message in
        guard let context, let transfer, let storeContext, let proof else { return PP_REFUSE }
        let (decision, connection, text) = hook(context).judge(
          transfer.pointee, storeContext: storeContext)
        if let connection { proof.pointee = Unmanaged.passRetained(connection).toOpaque() }
        write(text, to: message)
        return decision
      }

    private static let confirm:
      @convention(c) (
        UnsafeMutableRawPointer?, UnsafePointer<pp_transfer>?, UnsafeMutableRawPointer?,
        UnsafeMutablePointer<CChar>?
      ) -> pp_decision = { context, transfer, proof, message in
        guard let context, let transfer else { return PP_REFUSE }
        let connection = proof.map {
          Unmanaged<JudgedConnection>.fromOpaque($0).takeUnretainedValue()
        }
        let (decision, text) = hook(context).confirm(transfer.pointee, connection)
        write(text, to: message)
        return decision
      }

    private static let parked:
      @convention(c) (UnsafeMutableRawPointer?, UInt64, UnsafePointer<pp_transfer>?) -> Void = {
        context, session, transfer in
        guard let context, let transfer else { return }
        hook(context).parked(session: session, transfer.pointee)
      }

    private static let ended:
      @convention(c) (UnsafeMutableRawPointer?, UInt64, UnsafeMutablePointer<CChar>?) -> Void = {
        context, transfer, message in
        guard let context, let text = hook(context).ended(transfer: transfer) else { return }
        write(text, to: message)
      }

    private static let cookies:
      @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?)
        -> UnsafeMutablePointer<CChar>? = { context, url in
          guard let context, let url,
            let value = hook(context).cookies(for: String(cString: url))
          else { return nil }
          return strdup(value)
        }

    private static let takesCookies:
      @convention(c) (
        UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafePointer<CChar>?,
        UnsafePointer<CChar>?, Int
      ) -> Bool = { context, proof, url, value, length in
        guard let context, let url, let value else { return false }
        let connection = proof.map {
          Unmanaged<JudgedConnection>.fromOpaque($0).takeUnretainedValue()
        }
        let bytes = UnsafeRawBufferPointer(start: value, count: length)
        return hook(context).takesCookies(
          String(decoding: bytes, as: UTF8.self), for: String(cString: url), connection)
      }

    private static func hook(_ context: UnsafeMutableRawPointer) -> SessionHook {
      Unmanaged<SessionHook>.fromOpaque(context).takeUnretainedValue()
    }

    private static func write(_ text: String, to message: UnsafeMutablePointer<CChar>?) {
      guard let message, !text.isEmpty else { return }
      // Cut between characters, not inside one.
      var end = text.endIndex
      while text.utf8.distance(from: text.startIndex, to: end) > Int(PP_MESSAGE_SIZE) - 1 {
        end = text.index(before: end)
      }
      let bytes = text[..<end].utf8.map { CChar(bitPattern: $0) } + [0]
      message.update(from: bytes, count: bytes.count)
    }
  }

  /// What a connection owns once it was accepted: for whom, on what certificates, under which
  /// generation of pins. Lives as ex_data of the connection's SSL.
  final class JudgedConnection: Sendable {
    /// The host as the URL spelled it, with its terminator: compared before every request.
    private let spelling: [CChar]
    let host: HostName
    /// What the server sent, in DER: after a change of pins the chain is judged again in full,
    /// because another of its paths may be the pinned one now.
    let presented: [[UInt8]]
    private let accepted: Locked<(generation: UInt64, isPinned: Bool)>
    private let verdict: Locked<Verdict?>

    typealias Verdict = (evaluation: PinEvaluation, facts: ConnectionFacts)

    init(
      spelling: UnsafePointer<CChar>, host: HostName, accepted: UInt64, by verdict: Verdict
    ) {
      self.spelling = Array(UnsafeBufferPointer(start: spelling, count: strlen(spelling) + 1))
      self.host = host
      presented = verdict.facts.certificates
      self.accepted = Locked(
        (generation: accepted, isPinned: verdict.evaluation.outcome == .matched))
      self.verdict = Locked(verdict)
    }

    /// The verdict that accepted it; `nil` from the second call on. It is told only after the handshake: until then anybody can
    /// send another server's certificates, and only the owner of the key can complete it (RFC 8446 section 4.4.3).
    func takeVerdict() -> Verdict? {
      verdict.withLock { verdict in
        defer { verdict = nil }
        return verdict
      }
    }

    /// Whether the connection was accepted for a host of this spelling, under this generation.
    func isAccepted(for other: UnsafePointer<CChar>, generation: UInt64) -> Bool {
      strcmp(spelling, other) == 0 && accepted.withLock { $0.generation == generation }
    }

    /// Whether pins vouch for the server: it is listed, and no missing pin was forgiven.
    var isPinned: Bool { accepted.withLock { $0.isPinned } }

    func accept(under generation: UInt64, by evaluation: PinEvaluation) {
      accepted.withLock { $0 = (generation, evaluation.outcome == .matched) }
    }
  }

  /// What tests see of `quiet_tls.h`: connections that a peer's leaving does not end the process by.
  package enum QuietTLS {
    /// Prepares an `SSL_CTX`.
    package static func prepare(_ context: OpaquePointer) -> Bool { pp_tls_quiet(context) }

    /// How many contexts were prepared in this process.
    package static var count: Int { Int(pp_tls_quiet_count()) }
  }
#endif
