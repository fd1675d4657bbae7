import SslPinningPlatform
import SslPinningRules

/// The jobs of one probe thread: the queue, and the connections of admitted jobs. Only that thread may use it.
final class ProbeScheduler {
  /// One connection, and its job.
  private struct Open {
    let session: ProbeSession
    let job: UInt64
    let route: Int
    let place: Int
    let address: Endpoint?
    /// The kind of key that was asked for; `nil` if the server chooses.
    let kind: CertificateKeyKind?
  }

  /// When to check something again even if no event came.
  private struct Alarm: Comparable {
    enum Subject {
      case job(UInt64)
      case connection(UInt64)
    }

    let time: Deadline
    let subject: Subject

    static func < (one: Alarm, other: Alarm) -> Bool { one.time < other.time }
    static func == (one: Alarm, other: Alarm) -> Bool { one.time == other.time }
  }

  /// Starts the lookup of the name at the end of a route.
  typealias LookUp = (_ job: ProbeRequest, _ route: Int, _ until: Deadline) -> Void
  /// The addresses that such a lookup found recently.
  typealias Recall = (_ job: ProbeRequest, _ route: Int) -> [Endpoint]?

  /// The most connections before jobs queue.
  static let limit = 512
  /// The most addresses of one name that are probed.
  static let addressLimit = 16

  private let client: ProbeClient
  private let events: ProbeEvents
  private let lookUp: LookUp
  private let recall: Recall
  private var queue: [ProbeRequest] = []
  private var works: [UInt64: ProbeJob] = [:]
  private var connections: [UInt64: Open] = [:]
  private var alarms = PriorityQueue<Alarm>()
  private var lastSerial: UInt64 = 0
  /// Finished jobs whose callers have not been notified yet.
  private var over: [ProbeJob] = []
  /// How busy its thread is.
  var load = LoopLoad()

  init(
    client: ProbeClient, events: ProbeEvents, recall: @escaping Recall = { _, _ in nil },
    lookUp: @escaping LookUp
  ) {
    self.client = client
    self.events = events
    self.recall = recall
    self.lookUp = lookUp
  }

  /// Milliseconds until something may be due; -1 if nothing is.
  var pause: Int32 { alarms.first?.time.pollTimeout ?? -1 }

  func begin(_ job: ProbeRequest) {
    queue.append(job)
    alarms.insert(Alarm(time: job.deadline, subject: .job(job.id)))
  }

  /// Admits jobs while there is room.
  func admit() {
    guard !queue.isEmpty else { return }
    var admitted = 0
    while admitted < queue.count, connections.count < Self.limit {
      start(queue[admitted])
      admitted += 1
    }
    queue.removeFirst(admitted)
  }

  /// Notifies the callers of finished jobs, all at once: one by one, each would cause a wake-up of its own.
  func tell() {
    guard !over.isEmpty else { return }
    let told = over
    over.removeAll(keepingCapacity: true)
    for work in told { work.complete() }
  }

  func cancel(_ id: UInt64) { drop(id, .cancelled) }

  /// Ends the remaining jobs as cancelled.
  func stop() {
    for id in queue.map(\.id) + works.keys { drop(id, .cancelled) }
    tell()
  }

  /// Dials the addresses that were found.
  func dial(_ id: UInt64, _ route: Int, _ result: Result<[Endpoint], NameResolver.Failure>) {
    guard let work = works[id],
      work.lookups.removeValue(forKey: route) != nil
    else { return }
    switch result {
    case .success(let addresses): dial(addresses, for: work, on: route)
    case .failure(let failure):
      let host =
        if case .tunnel(let host, _, _) = work.job.routes[route] { host } else { work.job.host }
      fail(work, .dns(host: host, reason: failure.reason), on: route)
    }
    work.isDialling = false
    finish(work)
  }

  /// Handles an event on a connection.
  func advance(_ token: UInt64) {
    guard let open = connections[token] else { return }
    note(open.session.advance(), of: token, open)
  }

  /// Handles the alarms that are due.
  func expire() {
    while let alarm = alarms.first, alarm.time.hasPassed {
      _ = alarms.popFirst()
      switch alarm.subject {
      case .connection(let serial):
        guard let open = connections[serial] else { continue }
        open.session.alarm = nil
        note(open.session.expire(), of: serial, open)
      case .job(let id): expire(job: id)
      }
    }
  }

  private func start(_ job: ProbeRequest) {
    guard !job.deadline.hasPassed else { return job.fail(.timeout(.queue)) }
    let work = ProbeJob(job, under: load.reading(at: .now))
    works[job.id] = work
    work.isDialling = true
    for (index, route) in job.routes.enumerated() {
      let (host, port, known) =
        switch route {
        case .direct, .directInTurn: (job.host, job.port, job.addresses)
        case .tunnel(let host, let port, _): (host, port, [])
        }
      let addresses =
        !known.isEmpty
        ? known
        : NumericAddress.canonical(host).map { [Endpoint(address: $0, port: port)] }
      guard let addresses else {
        let until = min(Deadline.after(milliseconds: job.limits.lookup), job.deadline(of: index))
        work.lookups[index] = until
        alarms.insert(Alarm(time: until, subject: .job(job.id)))
        lookUp(job, index, until)
        continue
      }
      dial(addresses, for: work, on: index)
    }
    work.isDialling = false
    finish(work)
  }

