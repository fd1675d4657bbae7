import CanonicalJSON
import Foundation
import RegistryServer
import SslPinningRules
import Testing

/// A scripted service and an administrator who calls it. Every answer is compared with
/// `docs/openapi.yaml`.
struct AdministeredService {
  struct Answer {
    let status: Int
    let headers: [String: String]
    let json: JSONObject

    var error: String? { json["error"]?.stringValue }
    var hint: String? { json["hint"]?.stringValue }

    /// The value at the end of a path of members and positions.
    subscript(path: String...) -> JSONValue? {
      var value: JSONValue? = .object(json)
      for part in path {
        if let index = Int(part) {
          let elements = value?.arrayValue ?? []
          value = elements.indices.contains(index) ? elements[index] : nil
        } else {
          value = value?.objectValue?[part]
        }
      }
      return value
    }

    /// The events of the changes that were made.
    var changes: [String] {
      json["changes"]?.arrayValue?.compactMap { $0.objectValue?["event"]?.stringValue } ?? []
    }
  }

  static let prefix = "/api/v1/admin"
  static let file = "www.example.com.json"
  static let id = "www.example.com:443"
  static let endpoint = "/documents/\(file)/endpoints/www.example.com%3A443"

  let scripted: ScriptedService

  /// A service whose endpoints show `pin(1)` and that has published that.
  static func running(
    keys: String = "[{fqdn: www.example.com}]", listen: String = "127.0.0.1:0", server: String = "",
    more: String = ""
  ) async throws -> AdministeredService {
    let scripted = try ScriptedService(keys: keys, listen: listen, server: server, more: more)
    for fqdn in ["www.example.com", "api.example.com", "other.example.net"] {
      scripted.observer.show(.accepted(pin(1)), at: fqdn)
    }
    try await scripted.start()
    return AdministeredService(scripted: scripted)
  }

  func stop() async { await scripted.service.stop() }

  /// A token as `ssl-pinning token` prints it, from the signing key.
  func token(
    _ name: String = "alice", issued: Int64? = nil, ttl: Int64 = 3600, scope: AdminScope = .decide
  ) throws -> String {
    let configuration = try configuration(
      "keys: [{fqdn: www.example.com}]\ntls: {dir: \"\(scripted.directory.path())\"}")
    return try AdminTokenIssuer(configuration)
      .token(for: name, at: issued ?? scripted.clock.now(), ttl: ttl, scope: scope)
  }

  /// Calls with a good token, and checks what comes back against the description.
  @discardableResult
  func call(
    _ method: String, _ path: String, _ body: String? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> Answer {
    try await call(
      method, path, body, headers: ["Authorization": "Bearer \(try token())"],
      sourceLocation: sourceLocation)
  }

  /// Calls with these headers.
  @discardableResult
  func call(
    _ method: String, _ path: String, _ body: String? = nil, headers: [String: String],
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> Answer {
    let address = try #require(scripted.service.address)
    let (status, headers, bytes) = try await HTTPProbe.fetch(
      "http://\(address)\(Self.prefix)\(path)", headers: headers, method: method,
      body: body.map { [UInt8]($0.utf8) })
    let json = try JSONValue(parsing: bytes)
    let document = try OpenAPIDocument.shared.get()
    let plain = String(path.prefix { $0 != "?" })
    if let operation = document.operation(method, plain) {
      let problems = document.problems(operation, status: status, body: json)
      #expect(problems.isEmpty, "\(problems)", sourceLocation: sourceLocation)
    }
    return Answer(
      status: status, headers: headers,
      json: try #require(json.objectValue, sourceLocation: sourceLocation))
  }

  /// What clients read of the document at this moment.
  func published() async throws -> [String: [SPKIPin]] {
    try await scripted.pins(in: Self.file)
  }

  /// The endpoint shows a key from now on, and is probed until nothing waits for probes.
  func show(_ pin: SPKIPin, at fqdn: String = "www.example.com") async {
    scripted.observer.show(.accepted(pin), at: fqdn)
    await scripted.service.probe(fqdn)
  }
}
