import CanonicalJSON
import RegistryCore
import RegistryStores
import SslPinningPlatform
import SslPinningRules

/// Changes that need two people (`ui.second_person`).
///
/// - What one person asks for is a ``Proposal``: checked as the change itself would be, stored, and told in the log.
///   Nothing is changed by it.
/// - Another person confirms it. Then the request is heard again, under all rules, and done if what it is about is as it
///   was when it was proposed.
/// - It is marked before it is carried out, so that it is carried out once, and taken out when it is made: what fails, or
///   is cut off by the end of the server, waits again.
extension AdministrationRoutes {
  /// Proposes a change that needs a second person.
  ///
  /// - Returns: what to answer; `nil` if the change is to be made now.
  func propose(
    _ command: AdministrationCommand, _ call: APIRequest, why: String, _ members: JSONObject,
    _ warnings: [String]
  ) async throws(APIError) -> APIResponse? {
    guard let proposals, needsSecondPerson(command, call) else { return nil }
    let hosts: [String]
    do throws(AdministrationError) {
      hosts = try await administration.rehearse(command, by: call.who, why: why)
    } catch { throw APIError(error) }
    let basis = await basis(of: command, hosts, by: call.administrator)
    if let confirmed = call.confirmed {
      guard confirmed.basis == basis else {
        throw APIError(
          409,
          "what it is about, or the key of all tokens, is not as it was when \(confirmed.who) proposed it",
          hint: "look at the key and its hosts, take this back, and propose it anew")
      }
      return nil
    }
    let warnings = warnings + Self.consequences(of: command, hosts)
    let (kind, now) = (command.kind.what, administration.clock.now())
    let (endpoint, pin) = command.subject
    let proposal = try await proposals.add(
      Proposal(
        route: call.route, path: call.path, query: call.query.map { [$0.name, $0.value] },
        body: try call.canonicalBody(), what: kind, file: command.file, endpoint: endpoint,
        pin: pin,
        why: why, warnings: warnings, basis: basis, who: call.administrator.name,
        token: call.administrator.tokenID, at: now, expires: now + Proposal.life))
    proposals.tell(.warn, "change_proposed", proposal)
    var body = members
    body["changes"] = .array([])
    let meanwhile =
      if case .deny = command {
        ["the key is not denied yet: revoke takes it off a list at once, and needs one person"]
      } else { [String]() }
    body["warnings"] = .texts(warnings + meanwhile)
    body["proposal"] = proposal.shown
    return APIResponse(status: 202, body: body)
  }

  /// What its request does not say: whom it locks out, and which keys a decision about many is about.
  private static func consequences(
    of command: AdministrationCommand, _ hosts: [String]
  ) -> [String] {
    func list(_ names: [String]) -> String {
      names.prefix(50).joined(separator: ", ")
        + (names.count > 50 ? ", and \(names.count - 50) more" : "")
    }
    var told: [String] = []
    if !hosts.isEmpty {
      told.append("no key that their servers show would be left: \(list(hosts))")
    }
    if case .decide(let decision) = command {
      told.append(
        "it is about "
          + list(decision.keys.map { "\($0.pin.base64) at \($0.endpoint) in \($0.file)" }))
    }
    return told
  }

  private func needsSecondPerson(_ command: AdministrationCommand, _ call: APIRequest) -> Bool {
    guard call.confirmed != nil || needsSecondPerson() else { return false }
    // A token that is for announcing alone announces: its bearer proves to have the key.
    if case .stage = call.administrator.scope { return false }
    return command.kind.needsSecondPerson
  }

