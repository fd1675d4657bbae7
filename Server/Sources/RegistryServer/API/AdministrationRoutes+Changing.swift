import CanonicalJSON
import HTTPServing
import RegistryCore
import SslPinningRules

extension AdministrationRoutes {
  func addEndpoint(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    let body = try call.body(["fqdn", "port", "address", "patterns", "interval", "approval", "why"])
    let (file, why) = (try call.path("file"), try body.reason("why") ?? "")
    let endpoint = try body.endpoint()
    try await refuseOtherPatterns(than: endpoint, body, call)
    var answer = try await perform(
      .add(file: file, endpoint), call, why: why, status: 201, ["id": .string(endpoint.id)])
    answer.headers = [
      (
        "Location",
        AdministrationRouter.prefix + "documents/\(file)/endpoints/"
          + PercentEncoding.encoded(segment: endpoint.id)
      )
    ]
    return answer
  }

  /// An endpoint of the configuration that was taken out comes back with the patterns that it is configured with.
  private func refuseOtherPatterns(
    than endpoint: WatchedEndpoint, _ body: BodyReader, _ call: APIRequest
  ) async throws(APIError) {
    let document = try await snapshot(call)
    let configured = document.settings.configuration.endpoints.first { $0.id == endpoint.id }
    guard let configured, document.state.tombstones[endpoint.id] != nil,
      try body.strings("patterns") != nil, Set(configured.patterns) != Set(endpoint.patterns)
    else { return }
    let patterns = configured.patterns.map(\.description).joined(separator: ", ")
    throw APIError(
      409, "\(endpoint.id) comes back for the hosts that it is configured for: \(patterns)",
      hint: "leave patterns out, or change them in the configuration")
  }

  func changeEndpoint(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    let body = try call.body(["interval", "approval", "paused", "why"])
    let (file, id) = (try call.path("file"), try call.path("id"))
    guard body.has("interval") || body.has("approval") || body.has("paused") else {
      throw .badRequest("nothing to change", hint: "name interval, approval or paused")
    }
    return try await perform(
      .change(
        file: file, id: id, interval: try body.interval(),
        approval: try body.choice("approval", ApprovalMode.self),
        isPaused: try body.boolean("paused")),
      call, why: try body.reason("why") ?? "")
  }

  func removeEndpoint(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    let why = try call.whyInQuery()
    return try await perform(
      .remove(file: try call.path("file"), id: try call.path("id")), call, why: why)
  }

  /// The same for callers that can only POST.
  func removeNamedEndpoint(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    let why = try call.body(["why"]).reason("why") ?? ""
    return try await perform(
      .remove(file: try call.path("file"), id: try call.path("id")), call, why: why)
  }

  func stageKey(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    let body = try call.body(StagedKey.members + ["note"])
    if case .stage = call.administrator.scope, !body.has("csr") {
      throw APIError(
        403, "with this token a key is announced by its certificate request alone",
        hint: "send csr: it proves that you have the key")
    }
    let (key, id) = (try StagedKey(body), try call.path("id"))
    let document = try await snapshot(call)
    let host = document.endpoints.first { $0.id == id }?.fqdn
    return try await perform(
      .stage(
        file: try call.path("file"), id: id, key.pin,
        by: call.administrator.scope), call,
      why: try body.reason("note") ?? "", ["pin": .string(key.pin.base64)],
      warnings: (host.map(key.warnings) ?? [])
        + document.deniedAbove(id, at: administration.clock.now()).map {
          "the denied key \($0.base64) stands above what the endpoint shows: clients refuse every connection there"
            + " until its servers have another CA"
        })
  }

  func approveKey(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    let body = try call.body(["pin", "issuer", "why"])
    let pin = try body.requiredPin()
    return try await perform(
      .approve(
        file: try call.path("file"), id: try call.path("id"), pin, issuer: try body.pin("issuer")),
      call,
      why: try body.reason("why") ?? "", ["pin": .string(pin.base64)])
  }

  func revokeKey(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    let body = try call.body(["pin", "why", "force"])
    let pin = try body.requiredPin()
    return try await perform(
      .revoke(
        file: try call.path("file"), id: try call.path("id"), pin,
        force: try body.boolean("force") ?? false),
      call, why: try body.reason("why") ?? "", ["pin": .string(pin.base64)])
  }

  func denyKey(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    let body = try call.body(["pin", "why", "force"])
    let pin = try body.requiredPin()
    guard let why = try body.reason("why") else { throw .missing("why") }
    guard !why.isEmpty else { throw .badRequest("why is empty", hint: "say why it is denied") }
    let isKnown = await administration.snapshots().contains { $0.knows(pin) }
    return try await perform(
      .deny(pin, force: try body.boolean("force") ?? false), call, why: why,
      ["pin": .string(pin.base64)],
      warnings: isKnown
        ? [] : ["no endpoint has shown \(pin.base64), as its key or above it: is it the right one?"]
    )
  }

  /// Says that the machine's clock is right. Of this server alone: others have clocks of their own.
  func adoptClock(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    guard let why = try call.body(["why"]).reason("why") else { throw .missing("why") }
    guard !why.isEmpty else { throw .badRequest("why is empty", hint: "say how you know") }
    guard let (time, before) = administration.clock.adopt() else {
      throw APIError(409, "the server goes by the machine's clock already")
    }
    services.log.event(
      .warn, "clock_vouched_for", ["who": call.administrator.name, "why": why])
    return APIResponse(body: ["time": .integer(time), "before": .integer(before)])
  }

  func allowKey(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    let why = try call.whyInQuery()
    let text = try call.path("pin")
    guard let pin = Base64URL.decode(text.utf8).flatMap(SPKIPin.init(digest:)) else {
      throw .badRequest(
        "the path has no pin", hint: "32 bytes in base64url, 43 characters without padding")
    }
    return try await perform(.allow(pin), call, why: why, ["pin": .string(pin.base64)])
  }

  /// The same for callers that can only POST.
  func allowNamedKey(
    _ call: APIRequest
  ) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    let body = try call.body(["pin", "why"])
    let pin = try body.requiredPin()
    return try await perform(
      .allow(pin), call, why: try body.reason("why") ?? "", ["pin": .string(pin.base64)])
  }
}
