import CanonicalJSON
import Foundation
import RegistryServer
import Testing

@Suite("Who may administer")
struct AdministrationAccessTests {
  private static let changes: [(method: String, path: String, body: String?)] = [
    ("POST", "/documents/\(AdministeredService.file)/endpoints", #"{"fqdn":"new.example.com"}"#),
    ("PATCH", AdministeredService.endpoint, #"{"paused":true}"#),
    ("DELETE", AdministeredService.endpoint, nil),
    ("POST", "\(AdministeredService.endpoint)/stage", #"{"pin":"\#(pin(7).base64)"}"#),
    ("POST", "/denials", #"{"pin":"\#(pin(7).base64)","why":"x"}"#),
  ]

  @Test("without a token nothing is shown, nothing changed, and no path told from another")
  func noToken() async throws {
    let service = try await AdministeredService.running()
    let before = try await service.published()
    let answer = try await service.call("GET", "/overview", headers: [:])
    #expect(answer.status == 401)
    #expect(answer.headers["www-authenticate"] == #"Bearer realm="ssl-pinning administration""#)
    let nowhere = try await service.call("GET", "/no/such/path", headers: [:])
    #expect(nowhere.status == 401 && nowhere.json == answer.json)
    for change in Self.changes {
      let refused = try await service.call(change.method, change.path, change.body, headers: [:])
      #expect(refused.status == 401 && refused.json == answer.json, "\(change)")
    }
    #expect(try await service.published() == before)
    #expect(try await service.call("GET", "/tombstones")["tombstones"] == .array([]))
    await service.stop()
  }

  @Test(
    "a token that does not count is refused with the reason, under any scheme but Bearer with none",
    arguments: [
      ("Bearer \("x")", "this is no token"), ("Bearer ", "no token was sent"),
      ("Bearer", "no token was sent"), ("Basic YTpi", "no token was sent"),
      ("TOKEN", "no token was sent"), ("Bearer TOKEN, Bearer TOKEN", "this is no token"),
      ("Bearer TOKEN TOKEN", "this is no token"), ("BearerTOKEN", "no token was sent"),
    ])
  func badTokens(header: String, error: String) async throws {
    let service = try await AdministeredService.running()
    let text = header.replacing("TOKEN", with: try service.token())
    let answer = try await service.call("GET", "/session", headers: ["Authorization": text])
    #expect(answer.status == 401 && answer.error == error, "\(answer)")
    #expect(
      answer.headers["www-authenticate"]?.contains(#"error="invalid_token""#)
        == (error != "no token was sent"))
    await service.stop()
  }

  @Test("the scheme's letter case and the spaces behind it do not matter")
  func scheme() async throws {
    let service = try await AdministeredService.running()
    let token = try service.token()
    for header in ["bearer \(token)", "BEARER \(token)", "Bearer   \(token)"] {
      let answer = try await service.call("GET", "/session", headers: ["Authorization": header])
      #expect(answer.status == 200, "\(header)")
    }
    await service.stop()
  }

  @Test("a token in the query, in a cookie or in the body lets nobody in")
  func otherPlaces() async throws {
    let service = try await AdministeredService.running()
    let token = try service.token()
    let query = try await service.call("GET", "/session?access_token=\(token)", headers: [:])
    #expect(query.status == 401)
    let cookie = try await service.call(
      "GET", "/session", headers: ["Cookie": "token=\(token); Authorization=Bearer \(token)"])
    #expect(cookie.status == 401)
    let body = try await service.call(
      "POST", "/denials", #"{"access_token":"\#(token)"}"#, headers: [:])
    #expect(body.status == 401)
    await service.stop()
  }

  @Test("a token counts until it expires, and the session says until when")
  func expiry() async throws {
    let service = try await AdministeredService.running()
    let now = service.scripted.clock.now()
    let headers = ["Authorization": "Bearer \(try service.token("bob@example.com", ttl: 100))"]
    let session = try await service.call("GET", "/session", headers: headers)
    #expect(
      session.json
        == [
          "name": "bob@example.com", "issued": JSONValue(integerLiteral: now),
          "expires": JSONValue(integerLiteral: now + 100), "scope": "decide",
          "token": .string(
            AdminTokenIssuer.id(of: try service.token("bob@example.com", issued: now, ttl: 100))),
        ])
    service.scripted.clock.advance(100)
    let expired = try await service.call("GET", "/session", headers: headers)
    #expect(expired.status == 401 && expired.error == "the token has expired")
    await service.stop()
  }

  @Test(
    "where server.key is set, a token of the signing key is worth nothing, and one of it counts")
  func serverKey() async throws {
    let service = try await AdministeredService.running(server: ", key: 0123456789abcdef0123")
    let old = try await service.call("GET", "/session")
    #expect(old.status == 401 && old.error == "the token is not of this server")
    let token = try AdminTokenIssuer(
      try configuration("keys: [{fqdn: a.example}]\nserver: {key: 0123456789abcdef0123}")
    ).token(for: "alice", at: service.scripted.clock.now(), ttl: 60)
    let new = try await service.call(
      "GET", "/session", headers: ["Authorization": "Bearer \(token)"])
    #expect(new.status == 200)
    #expect(service.scripted.log.events("server_key_short").isEmpty)
    await service.stop()
  }

  @Test(
    "a short server.key lets nobody in, and says so without the key, until a longer one is read")
  func shortServerKey() async throws {
    let service = try await AdministeredService.running(server: ", key: s3cret")
    let events = service.scripted.log.events("server_key_short")
    #expect(events.count == 1)
    #expect(!"\(events)".contains("s3cret"))
    func token(_ key: String) throws -> [String: String] {
      let issuer = try AdminTokenIssuer(
        try configuration("keys: [{fqdn: a.example}]\nserver: {key: \(key)}"))
      let token = try issuer.token(for: "alice", at: service.scripted.clock.now(), ttl: 60)
      return ["Authorization": "Bearer \(token)"]
    }
    let refused = try await service.call("GET", "/session", headers: try token("s3cret"))
    #expect(refused.status == 403)
    #expect(refused.error?.contains("less than 16 bytes") == true)
    #expect(refused.hint == "openssl rand -base64 32 prints a better one")
    #expect(try await service.scripted.get("/api/v1/\(AdministeredService.file)").status == 200)
    // 15 and 16 bytes.
    for (key, status) in [("0123456789abcde", 403), ("0123456789abcdef", 200)] {
      try await service.scripted.reload(
        keys: "[{fqdn: www.example.com}]", server: ", key: \(key)")
      let answer = try await service.call("GET", "/session", headers: try token(key))
      #expect(answer.status == status, "\(key)")
    }
    await service.stop()
  }

  @Test("where the administration is switched off, nobody is let in")
  func switchedOff() async throws {
    let service = try await AdministeredService.running(more: "ui: {enabled: false}")
    for (method, path, body) in Self.changes + [("GET", "/overview", nil)] {
      let answer = try await service.call(method, path, body)
      #expect(answer.status == 403 && answer.hint == "set ui.enabled to true", "\(path)")
    }
    #expect(try await service.published()["www.example.com"] == [pin(1)])
    await service.stop()
  }

  @Test("who has a token is told which paths and methods there are")
  func pathsAndMethods() async throws {
    let service = try await AdministeredService.running()
    for path in [
      "/", "/nothing", "/overview/", "//overview", "/documents//history", "/denials/",
      "/documents/www.example.com.json%C3%A9", "/documents/%E2%84%AA.json",
    ] {
      #expect(try await service.call("GET", path).status == 404, "\(path)")
    }
    let cases = [
      ("POST", "/overview", "GET, HEAD"), ("GET", AdministeredService.endpoint + "/stage", "POST"),
      ("PUT", AdministeredService.endpoint, "GET, PATCH, DELETE, HEAD"),
      ("DELETE", "/denials", "GET, POST, HEAD"),
    ]
    for (method, path, allowed) in cases {
      let answer = try await service.call(method, path, method == "POST" ? "{}" : nil)
      #expect(answer.status == 405 && answer.headers["allow"] == allowed, "\(method) \(path)")
    }
    await service.stop()
  }

  @Test("no answer is kept by a cache, shown in a frame or read as anything but JSON")
  func securityHeaders() async throws {
    let service = try await AdministeredService.running()
    let answers = [
      try await service.call("GET", "/overview"), try await service.call("GET", "/nothing"),
      try await service.call("GET", "/overview", headers: [:]),
    ]
    for answer in answers {
      #expect(answer.headers["cache-control"] == "no-store")
      #expect(answer.headers["x-content-type-options"] == "nosniff")
      #expect(answer.headers["content-type"] == "application/json")
      #expect(answer.headers["referrer-policy"] == "no-referrer")
      #expect(
        answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'")
      #expect(answer.headers["access-control-allow-origin"] == nil)
    }
    await service.stop()
  }

  @Test("failures are limited, and keep nobody with a token out")
  func failureLimit() async throws {
    let service = try await AdministeredService.running()
    var answer = try await service.call("GET", "/overview", headers: [:])
    for _ in 0..<200 where answer.status == 401 {
      answer = try await service.call("GET", "/overview", headers: [:])
    }
    #expect(answer.status == 429)
    let seconds = try #require(answer.headers["retry-after"].flatMap(Int.init))
    #expect((1...60).contains(seconds) && answer.hint == "wait \(seconds) s")
    #expect(try await service.call("GET", "/overview").status == 200)
    await service.stop()
  }

  @Test("a body over 64 KiB is refused, one of just that is read")
  func bodyLimit() async throws {
    let service = try await AdministeredService.running()
    let head = #"{"paused":true,"why":""#
    let full = head + String(repeating: "x", count: 65_536 - head.utf8.count - 2) + #""}"#
    let read = try await service.call("PATCH", AdministeredService.endpoint, full)
    #expect(read.status == 400 && read.error == "why is longer than 500 characters")
    // The answer may come, and the connection end, while the client still sends: then it never reads it.
    var status: Int?
    for _ in 0..<5 where status == nil {
      status = try? await service.call("PATCH", AdministeredService.endpoint, full + " ").status
    }
    #expect(status == 413)
    await service.stop()
  }

  @Test(
    "each call is one event with who, what and how it ended, and no token, reason or body in it")
  func log() async throws {
    let service = try await AdministeredService.running()
    let token = try service.token("carol")
    let headers = ["Authorization": "Bearer \(token)"]
    try await service.call("GET", "/overview", headers: headers)
    try await service.call("GET", "/overview?limit=0", headers: headers)
    try await service.call("GET", "/nothing", headers: headers)
    try await service.call("GET", "/overview", headers: [:])
    try await service.call("GET", "/session", headers: ["Authorization": "Bearer \(token)x"])
    try await service.call(
      "POST", "/denials", #"{"pin":"\#(pin(9).base64)","why":"the-reason"}"#, headers: headers)
    let events = service.scripted.log.events("admin_request")
    let seen = events.map { event in
      ["who", "method", "path", "status", "peer", "level"]
        .map { event[$0]?.stringValue ?? "-" }.joined(separator: " ")
    }
    #expect(
      seen == [
        "carol GET /api/v1/admin/overview 200 127.0.0.1 debug",
        "carol GET /api/v1/admin/overview 400 127.0.0.1 info",
        "carol GET /api/v1/admin/nothing 404 127.0.0.1 info",
        " GET /api/v1/admin/overview 401 127.0.0.1 warn",
        " GET /api/v1/admin/session 401 127.0.0.1 warn",
        "carol POST /api/v1/admin/denials 200 127.0.0.1 info",
      ])
    #expect(!"\(events)".contains(token) && !"\(events)".contains("the-reason"))
    await service.stop()
  }

  @Test(
    "strangers fill no log: a few lines, with the number of those that it does not tell, and cut paths"
  )
  func floods() async throws {
    let service = try await AdministeredService.running(
      server: ", trusted_proxies: [127.0.0.1]")
    let path = "/" + String(repeating: "a", count: 4000)
    for _ in 0..<40 { try await service.call("GET", path, headers: [:]) }
    // The next line says how many are missing: here, of another address.
    try await service.call("GET", "/session", headers: ["X-Forwarded-For": "192.0.2.9"])
    let events = service.scripted.log.events("admin_request")
    let untold = events.compactMap { $0["untold"]?.stringValue.flatMap { Int($0) } }
    #expect(events.last?["peer"]?.stringValue == "192.0.2.9")
    #expect(events.count + untold.reduce(0, +) == 41)
    #expect((1...20).contains(events.count))
    #expect(events.allSatisfy { ($0["path"]?.stringValue?.count ?? 0) <= 256 })
    await service.stop()
  }
}