  private func dial(_ addresses: [Endpoint], for work: ProbeJob, on route: Int) {
    var known = Set<Endpoint>()
    let all = addresses.filter { known.insert($0).inserted }
    let addresses = all.prefix(Self.addressLimit)
    if all.count > addresses.count { work.leftOut[route] = Set(all.dropFirst(addresses.count)) }
    guard !addresses.isEmpty else {
      return fail(work, .dns(host: work.job.host, reason: "no address"), on: route)
    }
    switch (work.job.purpose, work.job.routes[route]) {
    case (.survey, .direct):
      work.expect(addresses.count, on: route)
      for (place, address) in addresses.enumerated() {
        open([address], for: work, on: route, place: place, address: address)
      }
    case (.survey, .tunnel) where work.job.addressesThere[route]?.isEmpty == false:
      // And for any: the name may have others there, or some that only the proxy has a way to.
      let there: [Endpoint?] = (work.job.addressesThere[route] ?? []) + [nil]
      work.expect(there.count, on: route)
      for (place, address) in there.enumerated() {
        open(Array(addresses), for: work, on: route, place: place, address: address)
      }
    case (.survey, .tunnel), (.survey, .directInTurn), (.one, _):
      work.expect(1, on: route)
      open(Array(addresses), for: work, on: route, place: 0, address: nil)
    }
  }

  private func open(
    _ candidates: [Endpoint], for work: ProbeJob, on route: Int, place: Int, address: Endpoint?,
    asking kind: CertificateKeyKind? = nil
  ) {
    let job = work.job
    lastSerial += 1
    let serial = lastSerial
    let tunnel: ProbeSession.Tunnel? =
      if case .tunnel(let host, let port, let trust) = job.routes[route] {
        ProbeSession.Tunnel(
          target: job.tunnelTarget, host: host, port: port, trust: trust, address: address)
      } else { nil }
    let session = ProbeSession(
      ProbeSession.Plan(
        host: job.host, tunnel: tunnel, limits: job.limits, deadline: job.deadline(of: route),
        kind: kind),
      candidates: candidates, client: client, signal: events.signal,
      watch: { [events] in events.watch($0, token: serial) })
    let open = Open(
      session: session, job: job.id, route: route, place: place, address: address, kind: kind)
    work.sessions.insert(serial)
    connections[serial] = open
    note(session.start(), of: serial, open)
  }

  private func note(_ progress: ProbeSession.Progress, of serial: UInt64, _ open: Open) {
    guard let work = works[open.job] else { return }
    var next: (Endpoint, kinds: [CertificateKeyKind])?
    switch progress {
    case .waits:
      // One alarm at a time, unless an earlier one is needed: most connections end before theirs.
      let time = open.session.until
      if let alarm = open.session.alarm, alarm <= time { return }
      open.session.alarm = time
      alarms.insert(Alarm(time: time, subject: .connection(serial)))
      return
    case .failed(let error):
      work.note(
        error, on: open.route, place: open.place, at: open.address,
        blame: open.session.blame(for: error), asking: open.kind)
    case .shook(let session, let endpoint):
      work.judge(
        session, on: open.route, place: open.place, at: endpoint, toldAs: open.address,
        by: open.session, asking: open.kind)
      if open.kind == nil {
        let shown = CertificateKeyKind(shownIn: session)
        next = (endpoint, work.job.kinds.filter { $0 != shown })
      }
    }
    open.session.close()
    connections[serial] = nil
    work.sessions.remove(serial)
    if let (endpoint, kinds) = next { ask(for: kinds, at: endpoint, of: open, work) }
    finish(work)
  }

  /// Asks where a server has just shown a key for other kinds of key.
  private func ask(
    for kinds: [CertificateKeyKind], at endpoint: Endpoint, of answered: Open, _ work: ProbeJob
  ) {
    let wasDialling = work.isDialling
    work.isDialling = true
    for kind in kinds {
      open(
        [endpoint], for: work, on: answered.route, place: answered.place,
        address: answered.address, asking: kind)
    }
    work.isDialling = wasDialling
  }

  private func fail(_ work: ProbeJob, _ error: ProbeError, on route: Int) {
    work.expect(1, on: route)
    let isTunnel = if case .tunnel = work.job.routes[route] { true } else { false }
    work.note(error, on: route, place: 0, at: nil, blame: isTunnel ? .proxy : .server)
  }

  private func finish(_ work: ProbeJob) {
    guard work.isOver, works.removeValue(forKey: work.job.id) != nil else { return }
    work.wasHeldUp = work.waited || load.isHeavy(since: work.begun, at: .now)
    over.append(work)
  }

