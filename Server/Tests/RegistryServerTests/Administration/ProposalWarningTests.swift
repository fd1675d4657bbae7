import CanonicalJSON
import RegistryCore
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryServer

@Suite("What two people are told about a proposal", .timeLimit(.minutes(3)))
struct ProposalWarningTests {
  private static let on = "ui: {second_person: true}"
  private static let endpoint = AdministeredService.endpoint
  /// The hosts of the endpoint, and no others, as the warning ends.
  private static let bare = "would be left that is shown for *.www.example.com, www.example.com"

  private static func call(
    _ service: AdministeredService, as name: String, _ method: String, _ path: String,
    _ body: String? = nil
  ) async throws -> AdministeredService.Answer {
    let token = try service.token(name, ttl: 604_800)
    return try await service.call(
      method, path, body, headers: ["Authorization": "Bearer \(token)"])
  }

  private static func body(_ pin: SPKIPin, _ more: String = "") -> String {
    #"{"pin":"\#(pin.base64)","why":"x"\#(more)}"#
  }

  private static func texts(_ value: JSONValue?) -> [String] {
    value?.arrayValue?.compactMap(\.stringValue) ?? []
  }

  // MARK: - What one person can do meanwhile

  /// The endpoint lists two keys and shows the second.
  @Test(
    "who proposes a denial is told to revoke the key only if one person may",
    arguments: [(2, true, 409), (1, false, 200)] as [(UInt8, Bool, Int)])
  func revocation(key: UInt8, isShownAlone: Bool, status: Int) async throws {
    let service = try await AdministeredService.running(more: Self.on)
    await service.show(pin(2))
    try #require(try await service.published()["www.example.com"]?.count == 2)
    let asked = try await Self.call(
      service, as: "alice", "POST", "/denials", Self.body(pin(key), #","force":true"#))
    #expect(asked.status == 202, "\(asked.json)")
    let told = Self.texts(asked["warnings"]).filter { $0.hasPrefix("the key is not denied yet") }
    #expect(told.count == 1, "\(told)")
    #expect(told.first?.contains("needs one person") == !isShownAlone, "\(told)")
    #expect(told.first?.contains("needs a second person") == isShownAlone, "\(told)")
    #expect(told.first?.hasSuffix(Self.bare) == isShownAlone, "\(told)")
    // It is so.
    let revoked = try await Self.call(
      service, as: "alice", "POST", "\(Self.endpoint)/revoke", Self.body(pin(key)))
    #expect(revoked.status == status, "\(revoked.json)")
    let listed = try await service.published()["www.example.com"] ?? []
    #expect(listed.contains(pin(key)) == isShownAlone)
    await service.stop()
  }

  /// The other endpoint shows another listed key, so the denial leaves none of its hosts bare.
  @Test(
    "a host that is left with a key that its servers show is not named among those that are not")
  func revocationElsewhere() async throws {
    let service = try await AdministeredService.running(
      keys:
        "[{fqdn: www.example.com}, {fqdn: api.example.com, file: \(AdministeredService.file)}]",
      more: Self.on)
    await service.show(pin(2), at: "api.example.com")
    let asked = try await Self.call(
      service, as: "alice", "POST", "/denials", Self.body(pin(1), #","force":true"#))
    #expect(asked.status == 202, "\(asked.json)")
    let told = Self.texts(asked["warnings"]).last
    #expect(told?.hasSuffix(Self.bare) == true, "\(asked.json)")
    await service.stop()
  }

  @Test("of a key that no list has, it is said only that it is not denied yet")
  func unlisted() async throws {
    let service = try await AdministeredService.running(more: Self.on)
    let asked = try await Self.call(service, as: "alice", "POST", "/denials", Self.body(pin(9)))
    #expect(Self.texts(asked["warnings"]).last == "the key is not denied yet", "\(asked.json)")
    await service.stop()
  }

  @Test("a key that one person revoked is listed again if it is shown again, until it is denied")
  func shownAgain() async throws {
    let service = try await AdministeredService.running(more: Self.on)
    await service.show(pin(2))
    await service.show(pin(1))
    let revoked = try await Self.call(
      service, as: "alice", "POST", "\(Self.endpoint)/revoke", Self.body(pin(2)))
    #expect(revoked.status == 200, "\(revoked.json)")
    #expect(try await service.published()["www.example.com"] == [pin(1)])
    await service.show(pin(2))
    #expect(try await service.published()["www.example.com"]?.contains(pin(2)) == true)
    await service.show(pin(1))
    let asked = try await Self.call(service, as: "alice", "POST", "/denials", Self.body(pin(2)))
    let id = try #require(asked["proposal", "id"]?.stringValue)
    let made = try await Self.call(service, as: "bob", "POST", "/proposals/\(id)/confirm", "{}")
    #expect(made.status == 200, "\(made.json)")
    await service.show(pin(2))
    #expect(try await service.published()["www.example.com"] == [pin(1)])
    await service.stop()
  }

  // MARK: - A key that an approval is about

  private static func showUnderNewCA(
    _ service: AdministeredService, isConfirmed: Bool = true
  ) async {
    var chain = SeenChain(
      leaf: SeenCertificate(pin: pin(2)), above: [SeenCertificate(pin: pin(77), subject: "New CA")])
    chain.isConfirmed = isConfirmed
    let observation = ProbeObservation(
      vantage: LedgerBench.here, address: "", outcome: .accepted(chain))
    service.scripted.observer.show(
      ProbeResult(observations: [observation]), at: "www.example.com")
    await service.scripted.service.probe("www.example.com")
  }

  private static let newCA = "New CA (\(pin(77).base64))"

  @Test(
    "of a key that an approval is about, no more is said than this server knows",
    arguments: [
      ("shown", "is New CA; its endpoint shows it now"),
      (
        "unfinished",
        "is said to be New CA, by a handshake that was not finished; its endpoint"
      ),
      ("paused", "is New CA; its endpoint is paused, so it is not known whether"),
      ("silent", "is New CA; its endpoint does not answer, so it is not known whether"),
      ("unprobed", "is New CA; as far as this server knows, its endpoint shows it now"),
      ("announced", "is not known; the key was announced, and is not shown yet"),
    ])
  func known(scene: String, text: String) async throws {
    let service = try await AdministeredService.running(
      keys: "[{fqdn: www.example.com, approval: manual}]")
    await Self.showUnderNewCA(service, isConfirmed: scene != "unfinished")
    switch scene {
    case "paused":
      let paused = try await service.call("PATCH", Self.endpoint, #"{"paused":true,"why":"x"}"#)
      #expect(paused.status == 200, "\(paused.json)")
    case "silent":
      service.scripted.observer.show(.unreachable(reason: "down"), at: "www.example.com")
      for _ in 0..<3 { await service.scripted.service.probe("www.example.com") }
    case "announced":
      let staged = try await service.call(
        "POST", "\(Self.endpoint)/stage", #"{"pin":"\#(pin(7).base64)"}"#)
      #expect(staged.status == 200, "\(staged.json)")
    default: break
    }
    let coordinator = try #require(service.scripted.service.duty.coordinators.first)
    let seen = await coordinator.snapshot
    let document = DocumentSnapshot(
      file: seen.file, settings: seen.settings, state: seen.state, endpoints: seen.endpoints,
      lastProbes: scene == "unprobed" ? [:] : seen.lastProbes, published: seen.published)
    let standing = try #require(
      document.standing(of: pin(scene == "announced" ? 7 : 2), at: AdministeredService.id))
    let told = "its CA \(text.replacing("New CA", with: Self.newCA))"
    #expect(standing.text.hasPrefix(told), "\(standing.text)")
    #expect(standing.isShown == ["shown", "unfinished", "unprobed"].contains(scene))
    await service.stop()
  }

  @Test(
    "who confirms an approval reads under which CA the key is, and whether it is shown as of then",
    arguments: [false, true])
  func vanished(isGone: Bool) async throws {
    let service = try await AdministeredService.running(
      keys: "[{fqdn: www.example.com, approval: manual}]", more: Self.on)
    await Self.showUnderNewCA(service)
    let asked = try await Self.call(
      service, as: "alice", "POST", "\(Self.endpoint)/approve", Self.body(pin(2)))
    #expect(asked.status == 202, "\(asked.json)")
    let authority = "its CA is New CA (\(pin(77).base64)); its endpoint "
    #expect(Self.texts(asked["warnings"]) == [authority + "shows it now"])
    #expect(asked["proposal", "warnings"] == asked["warnings"])
    let id = try #require(asked["proposal", "id"]?.stringValue)
    if isGone {
      for _ in 0..<4 { await service.show(pin(1)) }
    }
    let seen = try await Self.call(service, as: "bob", "GET", "/proposals")
    #expect(seen["proposals", "0", "id"] == .string(id))
    let told = Self.texts(seen["proposals", "0", "warnings"])
    #expect(told.count == 1)
    let now = isGone ? "does not show it now, and last did at " : "shows it now"
    #expect(told.first?.hasPrefix(authority + now) == true, "\(told)")
    let made = try await Self.call(service, as: "bob", "POST", "/proposals/\(id)/confirm", "{}")
    #expect(made.status == 200, "\(made.json)")
    #expect(Self.texts(made["warnings"]) == (isGone ? told : []), "\(made.json)")
    #expect(try await service.published()["www.example.com"] == [pin(1), pin(2)])
    await service.stop()
  }
}
