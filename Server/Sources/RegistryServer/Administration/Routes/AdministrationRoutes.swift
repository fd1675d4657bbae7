import CanonicalJSON
import RegistryCore
import SslPinningRules

/// What the administration serves, and what it works with.
struct AdministrationRoutes: Sendable {
  let administration: RegistryAdministration
  let services: CoordinatorServices
  /// Whether this server watches.
  let isLeading: @Sendable () -> Bool
  let reports: any ReportsSource
  /// The server's version, for people.
  let version: String

  /// All of them, as `docs/openapi.yaml` describes them.
  var all: [AdministrationRoute] {
    [
      AdministrationRoute(.get, "/overview", overview),
      AdministrationRoute(.get, "/session", session),
      AdministrationRoute(.post, "/clock/adopt", adoptClock),
      AdministrationRoute(.get, "/documents", listDocuments),
      AdministrationRoute(.get, "/documents/{file}", document),
      AdministrationRoute(.get, "/documents/{file}/history", history),
      AdministrationRoute(.post, "/documents/{file}/endpoints", addEndpoint),
      AdministrationRoute(.get, "/documents/{file}/endpoints/{id}", endpoint),
      AdministrationRoute(.patch, "/documents/{file}/endpoints/{id}", changeEndpoint),
      AdministrationRoute(.delete, "/documents/{file}/endpoints/{id}", removeEndpoint),
      AdministrationRoute(.post, "/documents/{file}/endpoints/{id}/stage", stageKey),
      AdministrationRoute(.post, "/documents/{file}/endpoints/{id}/approve", approveKey),
      AdministrationRoute(.post, "/documents/{file}/endpoints/{id}/revoke", revokeKey),
      AdministrationRoute(.get, "/denials", denials),
      AdministrationRoute(.post, "/denials", denyKey),
      AdministrationRoute(.delete, "/denials/{pin}", allowKey),
      AdministrationRoute(.post, "/allowances", allowNamedKey),
      AdministrationRoute(.get, "/tombstones", tombstones),
      AdministrationRoute(.get, "/pending", pending),
      AdministrationRoute(.get, "/keysets", keySets),
      AdministrationRoute(.get, "/reports/summary", reportSummary),
    ]
  }

  /// Makes a change, and shows what was done, and what of it does not reach everybody.
  ///
  /// - Parameter warnings: what is odd about it, though it was asked for.
  func perform(
    _ command: AdministrationCommand, _ call: APIRequest, why: String,
    status: UInt32 = 200, _ members: JSONObject = [:], warnings: [String] = []
  ) async throws(APIError) -> APIResponse {
    do throws(AdministrationError) {
      let changes = try await administration.perform(
        command, by: call.administrator.name, why: why)
      var body = members
      body["changes"] = .array(changes.map { .object($0.shown) })
      body["warnings"] = .texts(warnings + (await copyFailures(of: command.file)))
      return APIResponse(status: status, body: body)
    } catch { throw APIError(error) }
  }

  /// Whoever reads the copies would go on with the document before.
  private func copyFailures(of file: String?) async -> [String] {
    await services.published.finishCopies()
    let files = file.map { [$0] } ?? administration.coordinators().map(\.file)
    return files.compactMap { file in
      services.health.reason(of: "files/" + file).map {
        "the copy of \(file) in publish.dir is as it was: \($0)"
      }
    }
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
