import CanonicalJSON
import Foundation
import RegistryServer
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Carries an announcement out: does what ``AnnouncementProgress`` asks for.
struct AnnouncementRun {
  private var job: AnnouncementJob
  private let invocation: Invocation
  private let call: AdminCall
  private let path: [String]
  private let hosts: [HostName]
  private let lists: [(place: String, shipped: RegistryTrustArguments)]
  private let trust: TrustMode
  private var key: PEMKey
  private var progress: AnnouncementProgress
  /// Who is not waited for again.
  var silent = SilentPlaces(remembers: false)
  /// What need not be fetched again; `nil` if everything is.
  var recent: Lists?
  typealias Lists = RecentLists<ListKey, Served>
  /// A list as it is fetched and believed.
  struct ListKey: Hashable {
    let place: String
    let shipped: RegistryTrustArguments
    let trust: TrustMode
  }
  /// What it served, what is wrong with its statement, and for how many seconds caches may keep it.
  struct Served {
    let trusted: TrustedRegistry
    let problem: String?
    let kept: Int64
  }
  /// How often a key may be followed by the next one in one call.
  private static let mostRenewals = 5

  /// - Throws: if what was called can never go on.
  init(_ job: AnnouncementJob, _ invocation: Invocation) throws(CommandFailure) {
    (self.job, self.invocation) = (job, invocation)
    key = try Self.key(in: job.key)
    let places = invocation[AnnounceCommand.lists] ?? []
    guard !places.isEmpty else {
      throw .usage("missing --list URL; hint: the URL that apps have, once for each")
    }
    let trust = try TrustArguments.read(invocation)
    lists = try places.map { (place) throws(CommandFailure) in
      _ = try ServedRegistry(place, trust: trust, timeout: SilentPlaces.usual)
      return (place, try RegistryTrustArguments(invocation, place: place))
    }
    self.trust = trust
    var id = try invocation.require(AnnounceCommand.endpoint)
    // An IPv6 address stands in brackets, and has colons.
    let name = id.hasPrefix("[") ? id.prefix { $0 != "]" } + "]" : id.prefix { $0 != ":" }
    hosts = try (invocation[AnnounceCommand.hosts] ?? [String(name)]).map {
      (host) throws(CommandFailure) in
      do throws(HostNameError) { return try HostName(host) } catch { throw .usage("\(error)") }
    }
    if id.hasSuffix("]") || !id.contains(":") { id += ":443" }
    path = ["documents", try invocation.require(AnnounceCommand.file), "endpoints", id, "stage"]
    call = try AdminCall(invocation)
    progress = Self.progress(of: key, job, invocation)
  }

  /// Goes on until it is over, or the next step lies behind the end of the patience.
  ///
  /// - Parameters:
  ///   - patience: in seconds; `nil` waits for nothing.
  ///   - withCommand: whether the command is run.
  /// - Returns: `nil` if the command is next, and is not to be run.
  mutating func run(
    patience: Double?, withCommand: Bool = true
  ) async throws(CommandFailure) -> ExitStatus? {
    let deadline = ContinuousClock.now + .seconds(patience ?? 0)
    var told = ""
    var renewals = 0
    while true {
      let finding: AnnouncementProgress.Finding
      switch progress.next {
      // Whoever took its place finds it locked meanwhile.
      case .look where !job.isCurrent, .stage where !job.isCurrent: finding = .superseded
      case .look:
        finding = await lookAtAll()
      case .stage:
        finding = await stage()
        // What was served before lacks it.
        if case .staged = finding { recent = nil }
      case .run where !withCommand: return nil
      case .run:
        guard job.isCurrent else {
          finding = .superseded
          break
        }
        // Whoever renews writes over the file, and what is used must be what the lists have.
        let current = try Self.key(in: job.key)
        guard current.pin == key.pin else {
          (key, progress) = (current, Self.progress(of: current, job, invocation))
          continue
        }
        guard !job.isAheadOfLeader(key.pin) else {
          throw .couldNotFindOut(
            "\(job.key) has another key by now; hint: what began this one goes on, after its own lists"
          )
        }
        let (start, now) = (ContinuousClock.now, Int64(Date().timeIntervalSince1970))
        // Before: whoever ends this program meanwhile would find it first again in each call.
        try? job.note(failed: (now, isSlow: true))
        finding = await execute(invocation[AnnounceCommand.then])
        guard case .failed = finding else {
          // It is not run again because that cannot be written.
          try? job.note(failed: nil)
          break
        }
        let took = (ContinuousClock.now - start) / .seconds(1)
        try job.note(
          failed: (now + Int64(took), isSlow: took >= AnnouncementOrder.longest))
      case .pause(let seconds):
        guard ContinuousClock.now + .seconds(seconds) < deadline else {
          throw .couldNotFindOut("\(progress.trouble); hint: \(job.resumption) goes on")
        }
        if told != progress.trouble { Terminal.say("\(progress.trouble); it is tried again") }
        told = progress.trouble
        try? await Task.sleep(for: .seconds(seconds))
        finding = .paused
      case .end(.done):
        // Whoever renewed while the command ran may have had the new key put in use by it. One that moved the file away
        // is done with it.
        guard let current = try? Self.key(in: job.key), current.pin != key.pin else {
          return try finish(.done)
        }
        renewals += 1
        guard renewals < Self.mostRenewals else {
          throw .couldNotFindOut(
            "\(job.key) had another key each time that the command had run; hint: it must not renew"
          )
        }
        (key, progress) = (current, Self.progress(of: current, job, invocation))
        continue
      case .end(let end): return try finish(end)
      }
      progress.enter(finding, at: Int64(Date().timeIntervalSince1970))
      try job.note(key.pin, progress.listing)
    }
  }