  /// What a change is about, as a hash: what a person who decides about it has seen.
  ///
  /// - Parameters:
  ///   - hosts: which hosts it would leave without a key, or lock out.
  ///   - administrator: whose token asks for it. A change of the key that tokens are made with ends what they proposed, too:
  ///     whoever had that key could propose in anybody's name.
  private func basis(
    of command: AdministrationCommand, _ hosts: [String], by administrator: Administrator
  ) async -> String {
    var facts = [administrator.keyID] + hosts
    let documents = await administration.snapshots()
    /// Whom an endpoint and what is left of it speak for, which an edit of the configuration changes; whoever else has a
    /// key, and which others.
    func spoken(_ file: String, _ id: String, havers pin: SPKIPin? = nil) -> [String] {
      guard let document = documents.first(where: { $0.file == file }) else { return [] }
      return (document.endpoints + document.state.orphans).filter { endpoint in
        let keys = document.state.keysByEndpoint[endpoint.id]?.keys ?? []
        return endpoint.place == id || endpoint.id == id || keys.contains { $0.pin == pin }
      }.flatMap { endpoint in
        let keys = pin == nil ? nil : document.state.keysByEndpoint[endpoint.id]?.keys
        return ["\(endpoint.id) speaks for \(endpoint.patterns.map(\.description))"]
          + (keys ?? []).map { "\(endpoint.id) has \($0.pin.base64)" }
      }.sorted()
    }
    func evidence(_ file: String, _ id: String, _ pin: SPKIPin) -> [String] {
      let keys = documents.first { $0.file == file }?.state.keysByEndpoint[id]
      let candidate = keys?.candidates[pin]
      return (candidate?.chain.path.map(\.pin.base64) ?? [])
        + (candidate?.reasons.map(\.rawValue) ?? [])
        + ["published"] + (keys?.keys.map(\.pin.base64).sorted() ?? [])
    }
    switch command {
    case .approve(let file, let id, let pin):
      facts += evidence(file, id, pin) + spoken(file, id)
    case .stage(let file, let id, _, _): facts += spoken(file, id)
    case .change(let file, let id, _, _, _):
      facts += spoken(file, id)
      // Another approval decides about what waits, too.
      let held = documents.first { $0.file == file }?.state.keysByEndpoint[id]?.held ?? [:]
      facts += held.map { "\($0.base64) waits for \($1.reasons.map(\.rawValue))" }.sorted()
    case .setTerms(let file, let id, let change, _):
      let endpoints = documents.first { $0.file == file }?.endpoints
      let before = endpoints?.first { $0.id == id }?.terms
      facts += before.map { ["\(change.completed(by: $0))"] } ?? []
      facts += spoken(file, id) + (before.map { ["\($0)"] } ?? [])
    case .revoke(let file, let id, let pin, _): facts += spoken(file, id, havers: pin)
    case .allow(let pin):
      let denials = documents.flatMap { $0.state.denied }.filter { $0.pin == pin }
      facts += Set(denials.map { "\($0.at) \($0.by) \($0.why)" }).sorted()
    case .decide(let decision):
      for key in decision.keys {
        facts.append("\(key.file) \(key.endpoint) \(key.pin.base64)")
        facts += evidence(key.file, key.endpoint, key.pin) + spoken(key.file, key.endpoint)
      }
    default: break
    }
    return Base64URL.encode(Digest.sha256(JSONValue.texts(facts).canonicalBytes))
  }

  func listProposals(_ call: APIRequest) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    do throws(StoreError) {
      let open = try await proposals?.list(at: administration.clock.now()) ?? []
      return APIResponse(body: [
        "secondPerson": .bool(needsSecondPerson()), "proposals": .array(open.map(\.shown)),
      ])
    } catch { throw APIError(503, describing: error) }
  }

  func confirmProposal(_ call: APIRequest) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    _ = try call.body([])
    let (id, now) = (try call.path("id"), administration.clock.now())
    guard let proposals else { throw APIError(404, "no such proposal") }
    let proposal = try await proposals.begin(id, at: now) { proposal throws(APIError) in
      if let refusal = proposal.refusal(of: call.administrator) { throw refusal }
      guard !tokens.isRevoked(proposal.token) else {
        throw APIError(403, "the token that proposed it was revoked", hint: "take it back")
      }
    }
    let answer = try await proposals.carryOut(proposal, clock: administration.clock) {
      () async throws(APIError) -> APIResponse in
      guard let route = all.first(where: { $0.name == proposal.route }) else {
        throw APIError(409, "this server does not know the request", hint: "propose it anew")
      }
      let query = proposal.query.filter { $0.count == 2 }.map { (name: $0[0], value: $0[1]) }
      return try await route.answer(
        APIRequest(
          administrator: call.administrator, peer: call.peer, path: proposal.path, query: query,
          body: [UInt8](proposal.body.utf8), route: proposal.route, confirmed: proposal))
    }
    proposals.tell(.info, "proposal_confirmed", proposal)
    return APIResponse(body: answer.body)
  }

  /// By whoever proposed it, who thought better of it, or by another person, who says no.
  func withdrawProposal(_ call: APIRequest) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    _ = try call.body([])
    guard let proposals else { throw APIError(404, "no such proposal") }
    let proposal = try await proposals.withdraw(
      try call.path("id"), at: administration.clock.now())
    services.log.event(
      .warn, "proposal_withdrawn",
      [
        "id": proposal.id, "what": proposal.what, "who": call.administrator.name,
        "token": call.administrator.tokenID, "proposed_by": proposal.who,
      ])
    return APIResponse(body: ["proposal": proposal.shown])
  }
}
