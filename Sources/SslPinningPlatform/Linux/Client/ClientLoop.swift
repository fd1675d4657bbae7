#if os(Linux)
  import CSslPinningCurl
  import CSslPinningShims
  import Foundation
  import FoundationNetworking
  import SslPinningRules

  /// Runs requests on a libcurl multi handle of its own, on a thread of its own.
  ///
  /// - Handles belong to the loop's thread. Others put messages into its inbox and wake it.
  /// - A request is started anew for newer pins and for a kept connection that no longer passes or takes it,
  ///   once each, and for connections that are still being made. Nothing of it has left then, or it does no
  ///   harm twice.
  /// - One connection that is dead holds up the requests that are on it, and no others (``ConnectionColours``).
  /// - Time-outs are kept here, not in libcurl: they hold over every wait, and are looked at ten times
  ///   a second. Waiting for one's turn counts, as it does in a session.
  /// - Its places are what the client's other loops leave (``ClientPlaces``).
  ///
  /// Unchecked: what is not behind the inbox's lock is touched by the loop's thread alone.
  final class ClientLoop: @unchecked Sendable {
    enum Message: Int32 {
      case start, cancel
      /// So many bytes of its streamed body were taken, or there is more to send.
      case resume
      /// Newer pins are in force, or none could be had.
      case replay
      /// The loop is to end.
      case stop
    }

    static let sweepInterval: Int64 = 100

    let settings: RequestSettings
    private let places: ClientPlaces
    let judge: any PinEvaluating
    let longestRefresh: Double
    private let verdicts: ConnectionEvaluator
    private let validator: ChainValidator
    private let client: OpaquePointer

    // Of the loop's thread alone.
    private var idle: [TransferSlot] = []
    private var active: [ClientRequest] = []
    private var parked: [ClientRequest] = []
    private var queued: [ObjectIdentifier: ClientRequest] = [:]
    private var starved: [RequestLane] = []
    private var now: Int64 = 0
    private var nextSweep: Int64 = 0

    /// `nil` where memory or descriptors are short.
    init?(
      judge: any PinEvaluating, validator: ChainValidator, longestRefresh: Double,
      settings: RequestSettings, places: ClientPlaces
    ) {
      let verdicts = ConnectionEvaluator(judge: judge, validator: validator)
      var options = verdicts.options(
        store: validator.storePointer, checkHost: validator.trust != .pinnedKeysOnly,
        mostConnections: settings.total, mostKept: max(1, settings.total / settings.lanes),
        features: Self.features(settings))
      guard let client = pp_client_make(&options) else { return nil }
      self.client = client
      self.verdicts = verdicts
      self.validator = validator
      self.judge = judge
      self.longestRefresh = longestRefresh
      self.settings = settings
      self.places = places
      guard DetachedThread.start(stackBytes: 1 << 20, { [self] in run() }) else { return nil }
    }

    private static func features(_ settings: RequestSettings) -> UInt32 {
      let known = pp_libcurl_features()
      return settings.speaksHTTP2 ? known : known & ~UInt32(CURL_VERSION_HTTP2)
    }

    // The thread, whose closure holds the loop, has ended: nothing of libcurl is left to be freed here.
    deinit {
      _ = takeMessages()
      pp_client_free(client)
    }

    // MARK: From any thread

    func post(_ message: Message, _ request: ClientRequest, taken: Int = 0) {
      let object = Unmanaged.passRetained(request)
      guard pp_client_post(client, message.rawValue, object.toOpaque(), taken) else {
        object.release()
        if message == .start {
          request.end()
          request.fail(URLError.failing(.resourceUnavailable, request.target.url))
        }
        return
      }
    }

    /// Ends the thread once it has failed what is under way.
    func stop() { _ = pp_client_post(client, Message.stop.rawValue, nil, 0) }

    // MARK: On the loop's thread

    private func run() {
      // OpenSSL writes to sockets with write(2): a peer that left would end the process.
      var signals = sigset_t()
      sigemptyset(&signals)
      sigaddset(&signals, SIGPIPE)
      pthread_sigmask(SIG_BLOCK, &signals, nil)
      while takeMessages() {
        pp_client_act(client)
        reap()
        pp_client_wait(client, Int32(timeToSweep()))
        reap()
        sweepIfDue()
      }
      shutDown()
    }

    private func timeToSweep() -> Int {
      if active.isEmpty && parked.isEmpty && queued.isEmpty { return -1 }
      return Int(max(0, nextSweep - now))
    }

    /// False: the loop is to end.
    private func takeMessages() -> Bool {
      guard var next = pp_client_take(client) else { return true }
      now = pp_client_now()
      var goesOn = true
      while true {
        let message = next.pointee
        free(next)
        if let object = message.object {
          handle(
            Message(rawValue: message.kind), taken: message.amount,
            Unmanaged<ClientRequest>.fromOpaque(object).takeRetainedValue())
        } else {
          goesOn = false
        }
        guard let following = message.next else { return goesOn }
        next = following
      }
    }

    private func handle(_ message: Message?, taken: Int, _ request: ClientRequest) {
      switch message {
      case .start:
        if request.isCancelled {
          finish(request, throwing: URLError.failing(.cancelled, request.target.url))
        } else {
          request.phase = .waiting
          submit(request)
        }
      case .cancel:
        // One that overtook its start is remembered until then.
        if request.phase == .made {
          request.isCancelled = true
        } else {
          finish(request, throwing: URLError.failing(.cancelled, request.target.url))
        }
      case .resume:
        if let slot = request.slot { pp_exchange_resume(slot.raw, taken) }
      case .replay: replay(request)
      case .stop, nil: break
      }
    }

    private func submit(_ request: ClientRequest) {
      guard request.phase == .waiting else { return }
      if timeToSweep() < 0 { nextSweep = now + Self.sweepInterval }
      let lane = request.place.lane
      lane.limit = request.place.limit
      guard hasRoom(lane), !lane.hasWaiting else {
        request.lastActivity = now
        lane.append(request)
        queued[ObjectIdentifier(request)] = request
        if lane.active < lane.limit { starve(lane) }
        return
      }
      begin(request)
    }

    private func hasRoom(_ lane: RequestLane) -> Bool {
      lane.active < lane.limit && places.hasRoom(beside: active.count) && !lane.dial.isUnderWay
        && (!lane.isForStreams || places.hasRoomForStream)
    }

    private func starve(_ lane: RequestLane) {
      guard !lane.isStarved else { return }
      lane.isStarved = true
      starved.append(lane)
    }

    private func begin(_ request: ClientRequest) {
      guard let slot = takeSlot() else {
        return finish(request, throwing: URLError.failing(.resourceUnavailable, request.target.url))
      }
      request.phase = .active
      request.slot = slot
      request.verdict = .undecided
      request.begunAt = now
      if !request.wasMoved { request.lastActivity = now }
      request.isLeft = false
      request.index = active.count
      request.place.begin()
      places.take(beside: active.count, forStream: request.place.lane.isForStreams)
      active.append(request)
      slot.raw.pointee.owner = Unmanaged.passUnretained(request).toOpaque()
      request.mark = ConnectionColours.mark(for: request, among: active, at: now)
      request.target.origin.colours.enter(ConnectionColours.colour(of: request.mark))
      request.dialsItself = request.place.lane.dial.goesAhead(request) || request.dialsNext
      request.dialsNext = false
      let colour = ConnectionColours.colour(of: request.mark)
      guard slot.prepare(for: request, settings: settings, colour: colour),
        pp_exchange_start(slot.raw)
      else {
        return finish(request, throwing: URLError(.unknown))
      }
      // It has waited already: that it begins again is no sign of life.
      if request.wasMoved { slot.raw.pointee.alive = false }
    }

    private func takeSlot() -> TransferSlot? {
      if let slot = idle.popLast() { return slot }
      return pp_exchange_make(client).map(TransferSlot.init)
    }

    /// Gives the request's handle back and lets the next one in.
    private func leave(_ request: ClientRequest) {
      guard let slot = request.slot else { return }
      request.place.lane.dial.look(at: request)
      request.slot = nil
      pp_exchange_stop(slot.raw)
      slot.raw.pointee.owner = nil
      if slot.renew() { idle.append(slot) } else { pp_exchange_free(slot.raw) }
      let last = active.removeLast()
      if last !== request {
        active[request.index] = last
        last.index = request.index
      }
      request.target.origin.colours.exit(ConnectionColours.colour(of: request.mark), at: now)
      let lane = request.place.lane
      request.place.end()
      places.giveBack(beside: active.count, fromStream: lane.isForStreams)
      lane.limit = request.place.limit
      admitNext(lane)
    }

    private func admitNext(_ lane: RequestLane) {
      // Hosts that others kept out come first, in turn.
      if !starved.isEmpty {
        if lane.hasWaiting { starve(lane) }
        var left = starved.count
        while left > 0, places.hasRoom(beside: active.count), !starved.isEmpty {
          left -= 1
          let next = starved.removeFirst()
          next.isStarved = false
          admit(next)
          if next.hasWaiting, next.active < next.limit { starve(next) }
        }
      } else {
        // More than one where the limit has risen.
        while admit(lane) {}
      }
    }

    @discardableResult
    private func admit(_ lane: RequestLane) -> Bool {
      guard lane.hasWaiting, hasRoom(lane), let next = lane.popFirst() else { return false }
      queued[ObjectIdentifier(next)] = nil
      begin(next)
      return true
    }

    private func reap() {
      while let exchange = pp_client_next_news(client) {
        if let request = ConnectionEvaluator.request(of: exchange) {
          deliver(exchange, to: request)
        }
      }
      var code = CURLE_OK
      while let exchange = pp_client_next_done(client, &code) {
        guard let request = ConnectionEvaluator.request(of: exchange) else { continue }
        done(request, exchange, code)
      }
    }

    /// What a streaming transfer has received since the last time.
    private func deliver(_ exchange: UnsafeMutablePointer<pp_exchange>, to request: ClientRequest) {
      guard let feed = request.feed, exchange.pointee.head_complete else { return }
      if !request.isAnswered {
        var head = request.answer(body: Data())
        head.isWhole = false
        request.answer(head)
      }
      let body = exchange.takeBody(handOver: 0)
      if !body.isEmpty { feed.append(body) }
    }

    private func done(
      _ request: ClientRequest, _ exchange: UnsafeMutablePointer<pp_exchange>, _ code: CURLcode
    ) {
      switch request.verdict {
      case .refused(let evaluation): return finish(request, throwing: evaluation)
      case .retry(let evaluation):
        if code == CURLE_OK { break }
        guard !request.wasRetried, request.mayStartAnew else {
          let refusal =
            evaluation
            ?? PinEvaluation(
              host: String(cString: request.target.spelling),
              outcome: .unjudged("the connection was made for another host"), decision: .refuse)
          return finish(request, throwing: refusal)
        }
        request.wasRetried = true
        // What is on it goes on, and libcurl would offer it to each later request.
        ConnectionColours.change(request.target.origin, from: request.mark, at: now)
        return again(request)
      case .refresh(let evaluation):
        guard request.mayStartAnew else {
          // It may have arrived over the connection that died. The next request finds newer pins.
          finish(request, throwing: TransferFailure.lostConnection(request))
          let judge = judge
          promptTask { await judge.refresh(after: evaluation) }
          return
        }
        request.wasRefreshed = true
        return park(request, after: evaluation)
      case .unmade:
        if code == CURLE_OK { break }
        guard request.triesAgain() else {
          return finish(request, throwing: TransferFailure.unmadeConnection(request))
        }
        return again(request)
      case .undecided: break
      }
      if exchange.pointee.is_over, code != CURLE_OK { return again(request) }
      if exchange.pointee.is_crowded, !request.wasCrowded {
        request.wasCrowded = true
        return again(request)
      }
      if request.wasRefused(by: exchange, code), !request.wasRetried {
        request.wasRetried = true
        return again(request)
      }
      // An answer that leads elsewhere is whole once its head is, however long its body.
      guard code == CURLE_OK || exchange.pointee.discards else {
        return finish(request, throwing: TransferFailure.error(code, exchange, request))
      }
      guard exchange.pointee.head_complete,
        request.method == "HEAD" || !pp_exchange_may_be_cut(exchange)
      else {
        if request.feed != nil { deliver(exchange, to: request) }
        return finish(request, throwing: TransferFailure.cutAnswer(request))
      }
      if !exchange.pointee.dials { request.place.lane.heardAt = now }
      if case .feed(let body) = request.body { body.close() }
      if let feed = request.feed, !exchange.pointee.discards {
        deliver(exchange, to: request)
        guard request.isAnswered else {
          return finish(
            request, throwing: URLError.failing(.badServerResponse, request.target.url))
        }
        request.end()
        leave(request)
        return feed.finish()
      }
      let body = exchange.takeBody(handOver: settings.handedOver)
      request.end()
      // First: whoever asked wakes up while the handle is taken out.
      request.answer(request.answer(body: body))
      leave(request)
    }

    private func again(_ request: ClientRequest) {
      request.needsFreshConnection = true
      request.phase = .waiting
      leave(request)
      submit(request)
    }

    private func park(_ request: ClientRequest, after refusal: PinEvaluation) {
      request.needsFreshConnection = true
      // Its wait for a connection is over, and one that succeeds here begins like a new one.
      request.wasMoved = false
      request.phase = .parked
      leave(request)
      let longest = min(longestRefresh, Double(request.timeout) / 1000 * 0.8)
      now = pp_client_now()
      request.resumeAt = now + Int64(longest * 1000)
      parked.append(request)
      let judge = judge
      promptTask { [weak self] in
        await judge.refresh(after: refusal)
        self?.post(.replay, request)
      }
    }

    private func replay(_ request: ClientRequest) {
      guard request.phase == .parked else { return }
      parked.removeAll { $0 === request }
      request.phase = .waiting
      submit(request)
    }

    private func finish(_ request: ClientRequest, throwing error: any Error) {
      let phase = request.phase
      request.end()
      switch phase {
      case .done: return
      case .waiting:
        if queued.removeValue(forKey: ObjectIdentifier(request)) != nil {
          request.place.lane.passOver()
        }
      case .parked: parked.removeAll { $0 === request }
      case .made, .active: break
      }
      // Before its handle is given back, which knows whether anything of it left.
      let end = verdicts.end(of: request, failing: error)
      leave(request)
      if case .feed(let feed) = request.body { feed.close() }
      request.fail(end)
    }

    private func sweepIfDue() {
      if active.isEmpty && parked.isEmpty && queued.isEmpty { return }
      now = pp_client_now()
      guard now >= nextSweep else { return }
      nextSweep = now + Self.sweepInterval
      var (late, lost): ([ClientRequest], [ClientRequest]) = ([], [])
      for request in active {
        if let raw = request.slot?.raw, pp_exchange_lost_connection(raw) {
          if request.mayRepeat { request.beginsAgain(at: now) } else { lost.append(request) }
        }
        request.place.lane.dial.look(at: request)
        if let raw = request.slot?.raw, raw.pointee.takeActivity() { request.lastActivity = now }
        if now - request.lastActivity >= request.timeout || now >= request.deadline {
          late.append(request)
        }
      }
      var lanes: [RequestLane] = []
      for request in queued.values {
        if now - request.lastActivity >= request.timeout || now >= request.deadline {
          late.append(request)
        } else {
          // Places that other loops gave back are found here, and that somebody's dial stands.
          request.place.lane.limit = request.place.limit
          if hasRoom(request.place.lane) { lanes.append(request.place.lane) }
        }
      }
      for request in parked {
        if now >= request.deadline {
          late.append(request)
        } else if now >= request.resumeAt {
          replay(request)
        }
      }
      // libcurl asks for a connection first, and is refused then: behind a dial that hangs, that is late.
      for request in lost { finish(request, throwing: TransferFailure.lostConnection(request)) }
      for request in late {
        // Its connection may be dead: libcurl would put the next requests onto it (HTTP/2), or onto
        // others that the network lost with it.
        if let raw = request.slot?.raw, now - request.lastActivity >= request.timeout,
          pp_exchange_leave_silent_connection(
            raw, request.place.lane.heardAt > request.begunAt)
        {
          ConnectionColours.change(request.target.origin, from: request.mark, at: now)
        }
        finish(request, throwing: URLError.failing(.timedOut, request.target.url))
      }
      for lane in lanes { admitNext(lane) }
      leaveHangingDials()
    }

    /// libcurl has requests wait for the connection that another one opens, to share it: behind a dial that
    /// hangs they would wait for as long as that one's request has patience.
    private func leaveHangingDials() {
      var behind: [ClientRequest] = []
      // One that stands there twice is without a handle, or begun anew once more.
      for request in ConnectionColours.held(among: active, beside: queued.values, at: now)
      where request.slot != nil {
        request.wasMoved = true
        request.phase = .waiting
        leave(request)
        if hasRoom(request.place.lane) { begin(request) } else { behind.append(request) }
      }
      for request in behind.reversed() {
        request.place.lane.putBack(request)
        queued[ObjectIdentifier(request)] = request
      }
    }

    private func shutDown() {
      _ = takeMessages()
      for request in active + parked + Array(queued.values) {
        finish(request, throwing: URLError(.cancelled))
      }
      for slot in idle { pp_exchange_free(slot.raw) }
      idle = []
      pp_client_close(client)
    }
  }
#endif
