import CanonicalJSON
import Foundation
import RegistryCore
import SslPinningRules

/// What the administration serves, and what it works with.
struct AdministrationRoutes: Sendable {
  let administration: RegistryAdministration
  let services: CoordinatorServices
  /// Whether this server watches.
  let isLeading: @Sendable () -> Bool
  let reports: any ReportsSource
  var tokens = SeenTokens()
  /// What waits for a second person; `nil` if nothing ever does.
  var proposals: ProposalBook?
  /// Whether what one person decides about keys needs another one.
  var needsSecondPerson: @Sendable () -> Bool = { false }
  /// Names the key that counts by which tokens are made; `nil` if any does.
  var tokenKeyID: @Sendable () -> String? = { nil }
  /// The server's version, for people.
  let version: String

  /// All of them, as `docs/openapi.yaml` describes them.
  var all: [AdministrationRoute] {
    [
      AdministrationRoute(.get, "/overview", for: .reading, overview),
      AdministrationRoute(.get, "/session", for: .anything, session),
      AdministrationRoute(.post, "/clock/adopt", for: .deciding, adoptClock),
      AdministrationRoute(.get, "/documents", for: .reading, listDocuments),
      AdministrationRoute(.get, "/documents/{file}", for: .reading, document),
      AdministrationRoute(.get, "/documents/{file}/history", for: .reading, history),
      AdministrationRoute(.post, "/documents/{file}/endpoints", for: .deciding, addEndpoint),
      AdministrationRoute(.get, "/documents/{file}/endpoints/{id}", for: .reading, endpoint),
      AdministrationRoute(
        .patch, "/documents/{file}/endpoints/{id}", for: .deciding, changeEndpoint),
      AdministrationRoute(
        .delete, "/documents/{file}/endpoints/{id}", for: .deciding, removeEndpoint),
      AdministrationRoute(
        .post, "/documents/{file}/endpoints/{id}/change", for: .deciding, changeEndpoint),
      AdministrationRoute(
        .post, "/documents/{file}/endpoints/{id}/terms", for: .deciding, setTerms),
      AdministrationRoute(
        .post, "/documents/{file}/endpoints/{id}/remove", for: .deciding, removeNamedEndpoint),
      AdministrationRoute(.post, "/documents/{file}/endpoints/{id}/stage", for: .staging, stageKey),
      AdministrationRoute(
        .post, "/documents/{file}/endpoints/{id}/approve", for: .deciding, approveKey),
      AdministrationRoute(
        .post, "/documents/{file}/endpoints/{id}/revoke", for: .deciding, revokeKey),
      AdministrationRoute(.get, "/denials", for: .reading, denials),
      AdministrationRoute(.post, "/denials", for: .deciding, denyKey),
      AdministrationRoute(.delete, "/denials/{pin}", for: .deciding, allowKey),
      AdministrationRoute(.post, "/allowances", for: .deciding, allowNamedKey),
      AdministrationRoute(.get, "/tombstones", for: .reading, tombstones),
      AdministrationRoute(.get, "/pending", for: .reading, pending),
      AdministrationRoute(.get, "/pending/groups", for: .reading, pendingGroups),
      AdministrationRoute(.post, "/pending/decide", for: .deciding, decideHeld),
      AdministrationRoute(.get, "/endpoints", for: .reading, searchEndpoints),
      AdministrationRoute(.get, "/endings", for: .reading, listEndings),
      AdministrationRoute(.get, "/proposals", for: .reading, listProposals),
      AdministrationRoute(.post, "/proposals/{id}/confirm", for: .deciding, confirmProposal),
      AdministrationRoute(.post, "/proposals/{id}/withdraw", for: .deciding, withdrawProposal),
      AdministrationRoute(.get, "/keysets", for: .reading, keySets),
      AdministrationRoute(.get, "/tokens", for: .deciding, listTokens),
      AdministrationRoute(.get, "/reports/summary", for: .reading, reportSummary),
    ]
  }

