import SslPinningPlatform
import SslPinningRules

/// Who asks the places of one round, and what he asks with.
struct RegistryVisitor: Sendable {
  /// What was believed when the round began: "unchanged" is about this.
  let asked: TrustedRegistry
  /// The tag of its document, where "unchanged" is an answer.
  let tag: DocumentTag?
  let bypassesCaches: Bool
  /// The times that the dates of a server's chain are held to.
  let time: TrustTime
  let fetch: RegistrySource.Fetch

  /// The part to begin with; `nil` where no statement is in force that it could be the next of.
  var statementPart: RegistrySource.Part? {
    asked.statement.flatMap { $0.isRetired ? nil : .statement(epoch: asked.keySetEpoch) }
  }

  func ask(
    _ place: RegistrySource.Place, for part: RegistrySource.Part
  ) async -> Result<FetchedDocument, FetchError> {
    // A tag belongs to the app's own URL.
    let etag = place == .own && tag?.part == part ? tag?.value : nil
    return await fetch(
      .init(
        place: place, part: part, etag: etag, bypassesCaches: bypassesCaches, time: time))
  }

  /// The document that a statement part belongs to: with the payload that is believed, or what one of these
  /// places has at its digest. `nil`: none has it.
  func document(
    of part: StatementPart, at places: [RegistrySource.Place], _ limits: RegistryLimits
  ) async -> [UInt8]? {
    if let document = try? part.document(completedBy: asked, limits: limits) { return document }
    for place in places {
      guard
        case .success(.fresh(let payload, _)) = await ask(
          place, for: .payload(digest: part.payloadDigest)),
        let document = try? part.document(payload: payload, completedBy: asked, limits: limits)
      else { continue }
      return document
    }
    return nil
  }
}

/// Asking one place, and believing a document that came by another road.
extension RegistryUpdater {
  /// What came of asking one place.
  struct Visit {
    struct News {
      /// Whether another document is in force than before.
      var isNewer: Bool
      /// Whether hosts or pins are others.
      var isChange: Bool
    }

    var result: Result<News, SslPinningError>
    /// Whether there is something to store.
    var isNews: Bool

    var answer: RegistryRound.Answer {
      switch result {
      case .success(let news): news.isNewer ? .newer : .nothingNewer
      case .failure: .failed
      }
    }
  }

  /// How many fetched answers wait to be judged at a time.
  private static let mostJudged = 4

  /// A mirror being asked.
  struct MirrorAsk {
    /// Seconds after which it may be asked once more: its connection may have died with the network.
    static let patience: Int64 = 3
    /// How many at a time. With a fetch for each refusal, silent mirrors would take all threads that fetch.
    static let most = 4

    let task: Task<Visit, Never>
    /// When it began, by the clock that is never set.
    let begun: Int64
    let bypassesCaches: Bool
  }

  /// Asks one place. Whoever wants to ask a mirror that was asked just now waits for that answer, unless a cache
  /// may give it and he asks past caches.
  func ask(_ place: RegistrySource.Place, by visitor: RegistryVisitor) async -> Visit {
    guard case .mirror = place else { return await visit(place, by: visitor) }
    let now = clocks.steady()
    return await state.withLock { state in
      let asked = state.asked[place] ?? []
      let enough = asked.last { $0.bypassesCaches || !visitor.bypassesCaches }
      if let enough, now - enough.begun < MirrorAsk.patience { return enough.task }
      if asked.count >= MirrorAsk.most, let newest = enough ?? asked.last { return newest.task }
      let bypassesCaches = visitor.bypassesCaches
      let task = promptTask {
        let visit = await self.visit(place, by: visitor)
        // No two of one kind begin at one time.
        self.state.withLock {
          $0.asked[place]?.removeAll { $0.begun == now && $0.bypassesCaches == bypassesCaches }
        }
        return visit
      }
      state.asked[place] =
        asked + [MirrorAsk(task: task, begun: now, bypassesCaches: bypassesCaches)]
      return task
    }.value
  }