  /// Notes whether a key that all lists had is still there, and does nothing else.
  mutating func lookAgain() async {
    guard progress.listing != nil else { return }
    progress.enter(await lookAtAll(), at: Int64(Date().timeIntervalSince1970))
    // What could not be written counts as not looked at.
    try? job.note(key.pin, progress.listing)
  }

  private func finish(_ end: AnnouncementProgress.End) throws(CommandFailure) -> ExitStatus {
    switch end {
    case .done:
      try job.end()
      try call.say("\(key.pin.base64) is on \(lists.count == 1 ? "the list" : "all lists")")
      return .yes
    case .refused(let reason, let isForGood):
      // A token can be replaced, and keys revoked: until then --resume says so again.
      if isForGood { try job.giveUp() }
      let hint =
        "its command ran, and did not end with 0: look at what it left, and put that back"
      throw .no(job.failed == nil ? reason : reason.addingHint(hint))
    case .superseded:
      throw .couldNotFindOut(
        "it was announced anew meanwhile, or given up; hint: announce --resume goes on with what is there"
      )
    }
  }

  private static func progress(
    of key: PEMKey, _ job: AnnouncementJob, _ invocation: Invocation
  ) -> AnnouncementProgress {
    AnnouncementProgress(
      settle: Int64((invocation[AnnounceCommand.settle] ?? 0).rounded(.up)),
      listing: job.listing(of: key.pin),
      isProposed: job.isProposed(key.pin, at: Int64(Date().timeIntervalSince1970)))
  }

  /// The key in a file; of a private one, a request that it signs.
  private static func key(in path: String) throws(CommandFailure) -> PEMKey {
    let bytes = try InputFile.read(path, limit: 1 << 20)
    do {
      let pem = String(decoding: bytes, as: UTF8.self)
      let isPrivate = pem.contains("PRIVATE KEY-----")
      let text =
        isPrivate ? try CertificateRequest.pem(signedBy: try PrivateKey(pem: pem)) : pem
      let blocks = try PEMBlock.blocks(in: [UInt8](text.utf8))
      guard let block = blocks.first else {
        throw CommandFailure.usage("\(path) is not PEM; hint: a key, a CSR or a certificate")
      }
      let meant =
        isPrivate
        ? pem.ranges(of: "PRIVATE KEY-----").count / 2
        : blocks.count { PEMKey.Form(label: $0.label) != nil }
      guard meant < 2 else {
        throw CommandFailure.usage(
          "\(path) has several keys or certificates, and nobody could say which is meant; hint: a file with one"
        )
      }
      return try PEMKey(block)
    } catch let failure as CommandFailure { throw failure } catch { throw .no("\(path): \(error)") }
  }
}

/// The steps.
extension AnnouncementRun {
  private mutating func lookAtAll() async -> AnnouncementProgress.Finding {
    let seen = await look()
    if invocation[AnnounceCommand.settle] == nil { progress.outlast(seen.kept) }
    return seen.finding
  }

  /// Whether every list, and every mirror that a list names, has the key for the endpoint's hosts, and for how many seconds
  /// caches may keep them.
  private func look() async -> (finding: AnnouncementProgress.Finding, kept: Int64) {
    // A mirror has another URL, and the same registry.
    var (waiting, kept) = (lists, Int64(0))
    var seen: Set<String> = []
    // All are looked at: one that lacks the key counts more than one that is silent, or time without it would be taken for
    // time to settle.
    var unseen: AnnouncementProgress.Finding?
    while let (place, shipped) = waiting.popLast() {
      guard seen.insert(place).inserted else { continue }
      let answer = await silent.ask(place) { seconds in
        let start = ContinuousClock.now
        let answer = await look(at: place, shipped, within: seconds)
        guard case .unseen(let reason) = answer.finding else { return (answer, false) }
        let isLate = ContinuousClock.now - start > .seconds(seconds - 1)
        guard seconds < SilentPlaces.usual, isLate else { return (answer, true) }
        let neighbour =
          "\(reason) (it had \(Int(seconds)) s, since others of its server did not answer)"
        return ((.unseen(neighbour), nil, 0), true)
      }
      let name = Secrets.hidden(in: place)
      guard let answer else {
        unseen =
          unseen ?? .unseen("\(name) is not asked again: its server did not answer in time")
        continue
      }
      switch answer.finding {
      case .missing, .denied: return (answer.finding, kept)
      default: break
      }
      guard let mirrors = answer.mirrors else {
        unseen = unseen ?? answer.finding
        continue
      }
      kept = max(kept, answer.kept)
      waiting += mirrors.map { ($0, shipped) }
    }
    return (unseen ?? .listed, kept)
  }