  /// Makes a change, and shows what was done, and what of it does not reach everybody.
  ///
  /// - Parameter warnings: what is odd about it, though it was asked for.
  func perform(
    _ command: AdministrationCommand, _ call: APIRequest, why: String,
    status: UInt32 = 200, _ members: JSONObject = [:], warnings: [String] = []
  ) async throws(APIError) -> APIResponse {
    let configured = await administration.configured(for: command)
    let endpoint = await endpoint(of: command)
    if let refusal = call.administrator.scope.refusal(of: command, at: endpoint) { throw refusal }
    if let proposed = try await propose(command, call, why: why, members, warnings) {
      return proposed
    }
    do throws(AdministrationError) {
      let changes = try await administration.perform(
        command, by: call.who, why: why, judgedBy: judgement(of: command, call, configured)
      ) {
        note($0, of: command, call)
      }
      var body = members
      body["changes"] = .array(changes.map { .object($0.shown) })
      body["warnings"] = .texts(
        warnings + (await stillListed(after: command)) + (await copyFailures(of: command.file)))
      return APIResponse(status: status, body: body)
    } catch {
      guard case .editedMeanwhile = error else { throw APIError(error) }
    }
    // It waited for an edit of the configuration, and is judged by what that says: also whether it needs a second person.
    return try await perform(
      command, call, why: why, status: status, members, warnings: warnings)
  }

  /// Whose lists go on having a key for hosts that it was revoked for.
  private func stillListed(after command: AdministrationCommand) async -> [String] {
    guard case .revoke(let file, let id, let pin, _) = command else { return [] }
    let documents = await administration.documents()
    let patterns = documents.filter { $0.file == file }.flatMap { $0.patterns(of: id) }
    return documents.flatMap { document in
      document.listing(pin).compactMap { other -> String? in
        let hosts = other.patterns.filter { patterns.contains(where: $0.overlaps) }
        guard !hosts.isEmpty else { return nil }
        return "the key is still listed for \(hosts.map(\.description).joined(separator: ", "))"
          + " by \(other.id) in \(document.file); hint: revoke it there, too"
      }
    }
  }

  /// The endpoint that a key is staged at.
  private func endpoint(of command: AdministrationCommand) async -> WatchedEndpoint? {
    guard case .stage(let file, let id, _, _) = command else { return nil }
    return try? await administration.snapshot(of: file).endpoints.first { $0.id == id }
  }

  /// The log has who changed what, from where: the history is in the store, which somebody may put back.
  func note(
    _ changes: [HistoryEntry], of command: AdministrationCommand, _ call: APIRequest
  ) {
    for change in changes {
      services.log.event(
        .info, "administration_changed",
        fields: [
          ("what", change.event), ("file", command.file ?? ""), ("endpoint", change.endpoint),
          ("pin", change.pin?.base64 ?? ""), ("who", call.who),
          ("token", call.administrator.tokenID), ("proposed_by", call.confirmed?.token ?? ""),
          ("peer", call.peer),
        ].filter { !$0.1.isEmpty })
    }
  }

  /// Whoever reads the copies would go on with the document before. So would a server that starts on an older store, if the mark
  /// is behind.
  func copyFailures(of file: String?) async -> [String] {
    let late = await services.published.finishCopies()
    let files = file.map { [$0] } ?? administration.coordinators().map(\.file)
    let failures = files.compactMap { file -> String? in
      if let reason = services.health.reason(of: "files/" + file) {
        return "the copy of \(file) in publish.dir is as it was: \(reason)"
      }
      guard late.contains(file) else { return nil }
      return "the copy of \(file) in publish.dir is late: it was not written within"
        + " \(StaticFiles.patience) seconds"
    }
    return failures + (services.health.unwrittenMark.map { [$0.message] } ?? [])
  }

  /// A document, as the path names it.
  func snapshot(
    _ call: APIRequest
  ) async throws(APIError) -> DocumentSnapshot {
    let file = try call.path("file")
    do throws(AdministrationError) { return try await administration.snapshot(of: file) } catch {
      throw APIError(error)
    }
  }
}