  private func expire(job id: UInt64) {
    guard let work = works[id] else {
      guard queue.contains(where: { $0.id == id && $0.deadline.hasPassed }) else { return }
      return drop(id, .timeout(.queue))
    }
    for (route, until) in work.lookups where until.hasPassed {
      work.lookups[route] = nil
      // Addresses do not help a job whose total time is up.
      if !work.job.deadline.hasPassed, let addresses = recall(work.job, route) {
        work.remembered.insert(route)
        work.isDialling = true
        dial(addresses, for: work, on: route)
        work.isDialling = false
      } else {
        fail(work, .timeout(.dns), on: route)
      }
    }
    finish(work)
  }

  private func drop(_ id: UInt64, _ error: ProbeError) {
    if let index = queue.firstIndex(where: { $0.id == id }) {
      queue.remove(at: index).fail(error)
    }
    guard let work = works.removeValue(forKey: id) else { return }
    for serial in work.sessions { connections.removeValue(forKey: serial)?.session.close() }
    work.job.fail(error)
  }
}

/// A running job: its findings so far, and what is still open. Only its loop's thread may use it.
final class ProbeJob {
  let job: ProbeRequest
  /// The serial numbers of its connections.
  var sessions: Set<UInt64> = []
  /// The unanswered lookups, by route, and their deadlines.
  var lookups: [Int: Deadline] = [:]
  /// The routes that dial the addresses of an earlier lookup.
  var remembered: Set<Int> = []
  /// The addresses that the name has on a route and that are not dialled.
  var leftOut: [Int: Set<Endpoint>] = [:]
  /// Whether more connections are about to be opened.
  var isDialling = false
  private var findings: [Int: [ProbeFinding?]] = [:]
  /// What came of asking for another kind of key, by route, each with the number of its place.
  private var others: [Int: [(place: Int, finding: ProbeFinding)]] = [:]
  private var result: Result<ProbedServer, ProbeError>?

  /// How busy its thread was when it began.
  let begun: LoopLoad.Reading
  /// Whether it had to wait for its turn, and has less time than the others.
  let waited: Bool
  /// Whether that, or all that its thread had to do, may be why something timed out.
  var wasHeldUp = false

  init(_ job: ProbeRequest, under load: LoopLoad.Reading) {
    (self.job, begun) = (job, load)
    waited = job.limits.total - job.deadline.millisecondsLeft > 1000
  }

  var isOver: Bool { !isDialling && sessions.isEmpty && lookups.isEmpty }

  /// Announces how many findings a route will have.
  func expect(_ count: Int, on route: Int) {
    findings[route] = Array(repeating: nil, count: count)
  }

  /// Enters a failure.
  func note(
    _ error: ProbeError, on route: Int, place: Int, at address: Endpoint?, blame: ProbeBlame,
    asking kind: CertificateKeyKind? = nil
  ) {
    switch job.purpose {
    case .one: result = .failure(error)
    case .survey:
      var finding = ProbeFinding(route: route, address: address, outcome: .failure(error))
      (finding.blame, finding.keyType) = (blame, kind)
      enter(finding, place: place)
    }
  }

  /// Judges a finished handshake.
  func judge(
    _ session: OpaquePointer, on route: Int, place: Int, at endpoint: Endpoint,
    toldAs address: Endpoint?, by connection: ProbeSession, asking kind: CertificateKeyKind?
  ) {
    switch job.purpose {
    case .one(let target, let validator, let time, _):
      do throws(ProbeError) {
        result = .success(
          try ProbedServer(session, of: target, at: endpoint, by: validator, time: time))
      } catch { result = .failure(error) }
    case .survey(_, let reader, _):
      let outcome: Result<ProbeVerdict, ProbeError>
      do throws(ProbeError) {
        outcome = .success(try reader.read(session))
      } catch { outcome = .failure(error) }
      var finding = ProbeFinding(
        route: route, address: address, outcome: outcome)
      finding.keyType = kind
      finding.dialledThere = connection.dialledThere
      finding.took = connection.duration
      finding.isFinished = session.isHandshakeFinished
      enter(finding, place: place)
    }
  }

  /// Notifies the caller.
  func complete() {
    switch job.purpose {
    case .one(_, _, _, let complete): complete(result ?? .failure(.cancelled))
    case .survey(let routes, _, let complete):
      complete(
        routes.indices.flatMap { route in
          (findings[route] ?? []).map { finding in
            finding ?? ProbeFinding(route: route, address: nil, outcome: .failure(.cancelled))
          } + (others[route] ?? []).sorted { $0.place < $1.place }.map(\.finding)
        }.map { finding in
          var finding = finding
          if case .failure(.timeout) = finding.outcome { finding.wasHeldUp = wasHeldUp }
          return finding
        })
    }
  }

  private func enter(_ finding: ProbeFinding, place: Int) {
    guard findings[finding.route]?.indices.contains(place) == true else { return }
    var finding = finding
    finding.isRemembered = remembered.contains(finding.route)
    finding.leftOut = leftOut[finding.route] ?? []
    guard finding.keyType == nil else {
      others[finding.route, default: []].append((place, finding))
      return
    }
    findings[finding.route]?[place] = finding
  }
}
