import CanonicalJSON
import RegistryCore
import RegistryStores
import SslPinningPlatform
import SslPinningRules

/// Changes that need two people (`ui.second_person`).
///
/// - What one person asks for is a ``Proposal``: checked as the change itself would be, stored, and told in the log.
///   Nothing is changed by it.
/// - Another person confirms it. Then the request is heard again, under all rules, and done if what it is about is, when its turn
///   has come, as it was when it was proposed.
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
    // What is confirmed is judged where it is made.
    guard let proposals, call.confirmed == nil, needsSecondPerson(), isForTwo(command, call) else {
      return nil
    }
    let documents = await administration.documents()
    let request = DocumentState.Request(who: call.who, at: administration.clock.now(), why: why)
    do throws(AdministrationError) {
      try RegistryAdministration.rehearse(command, in: documents, request)
    } catch { throw APIError(error) }
    let hosts = command.hostsLockedOut(in: documents, request)
    let basis = ChangeJudgement.Confirmed.hash(
      command.circumstances(in: documents, request), call.administrator.keyID)
    let warnings = warnings + Self.consequences(of: command, hosts, in: documents)
    let (kind, now) = (command.kind.what, request.at)
    let (endpoint, pin) = command.subject
    let proposal = try await proposals.add(
      Proposal(
        route: call.route, path: call.path, query: call.query.map { [$0.name, $0.value] },
        body: try call.canonicalBody(), what: kind, file: command.file, endpoint: endpoint,
        pin: pin,
        why: why, warnings: warnings, hosts: hosts.map(ChangeJudgement.Confirmed.mark),
        basis: basis, who: call.administrator.name,
        token: call.administrator.tokenID, at: now,
        expires: now + Proposal.life))
    proposals.tell(.warn, "change_proposed", proposal)
    var body = members
    body["changes"] = .array([])
    let standing = await standings(of: [proposal])[proposal.id]
    body["warnings"] = .texts(
      warnings + (standing.map { [$0.text] } ?? [])
        + Self.meanwhile(command, in: documents, request))
    body["proposal"] = proposal.shown(with: standing)
    return APIResponse(status: 202, body: body)
  }

  /// What may be otherwise since an approval of one key was proposed, by the proposal's id: the key may be gone, and whoever
  /// confirms it decides by what is so now.
  private func standings(
    of proposals: [Proposal]
  ) async -> [String: DocumentSnapshot.Standing] {
    let approvals = proposals.filter { $0.what == "approve" }
    guard !approvals.isEmpty else { return [:] }
    let documents = await administration.snapshots()
    var found: [String: DocumentSnapshot.Standing] = [:]
    for proposal in approvals {
      guard let id = proposal.endpoint, let pin = proposal.pin else { continue }
      let document = documents.first { $0.file == proposal.file }
      found[proposal.id] = document?.standing(of: pin, at: id)
    }
    return found
  }

  /// What one person can do about a key until its denial is confirmed. To revoke it, too, takes two while servers show no other
  /// listed key, or one person could cut apps off. A denial that is not forced would be refused for the same reason.
  private static func meanwhile(
    _ command: AdministrationCommand, in documents: [JudgedDocument],
    _ request: DocumentState.Request
  ) -> [String] {
    guard case .deny(let pin, _) = command else { return [] }
    guard documents.contains(where: { !$0.listing(pin).isEmpty }) else {
      return ["the key is not denied yet"]
    }
    let bare =
      command.unforced.map {
        RegistryAdministration.objections(to: $0, in: documents, request).bare
      } ?? []
    guard bare.isEmpty else {
      return [
        "the key is not denied yet, and to revoke it needs a second person, too: no other listed key"
          + " would be left that is shown for \(list(bare.sorted()))"
      ]
    }
    return [
      "the key is not denied yet: revoke takes it off a list at once, and needs one person; it is"
        + " listed again if it is shown again under a known CA: only a denial lasts"
    ]
  }

  private static func list(_ names: [String]) -> String {
    names.prefix(50).joined(separator: ", ")
      + (names.count > 50 ? ", and \(names.count - 50) more" : "")
  }

  /// What its request does not say: whom it locks out, for whom an endpoint would speak, and which keys a decision about many is
  /// about.
  private static func consequences(
    of command: AdministrationCommand, _ hosts: [String], in documents: [JudgedDocument]
  ) -> [String] {
    var told: [String] = []
    if !hosts.isEmpty {
      let cause =
        if case .setTerms = command { "no CA above their servers' keys would be asked for" } else {
          "no key that their servers show would be left"
        }
      told.append("\(cause): \(list(hosts))")
    }
    switch command {
    case .add(let file, let endpoint):
      let document = documents.first { $0.file == file }
      guard let added = document?.adding(endpoint) else { break }
      told.append("its keys would count for \(list(added.patterns.map(\.description)))")
      if documents.allSatisfy({ $0.listing(added).isEmpty }) {
        told.append(
          "no other endpoint has a key for these hosts: what it shows first is published, under whichever CA"
        )
      }
    case .decide(let decision):
      told.append(
        "it is about "
          + list(decision.keys.map { "\($0.pin.base64) at \($0.endpoint) in \($0.file)" }))
    default: break
    }
    return told
  }

  /// Whether a change needs two people, if any does.
  private func isForTwo(_ command: AdministrationCommand, _ call: APIRequest) -> Bool {
    // A token that is for announcing alone announces: its bearer proves to have the key.
    if case .stage = call.administrator.scope { return false }
    return command.kind.needsSecondPerson
  }

  /// By what a change is judged, to be looked at again when its turn has come.
  func judgement(
    of command: AdministrationCommand, _ call: APIRequest,
    _ configured: [String: [WatchedEndpoint]]
  ) -> ChangeJudgement {
    let (keyID, proposal) = (call.administrator.keyID, call.confirmed)
    let asking = [call.administrator.tokenID, proposal?.token].compactMap { $0 }
    let isAlone = proposals != nil && proposal == nil && isForTwo(command, call)
    return ChangeJudgement(
      configured: configured,
      confirmed: proposal.map {
        ChangeJudgement.Confirmed(
          basis: $0.basis, hosts: Set($0.hosts), keyID: keyID, who: $0.who)
      }
    ) { file throws(AdministrationError) in
      guard tokenKeyID() ?? keyID == keyID, !asking.contains(where: { tokens.isRevoked($0) }) else {
        throw AdministrationError.tokenEnded
      }
      // An edit asks for a second person meanwhile.
      guard !isAlone || !needsSecondPerson() else {
        throw AdministrationError.editedMeanwhile(file)
      }
    }
  }

  func listProposals(_ call: APIRequest) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    do throws(StoreError) {
      let open = try await proposals?.list(at: administration.clock.now()) ?? []
      let standings = await standings(of: open)
      return APIResponse(body: [
        "secondPerson": .bool(needsSecondPerson()),
        "proposals": .array(open.map { $0.shown(with: standings[$0.id]) }),
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
    let (answer, standing) = try await proposals.carryOut(proposal, clock: administration.clock) {
      () async throws(APIError) -> (APIResponse, DocumentSnapshot.Standing?) in
      // Before it is made: then the key is a published one.
      let standing = await standings(of: [proposal])[proposal.id]
      guard let route = all.first(where: { $0.name == proposal.route }) else {
        throw APIError(409, "this server does not know the request", hint: "propose it anew")
      }
      let query = proposal.query.filter { $0.count == 2 }.map { (name: $0[0], value: $0[1]) }
      let answer = try await route.answer(
        APIRequest(
          administrator: call.administrator, peer: call.peer, path: proposal.path, query: query,
          body: [UInt8](proposal.body.utf8), route: proposal.route, confirmed: proposal))
      return (answer, standing)
    }
    proposals.tell(.info, "proposal_confirmed", proposal)
    var body = answer.body
    if let standing, !standing.isShown {
      body["warnings"] = .array((body["warnings"]?.arrayValue ?? []) + [.string(standing.text)])
    }
    return APIResponse(body: body)
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
    return APIResponse(body: ["proposal": proposal.shown()])
  }
}
