import CanonicalJSON
import Pinning

/// What the administration serves, and what it works with.
struct AdministrationRoutes: Sendable {
  let administration: RegistryAdministration
  let services: KeeperServices
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
      AdministrationRoute(.get, "/tombstones", tombstones),
      AdministrationRoute(.get, "/pending", pending),
      AdministrationRoute(.get, "/keysets", keySets),
      AdministrationRoute(.get, "/reports/summary", reportSummary),
    ]
  }

  /// Makes a change, and shows what was done.
  func perform(
    _ command: AdministrationCommand, _ call: AdministrationCall, why: String,
    status: UInt32 = 200, _ members: JSONObject = [:]
  ) async throws(AdministrationRefusal) -> AdministrationAnswer {
    do throws(AdministrationError) {
      let changes = try await administration.perform(
        command, by: call.administrator.name, why: why)
      var body = members
      body["changes"] = .array(changes.map { .object($0.shown) })
      return AdministrationAnswer(status: status, body: body)
    } catch { throw AdministrationRefusal(error) }
  }

  /// A document, as the path names it.
  func snapshot(
    _ call: AdministrationCall
  ) async throws(AdministrationRefusal) -> DocumentSnapshot {
    let file = try call.path("file")
    do throws(AdministrationError) { return try await administration.snapshot(of: file) } catch {
      throw AdministrationRefusal(error)
    }
  }
}
