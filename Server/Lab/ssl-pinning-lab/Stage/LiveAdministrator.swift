import CanonicalJSON
import Foundation
import RegistryServer
import SslPinningRules
import TLSTools

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// An administrator of a registry server, who has a token and uses HTTP only.
struct LiveAdministrator: Sendable {
  /// The result of a request.
  struct Answer: Sendable {
    let status: Int
    let body: JSONObject
  }

  /// `http://127.0.0.1:port`.
  let server: String
  /// `nil` sends none.
  let token: String?
  /// The id of a host's endpoint.
  var endpointID: @Sendable (String) -> String = LiveRegistry.endpoint

  /// The forms in which a key can be announced.
  enum Announcement: String, CaseIterable {
    case certificate, key, csr
  }

  /// Publishes a key ahead of its use.
  func stage(
    _ identity: ServerIdentity, at host: String, as announcement: Announcement = .certificate
  ) async throws {
    let pem: String =
      switch announcement {
      case .certificate: identity.leaf.pem
      case .key: try identity.key.publicKeyPEM
      case .csr: try await CertificateSigningRequest.pem(for: identity.key, host)
      }
    try await must(
      "POST", endpoint(host, "/stage"),
      [announcement.rawValue: .string(pem), "note": .string("a rotation")])
  }

  /// Approves a held key.
  func approve(_ identity: ServerIdentity, at host: String) async throws {
    try await must(
      "POST", endpoint(host, "/approve"),
      ["pin": .string(try identity.pin.base64), "why": .string("confirmed by telephone")])
  }

  /// Denies a key, even if a host is left without one.
  func deny(_ pin: SPKIPin) async throws {
    try await must(
      "POST", "/denials",
      ["pin": .string(pin.base64), "why": .string("stolen"), "force": .bool(true)])
  }

  /// Pauses or resumes the probes of an endpoint.
  func pause(_ isPaused: Bool, _ host: String) async throws {
    try await must("PATCH", endpoint(host), ["paused": .bool(isPaused)])
  }

  /// Watches one more endpoint.
  func add(_ host: String) async throws {
    try await must(
      "POST", "/documents/\(LiveRegistry.file)/endpoints",
      ["fqdn": .string(host), "patterns": .array([.string(host)])])
  }

  /// Removes an endpoint; its hosts are then listed as removed.
  func remove(_ host: String) async throws { try await must("DELETE", endpoint(host)) }

  /// The keys that an endpoint showed and that are not published yet.
  func candidates(at host: String) async throws -> [String] {
    let candidates = try await must("GET", endpoint(host))["candidates"]?.arrayValue ?? []
    return candidates.compactMap { $0.objectValue?["pin"]?.stringValue }
  }

  /// The held keys of an endpoint, each with its reasons.
  func pending(_ host: String) async throws -> [String: [String]] {
    let items = try await must("GET", "/pending")["items"]?.arrayValue ?? []
    var reasons: [String: [String]] = [:]
    for item in items.compactMap(\.objectValue)
    where item["endpoint"]?.stringValue == endpointID(host) {
      guard let candidate = item["candidate"]?.objectValue, let pin = candidate["pin"]?.stringValue
      else { continue }
      reasons[pin] =
        candidate["reasons"]?.arrayValue?
        .compactMap { $0.objectValue?["reason"]?.stringValue } ?? []
    }
    return reasons
  }

  /// The kinds of all alerts.
  func alerts() async throws -> [String] {
    let alerts = try await must("GET", "/overview")["alerts"]?.arrayValue ?? []
    return alerts.compactMap { $0.objectValue?["kind"]?.stringValue }
  }

  /// Sends a request that must succeed.
  @discardableResult
  func must(_ method: String, _ path: String, _ body: JSONObject? = nil) async throws -> JSONObject
  {
    let answer = try await send(method, path, body)
    try show(
      (200..<300).contains(answer.status),
      "\(method) \(path): \(answer.status)"
        + " \(String(decoding: JSONValue.object(answer.body).canonicalBytes, as: UTF8.self))")
    return answer.body
  }

  /// Sends a request.
  func send(_ method: String, _ path: String, _ body: JSONObject? = nil) async throws -> Answer {
    guard let url = URL(string: "\(server)/api/v1/admin\(path)") else {
      throw Inconclusive("no URL with \(path)")
    }
    var request = URLRequest(url: url)
    request.httpMethod = method
    if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
    if let body {
      request.setValue("application/json", forHTTPHeaderField: "Content-Type")
      request.httpBody = Data(JSONValue.object(body).canonicalBytes)
    }
    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }
    let (data, response) = try await session.data(for: request)
    return Answer(
      status: (response as? HTTPURLResponse)?.statusCode ?? 0,
      body: (try? JSONValue(parsing: [UInt8](data)))?.objectValue ?? [:])
  }

  private func endpoint(_ host: String, _ rest: String = "") -> String {
    let id = endpointID(host).replacing(":", with: "%3A").replacing(" ", with: "%20")
    return "/documents/\(LiveRegistry.file)/endpoints/\(id)\(rest)"
  }
}
