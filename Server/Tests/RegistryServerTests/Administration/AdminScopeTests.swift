import CanonicalJSON
import Foundation
import RegistryCore
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryServer

@Suite("What a token lets its bearer do", .timeLimit(.minutes(2)))
struct AdminScopeTests {
  /// A key to announce, as its certificate request.
  private static func request() async throws -> String {
    let request = try await OpenSSLCommand().make(
      "request.pem",
      [
        "req", "-new", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-keyout",
        "key.pem", "-subj", "/CN=a",
      ])
    let body = JSONValue.object(["csr": .string(String(decoding: request, as: UTF8.self))])
    return String(decoding: body.canonicalBytes, as: UTF8.self)
  }

  /// Every change that there is, but for a good announcement at the endpoint.
  private static let changes: [(method: String, path: String, body: String?)] = {
    let (endpoint, why) = (AdministeredService.endpoint, #""why":"x"}"#)
    let key = #"{"pin":"\#(pin(1).base64)","#
    return [
      ("POST", "\(endpoint)/approve", key + why), ("POST", "\(endpoint)/revoke", key + why),
      ("POST", "/denials", key + why), ("POST", "/allowances", key + why),
      ("DELETE", "/denials/" + String(repeating: "A", count: 43), nil),
      ("PATCH", endpoint, #"{"paused":true}"#), ("POST", "\(endpoint)/change", #"{"paused":true}"#),
      ("DELETE", endpoint, nil), ("POST", "\(endpoint)/remove", "{}"),
      ("POST", "/documents/\(AdministeredService.file)/endpoints", #"{"fqdn":"b.example"}"#),
      ("POST", "/clock/adopt", #"{"why":"x"}"#), ("GET", "/tokens", nil),
      ("POST", "/proposals/x/confirm", "{}"), ("POST", "/proposals/x/withdraw", "{}"),
    ]
  }()

  private static func header(_ token: String) -> [String: String] {
    ["Authorization": "Bearer \(token)"]
  }

  @Test("to read is to see everything, and to change nothing")
  func reading() async throws {
    let service = try await AdministeredService.running()
    let headers = Self.header(try service.token(scope: .read))
    let csr = try await Self.request()
    for path in [
      "/overview", "/session", "/documents", AdministeredService.endpoint, "/pending", "/denials",
    ] {
      #expect(try await service.call("GET", path, headers: headers).status == 200, "\(path)")
    }
    for (method, path, body) in Self.changes
      + [("POST", AdministeredService.endpoint + "/stage", csr)]
    {
      let answer = try await service.call(method, path, body, headers: headers)
      #expect(answer.status == 403 && answer.error?.hasSuffix("it is for read") == true, "\(path)")
    }
    #expect(try await service.published()["www.example.com"] == [pin(1)])
    await service.stop()
  }

  @Test(
    "to announce is to announce a key that one has, for the hosts that are named, and to see nothing"
  )
  func staging() async throws {
    let service = try await AdministeredService.running(
      keys: "[{fqdn: www.example.com}, {fqdn: api.example.com, file: www.example.com.json}]")
    let host = HostName.literal("www.example.com")
    let csr = try await Self.request()
    let headers = Self.header(try service.token("renewal", scope: .stage(hosts: [host])))
    for (method, path, body) in Self.changes
      + [("GET", "/overview", nil), ("GET", AdministeredService.endpoint, nil)]
    {
      #expect(
        try await service.call(method, path, body, headers: headers).status == 403, "\(path)")
    }
    let stage = AdministeredService.endpoint + "/stage"
    // A pin may be anybody's; a request is signed by the key.
    let bare = try await service.call(
      "POST", stage, #"{"pin":"\#(pin(7).base64)"}"#, headers: headers)
    #expect(bare.status == 403 && bare.hint?.contains("csr") == true)
    let other = "/documents/\(AdministeredService.file)/endpoints/api.example.com%3A443/stage"
    #expect(
      try await service.call("POST", other, csr, headers: headers).status == 403)
    #expect(
      try await service.call(
        "POST", stage.replacing("www.example.com%3A", with: "none.example%3A"),
        csr, headers: headers
      ).status == 403)
    let good = try await service.call("POST", stage, csr, headers: headers)
    #expect(good.status == 200 && good.changes == ["key_staged"], "\(good.json)")
    let staged = try #require(good.json["pin"]?.stringValue)
    #expect(
      try await service.published()["www.example.com"]?.map(\.base64).contains(staged) == true)
    // Its CA is none of the endpoint's because of that; that of one which somebody announces who may decide is.
    #expect(
      try await service.call("POST", stage, #"{"pin":"\#(pin(7).base64)"}"#).changes
        == ["key_staged"])
    let coordinator = try #require(service.scripted.service.duty.coordinators.first)
    let keys = await coordinator.state.keysByEndpoint[AdministeredService.id]?.keys ?? []
    #expect(keys.filter(\.bringsNoCA).map(\.pin.base64) == [staged])
    #expect(keys.map(\.pin).contains(pin(7)))
    let told = try #require(service.scripted.log.events("administration_changed").first)
    #expect("\(told)".contains("renewal") && "\(told)".contains(staged), "\(told)")
    await service.stop()
  }

  @Test("a key counts for all hosts of its endpoint: whoever announces one is for all of them")
  func hostsOfAnEndpoint() async throws {
    let service = try await AdministeredService.running(
      keys: "[{fqdn: www.example.com, domainName: '*.example.com'}]")
    let stage = AdministeredService.endpoint + "/stage"
    let csr = try await Self.request()
    func answer(_ hosts: String...) async throws -> AdministeredService.Answer {
      let scope = AdminScope.stage(hosts: hosts.map { HostName.literal($0) })
      return try await service.call(
        "POST", stage, csr, headers: Self.header(try service.token(scope: scope)))
    }
    let refused = try await answer("www.example.com")
    #expect(refused.status == 403 && refused.error?.contains("*.example.com, too") == true)
    #expect(try await answer("example.com").status == 403)
    #expect(try await service.published()["*.example.com"] == [pin(1)])
    #expect(try await answer("www.example.com", "example.com").status == 200)
    await service.stop()
  }

  @Test(
    "an announcement that waits for an edit of the configuration is for the hosts of the edit",
    arguments: [("pay.example.net", 403), ("*.www.example.com", 200)] as [(String, Int)])
  func hostsOfAnEdit(host: String, status: Int) async throws {
    let www = "{fqdn: www.example.com, domainName: www.example.com, file: www.example.com.json}"
    let more = "{fqdn: www.example.com, domainName: '\(host)', file: www.example.com.json}"
    let service = try await AdministeredService.running(keys: "[\(www)]")
    let csr = try await Self.request()
    let headers = Self.header(
      try service.token(scope: .stage(hosts: [.literal("www.example.com")])))
    let edits = service.scripted.service.services.edits
    edits.close()
    async let answer = service.call(
      "POST", AdministeredService.endpoint + "/stage", csr, headers: headers)
    #expect(await eventually { edits.waits == 1 })
    // Its end opens the gate.
    try await service.scripted.reload(keys: "[\(www), \(more)]")
    #expect(try await answer.status == status)
    await service.stop()
  }

  @Test("no more keys wait at an endpoint than a fleet shows; whoever decides announces more")
  func announcedKeys() async throws {
    let service = try await AdministeredService.running()
    let csr = try await Self.request()
    let headers = Self.header(
      try service.token(scope: .stage(hosts: [.literal("www.example.com")])))
    func decide(_ what: String, _ number: UInt8) async throws -> Int {
      try await service.call(
        "POST", "\(AdministeredService.endpoint)/\(what)", #"{"pin":"\#(pin(number).base64)"}"#
      ).status
    }
    for number in UInt8(2)...18 { #expect(try await decide("stage", number) == 200) }
    #expect(try await decide("revoke", 2) == 200)
    let stage = AdministeredService.endpoint + "/stage"
    let full = try await service.call("POST", stage, csr, headers: headers)
    #expect(full.status == 409 && full.error?.contains("16 announced keys") == true)
    // One that is seen waits no more.
    await service.show(pin(3))
    #expect(try await service.call("POST", stage, csr, headers: headers).status == 200)
    // The endpoint's bound is everybody's: clients refuse a document that is too large.
    var number = UInt8(19)
    while number < 100, try await decide("stage", number) == 200 { number += 1 }
    #expect(number - 19 == 64 - 16)
    await service.stop()
  }

  @Test("however often somebody reads, others decide")
  func calls() async throws {
    let service = try await AdministeredService.running()
    let headers = Self.header(try service.token(scope: .read))
    let others = Self.header(try service.token())
    var (limited, held) = (0, 0)
    // Many at a time: a slow machine would otherwise call no more often than it may. And others beside
    // them, for some rounds: what is allowed comes back within moments.
    for _ in 0..<100 where limited < 4 {
      let refused = try await withThrowingTaskGroup(of: (isReader: Bool, isRefused: Bool).self) {
        group in
        for number in 0..<44 {
          group.addTask {
            let isReader = number % 11 != 0
            let answer = try await service.call(
              "GET", "/session", headers: isReader ? headers : others)
            // Not the refusal for too many at a time.
            return (isReader, answer.error == "too many calls with this token")
          }
        }
        return try await group.reduce(into: [Bool]()) { if $1.isRefused { $0.append($1.isReader) } }
      }
      if refused.contains(true) { limited += 1 }
      held += refused.count { !$0 }
    }
    #expect(limited == 4 && held == 0)
    #expect(try await service.call("GET", "/session").status == 200)
    await service.stop()
  }

  @Test("however long reading takes, at most two calls of one token are worked on at a time")
  func callsUnderWay() async {
    let limits = CallLimits()
    for _ in 0..<CallLimits.mostAtOnce { #expect(await limits.begin(with: "reader")) }
    #expect(await limits.begin(with: "another"))
    let refused = await withTaskGroup(of: Bool.self) { group in
      for _ in 0...CallLimits.mostWaiting {
        group.addTask { await limits.begin(with: "reader") }
      }
      // All but one wait: the first that ends is the one that may not.
      let refused = await group.next() == false
      for _ in 0..<CallLimits.mostWaiting { limits.end(with: "reader") }
      return await group.allSatisfy { $0 } && refused
    }
    #expect(refused)
    for _ in 0..<CallLimits.mostAtOnce { limits.end(with: "reader") }
    #expect(await limits.begin(with: "reader"))
  }

  @Test("one token is ended by its id, and the others count on")
  func revoked() async throws {
    let service = try await AdministeredService.running()
    let (lost, kept) = (try service.token("lost"), try service.token("kept"))
    for token in [lost, kept] {
      #expect(try await service.call("GET", "/session", headers: Self.header(token)).status == 200)
    }
    try await service.scripted.reload(
      keys: "[{fqdn: www.example.com}]",
      more: "ui: {revoked_tokens: [\"\(AdminTokenIssuer.id(of: lost))\"]}")
    let refused = try await service.call("GET", "/session", headers: Self.header(lost))
    #expect(refused.status == 401 && refused.error == "the token was revoked")
    #expect(try await service.call("GET", "/session", headers: Self.header(kept)).status == 200)
    let listed = try await service.call("GET", "/tokens", headers: Self.header(kept))
    let tokens = listed.json["tokens"]?.arrayValue?.compactMap(\.objectValue) ?? []
    #expect(tokens.first { $0["name"] == "lost" }?["revoked"] == .bool(true), "\(listed.json)")
    #expect(tokens.first { $0["name"] == "kept" }?["revoked"] == .bool(false))
    await service.stop()
  }

  @Test("one that an edit ends is none any more before its turn, whatever the edit before it says")
  func endedAhead() async throws {
    let service = try await AdministeredService.running()
    let lost = try service.token("lost")
    func status() async throws -> Int {
      try await service.call("GET", "/session", headers: Self.header(lost)).status
    }
    let edit = try configuration(
      "keys: [{fqdn: www.example.com}]\nui: {revoked_tokens: [\"\(AdminTokenIssuer.id(of: lost))\"]}\n"
    )
    #expect(try await status() == 200)
    // The edit before ends after it was read, and the file cannot be read any more in its turn.
    let reads = Locked(0)
    let seen = Locked([Int]())
    await service.scripted.service.readAgain { () throws(ConfigurationError) in
      let count = reads.withLock { count in
        count += 1
        return count
      }
      guard count == 1 else { throw .unreadable(path: "x", reason: "a typo") }
      return edit
    } inTurn: {
      let before = try? await status()
      try? await service.scripted.reload(keys: "[{fqdn: www.example.com}]")
      let after = try? await status()
      seen.withLock { $0 = [before ?? 0, after ?? 0] }
    }
    #expect(seen.withLock { $0 } == [401, 401])
    #expect(try await status() == 401)
    // What is in force by the next edit says it.
    try await service.scripted.reload(keys: "[{fqdn: www.example.com}]")
    #expect(try await status() == 200)
    await service.stop()
  }
}