extension AdministrationRoutes {
  func overview(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    let limit = try call.query(["limit"]).limit()
    var overview = ServerOverview(
      documents: await administration.snapshots(), version: version,
      clock: administration.clock.standing, isLeader: isLeading(),
      readiness: services.health.readiness(of: services.published),
      leaderAbsence: services.health.leaderAbsence,
      awaitedStore: services.health.awaitedStore,
      silences: services.metrics?.vantages.silences ?? [:],
      left: services.health.leftDocuments(at: administration.clock.now()).map(\.alert),
      copies: services.health.unwrittenCopies, listenerEnd: services.health.listenerEnd)
    if let mark = services.health.unwrittenMark { overview.copies.append(mark) }
    var body = overview.json(limit: limit)
    body["reports"] =
      overview.awaitedStore == nil
      ? await reports.picture().shown(isCollecting: reports.isCollecting) : .null
    return APIResponse(body: body)
  }

  func session(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    return APIResponse(body: [
      "name": .string(call.administrator.name), "issued": .integer(call.administrator.issued),
      "expires": .integer(call.administrator.expires),
      "scope": .string("\(call.administrator.scope)"),
      "token": .string(call.administrator.tokenID),
    ])
  }

  func listTokens(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    return APIResponse(body: tokens.list())
  }

  func listDocuments(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    let views = await administration.snapshots().map(DocumentView.init)
    return APIResponse(body: [
      "documents": .array(views.map { .object($0.summary) })
    ])
  }

  func document(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    let query = try call.query(["offset", "limit"] + EndpointQuery.names)
    let (range, endpoints) = (try query.page(), try EndpointQuery(query))
    let view = DocumentView(try await snapshot(call))
    return APIResponse(body: view.detail(range, endpoints))
  }

  func endpoint(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    let id = try call.path("id")
    guard let view = DocumentView(try await snapshot(call)).endpoint(id) else {
      throw APIError(.noSuchEndpoint(id))
    }
    return APIResponse(body: view.detail(await reports.picture()))
  }

  func history(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    let query = try call.query(["before", "limit", "endpoint"])
    let (before, limit) = (try query.number("before", from: 1), try query.limit())
    let (file, endpoint) = (try call.path("file"), try query.text("endpoint", atMost: 400))
    do throws(AdministrationError) {
      let page = try await administration.history(
        of: file, before: before, limit: limit, about: endpoint)
      return APIResponse(body: HistoryEntry.page(page.entries, next: page.next))
    } catch { throw APIError(error) }
  }

  func denials(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    let lists = DecisionLists(documents: await administration.snapshots())
    return APIResponse(body: lists.denials)
  }

  func tombstones(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    let lists = DecisionLists(documents: await administration.snapshots())
    return APIResponse(body: lists.tombstones)
  }

  func keySets(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    let documents = await administration.snapshots().map { ($0.file, $0.published?.bytes ?? []) }
    let view = KeySetsView(signer: services.signer, now: administration.clock.now())
    let body = await withCheckedContinuation { continuation in
      DispatchQueue.global().async { continuation.resume(returning: view.json(of: documents)) }
    }
    return APIResponse(body: body)
  }

  func reportSummary(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    let query = try call.query(["since", "until", "bucket", "host"])
    let until = try query.number("until", from: 0) ?? administration.clock.now() + 1
    let since = try query.number("since", from: 0) ?? max(0, until - 86_400)
    guard since < until else { throw .badRequest("since is not before until") }
    let bucket = try query.choice("bucket", ReportSummary.Bucket.self) ?? .hour
    var host: HostName?
    if let text = try query.text("host", atMost: 253) {
      do throws(HostNameError) { host = try HostName(text) } catch {
        throw APIError(400, describing: "host: \(error)")
      }
    }
    var body = await reports.summary()
      .json(since: since, until: until, bucket: bucket, host: host)
    body["collecting"] = .bool(reports.isCollecting)
    return APIResponse(body: body)
  }
}