  /// Asks one place for what is new, by the statement part where it has one, and puts it in force.
  func visit(_ place: RegistrySource.Place, by visitor: RegistryVisitor) async -> Visit {
    var isNews = false
    if let part = visitor.statementPart, !state.withLock({ $0.withoutParts.contains(place) }) {
      let (visit, hasLearned) = await self.visit(place, by: visitor, for: part)
      if let visit { return visit }
      isNews = hasLearned
    }
    var visit = await take(
      await visitor.ask(place, for: .document), of: .document, from: place, confirming: visitor)
    visit.isNews = visit.isNews || isNews
    return visit
  }

  /// - Returns: `nil` where the whole document is to be asked for, and whether something was learned of the
  ///   part all the same.
  private func visit(
    _ place: RegistrySource.Place, by visitor: RegistryVisitor, for part: RegistrySource.Part
  ) async -> (Visit?, isNews: Bool) {
    let answer = await visitor.ask(place, for: part)
    switch answer {
    case .failure(.status(let code, _))
    where (400..<500).contains(code) && ![408, 429].contains(code):
      // For the life of the process: it is a server of whole documents.
      _ = state.withLock { $0.withoutParts.insert(place) }
      return (nil, false)
    case .failure(.tooLarge): return (nil, false)
    case .failure, .success(.unchanged):
      return (await take(answer, of: part, from: place, confirming: visitor), false)
    case .success(.fresh(let bytes, let etag)):
      guard let statement = try? StatementPart(parsing: bytes, limits: trust.limits) else {
        return (nil, false)
      }
      let road: TrustedRegistry.Road = place == .own ? .server : .mirror
      let reason: RegistryError?
      do throws(SslPinningError) {
        reason = try await inTurn(url(of: place)) { () async throws(SslPinningError) in
          try await refusal(of: statement, by: road)
        }
      } catch { return (Visit(result: .failure(error), isNews: false), false) }
      if let reason {
        // A mirror is not asked for its whole document because it is behind: it may be so for long.
        guard case .rolledBack = reason, place != .own else { return (nil, true) }
        let error = SslPinningError(reason, url: url(of: place))
        return (Visit(result: .failure(error), isNews: true), true)
      }
      guard let document = await visitor.document(of: statement, at: [place], trust.limits)
      else { return (nil, false) }
      let visit = await take(
        .success(.fresh(document, etag: etag)), of: part, from: place, confirming: visitor)
      if case .failure = visit.result { return (nil, visit.isNews) }
      return (visit, false)
    }
  }

  private func url(of place: RegistrySource.Place) -> String {
    switch place {
    case .own: config.endpointUrl
    case .mirror(let mirror): mirror.description
    }
  }

  /// Judges an answer, and puts in force what is believed of it.
  private func take(
    _ answer: Result<FetchedDocument, FetchError>, of part: RegistrySource.Part,
    from place: RegistrySource.Place, confirming visitor: RegistryVisitor
  ) async -> Visit {
    let (road, origin): (TrustedRegistry.Road, RegistryStatus.Origin) =
      place == .own ? (.server, .network) : (.mirror, .mirror)
    let url = url(of: place)
    do throws(SslPinningError) {
      switch answer {
      case .failure(let error): throw SslPinningError(error, url: url)
      case .success(.unchanged):
        let clock = clocks.wall()
        let (isChange, _) = try await inTurn(url) { () async throws(SslPinningError) in
          try await put { base in
            let isSame = base.isSameDocument(as: visitor.asked)
            return (
              isSame ? Change(registry: base.confirmed(at: clock), origin: origin) : nil, ()
            )
          }
        }
        return Visit(result: .success(.init(isNewer: false, isChange: isChange)), isNews: true)
      case .success(.fresh(let bytes, let etag)):
        let tag = place == .own ? etag.flatMap { DocumentTag($0, of: part) } : nil
        return try await inTurn(url) { () async throws(SslPinningError) in
          try await take(bytes, by: road, origin, tag: tag, url: url)
        }
      }
    } catch { return Visit(result: .failure(error), isNews: false) }
  }