  private typealias Seen = (
    finding: AnnouncementProgress.Finding, mirrors: [String]?, kept: Int64
  )

  /// - Returns: what is wrong with it, or the mirrors that are to be looked at as well.
  private func look(
    at place: String, _ shipped: RegistryTrustArguments, within seconds: Double
  ) async -> Seen {
    func unseen(_ reason: String) -> Seen {
      let name = Secrets.hidden(in: place)
      return (.unseen(reason.hasPrefix(name) ? reason : "\(name): \(reason)"), nil, 0)
    }
    do {
      let list = ListKey(place: place, shipped: shipped, trust: trust)
      let served = try await (recent ?? Lists()).content(of: list) {
        try await fetch(list, within: seconds)
      }
      let (trusted, now) = (served.trusted, Int64(Date().timeIntervalSince1970))
      // Clients do not count a key that has expired.
      let isListed = hosts.allSatisfy { host in
        trusted.registry.keys.contains { entry in
          entry.pattern.matches(host) && (try? entry.pin.get()) == key.pin
            && entry.expires.map { $0 > now } ?? true
        }
      }
      guard trusted.statement?.denied.contains(key.pin) != true else {
        return (.denied(at: Secrets.hidden(in: place)), nil, 0)
      }
      guard isListed else { return (.missing(at: place), nil, 0) }
      if let problem = served.problem { return unseen(problem) }
      return (.listed, trusted.statement?.mirrors.map { "\($0)" } ?? [], served.kept)
    } catch let failure as CommandFailure {
      return unseen(failure.message)
    } catch {
      return unseen("\(error)")
    }
  }

  private func fetch(_ list: ListKey, within seconds: Double) async throws -> Served {
    let registry = try ServedRegistry(list.place, trust: list.trust, timeout: seconds)
    let bytes = try await registry.document()
    let trusted = try TrustedRegistry(
      accepting: bytes, under: try list.shipped.trust(for: bytes),
      at: Int64(Date().timeIntervalSince1970))
    // Clients ask for the statement first.
    let problem = await registry.statementProblem(of: bytes, trusted)
    return Served(trusted: trusted, problem: problem, kept: registry.longestKept)
  }

  /// Has the key published ahead of its use.
  private mutating func stage() async -> AnnouncementProgress.Finding {
    var body: JSONObject = [key.form.rawValue: .string(key.block.text)]
    body["note"] = invocation[AdminCommands.why].map { .string($0) }
    let reply: AdminCall.Reply
    do throws(CommandFailure) {
      // Anew: a token of a minute has ended by the second attempt.
      let (call, path) = (try AdminCall(invocation), path)
      let asked = await silent.ask(call.base) {
        _ async -> (Result<AdminCall.Reply, CommandFailure>, Bool) in
        do throws(CommandFailure) {
          let reply = try await call.attempt(
            path, posting: .object(body), expecting: AdminCommands.changed)
          return (.success(reply), false)
        } catch { return (.failure(error), true) }
      }
      guard let asked else {
        return .failed("\(call.base) is not asked again: it did not answer in time")
      }
      reply = try asked.get()
    } catch { return .failed(error.message) }
    switch reply {
    case .done(let answer):
      if let id = answer["proposal"]?.objectValue?["id"]?.stringValue {
        Terminal.say(
          "proposed: another person confirms it by ssl-pinning admin confirm \(id); hint: a token of"
            + " scope stage needs none")
        do throws(CommandFailure) {
          try job.note(key.pin, proposedAt: Int64(Date().timeIntervalSince1970))
        } catch { return .failed(error.message) }
      }
      return .staged
    case .refused(let code, .no(let reason)): return .refused(code: code, reason)
    case .refused(_, let failure): return .failed(failure.message)
    }
  }

  /// Puts the key in use.
  private func execute(_ command: String?) async -> AnnouncementProgress.Finding {
    guard let command else { return .ran }
    let seconds = invocation[AnnounceCommand.timeout] ?? 600
    let place = job.reference.replacing("'", with: #"'\''"#)
    let script = "exec >&2\nexport \(AnnouncementJob.leaderVariable)='\(place)'\n" + command
    return await withCheckedContinuation { continuation in
      BackgroundThread.start("announced command") {
        do throws(ProgramRun.Fault) {
          // Only of standard error the beginning is kept.
          let end = try ProgramRun.run(
            ["/bin/sh", "-c", script], input: [],
            milliseconds: Int64(seconds * 1000), leaving: 500, output: nil)
          let said = end.errors.isEmpty ? "" : ", and said \"\(end.errors)\""
          continuation.resume(
            returning: end.failure.map { .failed("the command \($0)\(said)") } ?? .ran)
        } catch {
          let reason =
            switch error {
            case .notStarted(let reason): "cannot run /bin/sh: \(reason)"
            default: "the command did not end within \(seconds) s, and was killed"
            }
          continuation.resume(returning: .failed(reason))
        }
      }
    }
  }
}
