import CanonicalJSON
import Foundation
import RegistryCore
import SslPinningRules

extension AdministrationRoutes {
  func overview(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    let limit = try call.query(["limit"]).limit()
    let overview = ServerOverview(
      documents: await administration.snapshots(), version: version,
      clock: administration.clock.standing, isLeader: isLeading(),
      readiness: services.health.readiness(of: services.published))
    return APIResponse(body: overview.json(limit: limit))
  }

  func session(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    return APIResponse(body: [
      "name": .string(call.administrator.name), "issued": .integer(call.administrator.issued),
      "expires": .integer(call.administrator.expires),
    ])
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
    let query = try call.query(["offset", "limit", "q", "health"])
    let range = try query.page()
    let text = try query.text("q", atMost: 253)
    let health = try query.choice("health", EndpointHealth.self)
    let view = DocumentView(try await snapshot(call))
    return APIResponse(body: view.detail(range, text: text, health: health))
  }

  func endpoint(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    let id = try call.path("id")
    guard let view = DocumentView(try await snapshot(call)).endpoint(id) else {
      throw APIError(.noSuchEndpoint(id))
    }
    return APIResponse(body: view.detail)
  }

  func history(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    let query = try call.query(["before", "limit"])
    let (before, limit) = (try query.number("before", from: 1), try query.limit())
    let file = try call.path("file")
    do throws(AdministrationError) {
      let entries = try await administration.history(of: file, before: before, limit: limit)
      return APIResponse(body: HistoryEntry.page(entries))
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

  func pending(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    let range = try call.query(["offset", "limit"]).page()
    let lists = DecisionLists(documents: await administration.snapshots())
    return APIResponse(body: lists.pending(range))
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
