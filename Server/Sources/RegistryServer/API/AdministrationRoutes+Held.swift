import CanonicalJSON
import RegistryCore
import SslPinningRules

/// Held keys: what waits, and one decision about many.
///
/// - Whoever decides names what was read: a CA by its key, a reason, or both, until when, and how many. Keys that came
///   later are left out, and if there are more than were read, nothing is done. With the group's digest nobody slips
///   another key into a decision, and with its reasons none is decided about that waits for a graver one by now.
/// - An approval is about keys that their endpoints show. A denial is about all.
/// - An approval is made in each document as a whole or not at all, and the answer says which. A denial counts in every
///   document or, where one objects, in none.
extension AdministrationRoutes {
  /// What can be decided.
  private enum Decision: String, CaseIterable {
    case approve
    case deny
  }

  func pending(_ call: APIRequest) async throws(APIError) -> APIResponse {
    let query = try call.query(["offset", "limit", "issuer", "cause", "sort"])
    let order = try query.choice("sort", HeldKeysView.Order.self) ?? .waits
    let view = await heldKeys(try selection(query))
    return APIResponse(body: view.page(try query.page(), by: order))
  }

  func pendingGroups(_ call: APIRequest) async throws(APIError) -> APIResponse {
    let view = await heldKeys(try selection(try call.query(["issuer", "cause"])))
    return APIResponse(body: view.groups(at: administration.clock.now()))
  }

  func decideHeld(_ call: APIRequest) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    let body = try call.body([
      "decision", "issuer", "cause", "until", "keys", "digest", "reasons", "why", "force",
    ])
    guard let decision = try body.choice("decision", Decision.self) else {
      throw .missing("decision")
    }
    let selection = HeldSelection(
      issuer: try body.pin("issuer"),
      cause: try body.choice("cause", CandidateKey.HoldReason.self),
      until: try body.integer("until", in: 0...1 << 53 - 1))
    guard selection.issuer != nil || selection.cause != nil else {
      throw .badRequest("neither issuer nor cause", hint: "pending/groups has both")
    }
    guard selection.until != nil else { throw .missing("until") }
    guard let read = try body.integer("keys", in: 1...1_000_000) else { throw .missing("keys") }
    guard let why = try body.reason("why") else { throw .missing("why") }
    guard !why.isEmpty else { throw .badRequest("why is empty", hint: "say why it is decided so") }
    let force = try body.boolean("force") ?? false
    let digest = try body.string("digest")
    let known = try body.strings("reasons")
    let view = await heldKeys(selection)
    let all = view.keys()
    guard !all.isEmpty else { throw APIError(404, "no held key is meant any more") }
    guard all.count <= read else {
      throw APIError(
        409, "\(all.count) keys are meant, and you decide about \(read)",
        hint: "read pending/groups again")
    }
    if let known, let new = view.reasons.sorted().first(where: { !known.contains($0.rawValue) }) {
      throw APIError(
        409, "keys wait for another reason by now: \(new.explanation)",
        hint: "read pending/groups again")
    }
    let keys = view.keys(thatAreShown: decision == .approve)
    guard !keys.isEmpty else {
      throw APIError(
        409, "no endpoint shows such a key any more",
        hint: "approve each at its endpoint, if it is known to be good")
    }
    guard digest.map({ $0 == view.digest }) ?? true else {
      throw APIError(
        409, "other keys are meant than were read", hint: "read pending/groups again")
    }
    let made = HeldDecision(
      decision == .approve ? .approve : .deny(force: force), keys, under: selection.issuer)
    return try await decide(made, call, why: why)
  }

  private func decide(
    _ decision: HeldDecision, _ call: APIRequest, why: String
  ) async throws(APIError) -> APIResponse {
    let command = AdministrationCommand.decide(decision)
    let configured = await administration.configured(for: command)
    if let refusal = call.administrator.scope.refusal(of: command, at: nil) { throw refusal }
    if let proposed = try await propose(command, call, why: why, [:], []) { return proposed }
    let outcomes: [RegistryAdministration.DocumentOutcome]
    do throws(AdministrationError) {
      outcomes = try await administration.decide(
        decision, by: call.who, why: why, judgedBy: judgement(of: command, call, configured)
      ) {
        note($0, of: command, call)
      }
    } catch { throw APIError(error) }
    let changes = outcomes.flatMap(\.changes)
    return APIResponse(body: [
      "keys": .count(decision.keys.count), "changes": .array(changes.map { .object($0.shown) }),
      "documents": .array(
        outcomes.map {
          .object([
            "file": .string($0.file), "changes": .count($0.changes.count),
            "error": .nullable($0.refusal?.description),
          ])
        }),
      "warnings": .texts(
        outcomes.compactMap { outcome in
          outcome.refusal.map { "\(outcome.file): nothing was decided: \($0)" }
        } + (await copyFailures(of: nil))),
    ])
  }

  private func heldKeys(_ selection: HeldSelection) async -> HeldKeysView {
    HeldKeysView(await administration.snapshots(), selection, await reports.picture())
  }

  private func selection(_ query: QueryReader) throws(APIError) -> HeldSelection {
    var issuer: SPKIPin?
    if let text = try query.text("issuer", atMost: 44) {
      do throws(PinSyntaxError) { issuer = try SPKIPin(base64: text) } catch {
        throw .badRequest("issuer: \(error)")
      }
    }
    return HeldSelection(
      issuer: issuer, cause: try query.choice("cause", CandidateKey.HoldReason.self))
  }
}

extension RegistryAdministration {
  /// What became of a decision in one document.
  struct DocumentOutcome: Sendable {
    let file: String
    var changes: [HistoryEntry] = []
    /// Why nothing of it was made there.
    var refusal: AdministrationError?
  }

  /// Makes one decision about many keys.
  ///
  /// - Parameters:
  ///   - judgement: by what it was judged, to be looked at again when its turn has come.
  ///   - note: is told of what is made in each document at once.
  /// - Throws: ``AdministrationError``: of a denial whatever stands against it; of an approval the first reason, if it
  ///   was made in no document.
  func decide(
    _ decision: HeldDecision, by who: String, why: String,
    judgedBy judgement: ChangeJudgement,
    noting note: ([HistoryEntry]) -> Void
  ) async throws(AdministrationError) -> [DocumentOutcome] {
    let outcomes = try await performEverywhere(
      .decide(decision), by: who, why: why, judgedBy: judgement, noting: note)
    let refusals = outcomes.compactMap(\.refusal)
    if let first = refusals.first,
      decision.verdict != .approve || refusals.count == outcomes.count
    {
      throw first
    }
    return outcomes
  }
}