  /// Judges a fetched answer, unless too many of them wait for that. A thief's may take long, and each refusal fetches one: a
  /// list that is handed over must not wait behind all of them.
  private func inTurn<Told>(
    _ url: String, _ judge: () async throws(SslPinningError) -> Told
  ) async throws(SslPinningError) -> Told {
    let mayWait = state.withLock { state in
      guard state.judging < Self.mostJudged else { return false }
      state.judging += 1
      return true
    }
    guard mayWait else {
      throw .unreachable("its earlier answers are still being judged", url: url)
    }
    defer { state.withLock { $0.judging -= 1 } }
    return try await judge()
  }

  /// Judges a document, and puts in force what is believed of it.
  private func take(
    _ bytes: [UInt8], by road: TrustedRegistry.Road, _ origin: RegistryStatus.Origin,
    tag: DocumentTag?, url: String?
  ) async throws(SslPinningError) -> Visit {
    let clock = clocks.wall()
    let (isChange, (refusal, isNewer)) = try await put { [trust] base in
      let judged = base.update(with: bytes, under: trust, at: clock, by: road)
      let isNewer =
        judged.registry.stamp.version != base.stamp.version
        || judged.registry.stamp.payloadDigest != base.stamp.payloadDigest
      let isBelieved = judged.refusal == nil
      // Newer key sets are believed even from a document that is not.
      let isNews = isBelieved || judged.registry.knowsMore(than: base)
      let change =
        isNews
        ? Change(
          registry: judged.registry, origin: isBelieved ? origin : nil,
          tag: isBelieved ? tag : nil) : nil
      return (change, (judged.refusal, isNewer))
    }
    if let refusal {
      return Visit(result: .failure(SslPinningError(refusal, url: url)), isNews: true)
    }
    return Visit(result: .success(.init(isNewer: isNewer, isChange: isChange)), isNews: true)
  }

  /// Believes a document that came by another road, or says why not.
  ///
  /// - Returns: whether the pins changed.
  func accept(handed bytes: [UInt8]) async throws(SslPinningError) -> Bool {
    var document = bytes
    let part: StatementPart?
    do throws(RegistryError) {
      part = try StatementPart(parsing: bytes, limits: trust.limits)
    } catch { throw SslPinningError(error, url: nil) }
    if let part {
      if let refusal = try await refusal(of: part, by: .hand) {
        throw SslPinningError(refusal, url: nil)
      }
      guard let whole = await completed(part) else { throw .payloadMissing }
      document = whole
    }
    let visit = try await take(document, by: .hand, .handed, tag: nil, url: nil)
    if visit.isNews { await persist() }
    return try visit.result.get().isChange
  }

  /// Why a part is not believed, whatever its payload is. Asked before anybody is asked for that: who cannot
  /// sign must not have a client send requests. Newer key sets are believed all the same, and stored.
  private func refusal(
    of part: StatementPart, by road: TrustedRegistry.Road
  ) async throws(SslPinningError) -> RegistryError? {
    let clock = clocks.wall()
    let (refusal, hasLearned) = try await put { [trust] base in
      let judged = part.update(of: base, under: trust, at: clock, by: road)
      let hasLearned = judged.registry.knowsMore(than: base)
      return (hasLearned ? Change(registry: judged.registry) : nil, (judged.refusal, hasLearned))
    }.told
    // Before the payload is asked for: nobody may have it, and the process may end while it waits.
    if hasLearned { await persist() }
    return refusal
  }

  private func completed(_ part: StatementPart) async -> [UInt8]? {
    let asked = trusted
    let fetch: RegistrySource.Fetch =
      if case .live(let fetch) = source { fetch } else { { _ in .failure(.status(404)) } }
    let visitor = RegistryVisitor(
      asked: asked, tag: nil, bypassesCaches: false, time: asked.time(at: clocks.wall()),
      fetch: fetch)
    let places = [.own] + asked.mirrors.map(RegistrySource.Place.mirror)
    return await visitor.document(of: part, at: places, trust.limits)
  }
}

extension DocumentTag {
  /// What a server calls this part; `nil` for what cannot be sent back.
  init?(_ value: String, of part: RegistrySource.Part) {
    switch part {
    case .document: self.init(value)
    case .statement(let epoch): self.init(value, statementEpoch: epoch)
    case .payload: return nil
    }
  }

  var part: RegistrySource.Part { statementEpoch.map { .statement(epoch: $0) } ?? .document }
}
