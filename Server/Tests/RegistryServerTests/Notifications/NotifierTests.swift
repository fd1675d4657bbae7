import CanonicalJSON
import FaultLab
import Foundation
import RegistryCore
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("The webhook is told") struct NotifierTests {
  private static let host = "www.example.com"

  /// A service with one endpoint that shows key 1, and then key 2 under an approval that a person must give.
  private static func service(
    _ receiver: Receiver, storage: String = "{type: memory}", sharing other: ScriptedService? = nil
  ) throws -> ScriptedService {
    let service = try ScriptedService(
      keys: "[{fqdn: www.example.com, approval: manual}]", storage: storage,
      more: "notify: {webhook: \"\(receiver.url)\", secret: \(Receiver.secret)}", sharing: other)
    service.observer.show(.accepted(pin(1)), at: host)
    return service
  }

  /// Counts what it is given.
  private struct Counter: NotificationReceiver {
    let name = "counter"
    let told = Locked(0)
    func deliver(_ message: NotificationMessage, at now: Int64) async -> DeliveryOutcome {
      told.withLock { $0 += 1 }
      return .delivered
    }
  }

  @Test(
    "nothing for a while by a process that stood still: another one may lead, and tell, meanwhile")
  func stoodStill() async {
    let (ticks, receiver) = (Locked<Int64>(1000), Counter())
    let conditions = Locked<[Condition]>([])
    let survey = { @Sendable () async -> FoundConditions in
      FoundConditions(ofLeader: conditions.withLock { $0 }, ofServer: [], at: 5)
    }
    let notifier = Notifier(
      [receiver], clock: TestClock(), log: .silent,
      metrics: ServerMetrics(version: "1", started: 1), ticks: { ticks.withLock { $0 } },
      survey: survey)
    func look(after milliseconds: Int64, tells count: Int) async -> Bool {
      ticks.withLock { $0 += milliseconds }
      await notifier.look()
      for _ in 0..<2000 { await Task.yield() }
      // What is told is told by a task of its own.
      return await eventually { receiver.told.withLock { $0 } >= count }
        && receiver.told.withLock { $0 } == count
    }
    #expect(await look(after: 1000, tells: 0))
    // Each time, and soon after one another, too.
    for (round, file) in ["a", "b"].enumerated() {
      conditions.withLock { $0 = [Condition(.documentLate, file: file, since: 1, message: "m")] }
      #expect(await look(after: 6000, tells: round))
      for _ in 0..<4 { #expect(await look(after: 1000, tells: round)) }
      #expect(await look(after: 1001, tells: round + 1))
    }
    // A machine that is slow at every look tells all the same.
    conditions.withLock { $0 = [Condition(.documentLate, file: "c", since: 1, message: "m")] }
    for _ in 0..<3 { #expect(await look(after: 6000, tells: 2)) }
    #expect(await look(after: 6000, tells: 3))
    // So does one that stands still again and again.
    #expect(await look(after: 1000, tells: 3))
    conditions.withLock { $0 = [Condition(.documentLate, file: "d", since: 1, message: "m")] }
    for _ in 0..<5 {
      #expect(await look(after: 6000, tells: 3))
      #expect(await look(after: 1000, tells: 3))
    }
    #expect(await look(after: 6000, tells: 4))
  }

  /// Takes nothing.
  private struct Deaf: NotificationReceiver {
    let name = "deaf"
    func deliver(_ message: NotificationMessage, at now: Int64) async -> DeliveryOutcome {
      .failed(reason: "it does not listen")
    }
  }

  @Test(
    "and metrics say how many changes wait for it after each look, and what was lost since the start"
  )
  func waiting() async throws {
    let (metrics, isLeading) = (ServerMetrics(version: "1", started: 1), Locked(true))
    let late = Condition(.documentLate, file: "a", since: 1, message: "m")
    let notifier = Notifier(
      [Deaf()], clock: TestClock(), log: .silent, metrics: metrics, ticks: { 1000 },
      survey: {
        FoundConditions(ofLeader: isLeading.withLock { $0 } ? [late] : nil, ofServer: [], at: 5)
      })
    @Sendable func told(_ series: String) -> Double? {
      let page = try? PrometheusPage(metrics.exposition(at: 5))
      return page?.samples["ssl_pinning_notifications_\(series)"]
    }
    for outcome in NotificationOutcome.allCases {
      #expect(told("total{receiver=\"deaf\",outcome=\"\(outcome.rawValue)\"}") == 0)
    }
    #expect(told("waiting{receiver=\"deaf\"}") == 0)
    await notifier.look()
    #expect(await eventually { told("total{receiver=\"deaf\",outcome=\"failed\"}") == 1 })
    #expect(told("waiting{receiver=\"deaf\"}") == 1)
    // Another server tells it from now on.
    isLeading.withLock { $0 = false }
    await notifier.look()
    #expect(told("waiting{receiver=\"deaf\"}") == 0)
  }

  @Test("when a key is held that apps meet, and when a person has decided; signed, and once each")
  func heldKey() async throws {
    let receiver = try Receiver()
    let server = try await AdministeredService.running(
      more: "notify: {webhook: \"\(receiver.url)\", secret: \(Receiver.secret)}")
    try await server.call("PATCH", AdministeredService.endpoint, #"{"approval":"manual"}"#)
    await server.show(pin(2))
    #expect(await eventually { receiver.changes.contains { $0.text == "begun key-held" } })
    let held = try #require(receiver.changes.first { $0.text == "begun key-held" })
    #expect(held.json["severity"] == "critical")
    #expect(held.json["pin"] == .string(pin(2).base64))
    #expect(held.json["subject"] == "www.example.com:443")
    #expect(held.json["file"] == .string(AdministeredService.file))
    try await server.call(
      "POST", "\(AdministeredService.endpoint)/approve", #"{"pin":"\#(pin(2).base64)"}"#)
    #expect(await eventually { receiver.changes.contains { $0.text == "over key-held" } })
    #expect(
      receiver.changes.filter { $0.text.hasSuffix("key-held") }.map(\.text) == [
        "begun key-held", "over key-held",
      ])
    #expect(receiver.unsigned == 0)
    await server.stop()
    await receiver.stop()
  }

  @Test(
    "when apps report a chain that an authority issued and no probe saw, and not before the next probe"
  )
  func interception() async throws {
    let receiver = try Receiver()
    let clock = TestClock()
    let life = Validity(notBefore: clock.now() - 864_000, notAfter: clock.now() + 864_000)
    let authority = try CertificateAuthority.makeRoot(name: "Root", validity: life)
    let directory = try TemporaryDirectory()
    let anchors = try directory.write(authority.root.pem, to: "ca.pem")
    let server = try ScriptedService(
      keys: "[{fqdn: www.example.com}]",
      more: "notify: {webhook: \"\(receiver.url)\", secret: \(Receiver.secret)}",
      anchors: anchors.path(percentEncoded: false))
    server.observer.show(.accepted(pin(1)), at: Self.host)
    try await server.start()
    let identity = try authority.issue(names: [Self.host], validity: life)
    let body = JSONValue.object([
      "hostname": .string(Self.host),
      "validated-certificate-chain": .array([.string(identity.leaf.pem)]),
    ]).canonicalBytes
    let address = try #require(server.service.address)
    let answer = try await HTTPProbe.fetch(
      "http://\(address)\(ReportRoutes.path)", method: "POST", body: body)
    #expect(answer.status == 204)
    // What ends, and reports, are looked at once a minute.
    server.clock.advance(61)
    await server.service.probe(Self.host)
    #expect(
      await eventually {
        server.clock.advance(11)
        return receiver.changes.contains { $0.text == "begun interception" }
      })
    let told = try #require(receiver.changes.first { $0.text == "begun interception" }).json
    #expect(told["subject"] == .string(Self.host) && told["severity"] == "warning")
    #expect(told["pin"] == .string(try SPKIPin(certificateDER: identity.leaf.der).base64))
    let page = String(
      decoding: try await HTTPProbe.fetch("http://\(address)/metrics").body, as: UTF8.self)
    #expect(page.contains("ssl_pinning_reports_by_class{class=\"interception\"} 1\n"))
    await server.service.stop()
    await receiver.stop()
  }

  @Test("again what it did not take, in the same order, and the log says so once")
  func failure() async throws {
    let receiver = try Receiver(failing: 2)
    let server = try Self.service(receiver)
    try await server.start()
    await server.service.probe(Self.host)
    server.observer.show(.accepted(pin(2)), at: Self.host)
    for _ in 0..<3 { await server.service.probe(Self.host) }
    #expect(await eventually { receiver.changes.contains { $0.text == "begun key-held" } })
    #expect(await eventually { !server.log.events("notifications_delivered").isEmpty })
    #expect(server.log.events("notifications_not_delivered").count == 1)
    #expect(receiver.refused == 2)
    await server.service.stop()
    await receiver.stop()
  }

  static let wishes: [(String, Int64?)] = [
    ("7", 7), ("Thu, 01 Jan 1970 00:10:00 GMT", 600), ("99999999999999999999", 86_400), ("0", 1),
    ("-5", nil), ("-9223372036854775808", nil), ("soon", nil),
  ]

  private func delivery(to receiver: Receiver) async throws -> DeliveryOutcome {
    let webhook = try WebhookReceiver(RegistryURL(receiver.url), secret: nil, anchors: nil) { 0 }
    return await webhook.deliver(NotificationMessage([], from: "pins-1", at: 0), at: 0)
  }

  @Test("not before it asks for it, by seconds or a date, whatever it may send", arguments: wishes)
  func retryAfter(_ field: String, _ seconds: Int64?) async throws {
    let receiver = try Receiver(failing: 1, retryAfter: field)
    let outcome = try await delivery(to: receiver)
    #expect(outcome == .failed(reason: "it answered 503", retryAfter: seconds))
    await receiver.stop()
  }

  @Test(
    "also while the machine's clock is wrong: a certificate counts that is valid at the server's time"
  )
  func doubtedClock() async throws {
    let life = Validity(notBefore: 1_000_000_000, notAfter: 1_100_000_000)
    let authority = try CertificateAuthority.makeRoot(name: "Root", validity: life)
    let made = try authority.issue(names: ["127.0.0.1"], validity: life)
    let receiver = try Receiver(
      tls: try ListenerIdentity(certificatePEM: made.certificateChainPEM, keyPEM: made.keyPEM))
    let directory = try TemporaryDirectory()
    let anchors = try directory.write(authority.root.pem, to: "ca.pem")
    let (within, beyond): (Int64, Int64) = (1_050_000_000, 1_150_000_000)
    for (now, wall, isTold) in [
      (within, beyond, true), (beyond, within, true), (beyond, beyond, false),
    ] {
      let webhook = try WebhookReceiver(
        RegistryURL(receiver.url), secret: nil, anchors: anchors.path(percentEncoded: false)
      ) { wall }
      let outcome = await webhook.deliver(
        NotificationMessage([], from: "pins-1", at: now), at: now)
      #expect((outcome == .delivered) == isTold, "server \(now), machine \(wall): \(outcome)")
    }
    await receiver.stop()
  }

  @Test(
    "with the server's time or the machine's, whichever the receiver finds right",
    arguments: [
      (receiver: 1_050_000_000, refused: 0), (receiver: 1_050_007_200, refused: 1),
      (receiver: 1_060_000_000, refused: 2),
    ] as [(Int64, Int)])
  func doubtedSignature(_ receiverTime: Int64, _ refused: Int) async throws {
    let receiver = try Receiver(at: receiverTime)
    let webhook = try WebhookReceiver(
      RegistryURL(receiver.url), secret: Secret(Receiver.secret), anchors: nil
    ) { 1_050_007_200 }
    let message = NotificationMessage([], from: "pins-1", at: 1_050_000_000)
    let outcome = await webhook.deliver(message, at: 1_050_000_000)
    #expect((outcome == .delivered) == (refused < 2))
    #expect(receiver.refused == refused && receiver.unsigned == 0)
    await receiver.stop()
  }

  @Test("once where what the receiver says is not about the time: a size, too many")
  func doubtedOnce() async throws {
    for status in [413, 429] as [UInt32] {
      let receiver = try Receiver(failing: 2, with: status)
      let webhook = try WebhookReceiver(
        RegistryURL(receiver.url), secret: Secret(Receiver.secret), anchors: nil
      ) { 1_050_007_200 }
      let outcome = await webhook.deliver(
        NotificationMessage([], from: "pins-1", at: 1_050_000_000), at: 1_050_000_000)
      #expect(
        outcome
          == .failed(
            reason: "it answered \(status)", refusal: status == 413 ? .tooLarge : nil))
      #expect(receiver.refused == 1, "\(status)")
      await receiver.stop()
    }
  }

  @Test(
    "in parts where an answer is about what it was told, and not where it is about the receiver",
    arguments: [
      (400, .content), (403, .content), (422, .content), (413, .tooLarge), (408, nil), (429, nil),
      (307, nil), (500, nil), (503, nil),
    ] as [(UInt32, DeliveryRefusal?)])
  func refusals(_ status: UInt32, _ refusal: DeliveryRefusal?) async throws {
    let receiver = try Receiver(failing: 1, with: status)
    let outcome = try await delivery(to: receiver)
    #expect(outcome == .failed(reason: "it answered \(status)", refusal: refusal))
    await receiver.stop()
  }

  @Test(
    "by a message whose answer has a whole head, whatever becomes of its body",
    arguments: [
      ("200 OK\r\nContent-Length: 9\r\n\r\n", 200), ("200 OK\r\n\r\nx", 200),
      ("200 OK\r\n\r\n", 200), ("503 No\r\nContent-Length: 9\r\n\r\n", 503),
      ("100 Continue\r\n\r\n", nil), ("100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n", nil),
      ("200 OK\r\nContent-Length: 9\r\n", nil), ("", nil),
    ] as [(String, Int?)])
  func endless(_ answer: String, _ status: Int?) async throws {
    // It sends no more than this, and keeps the connection.
    let server = try LocalRawServer(.sends(Array("HTTP/1.1 \(answer)".utf8)))
    let url = try RegistryURL("http://127.0.0.1:\(server.port)/")
    let answered = try? await ReportPoster(trust: .system).post(
      Array("{}".utf8), to: url, timeout: 2)
    #expect(answered?.status == status)
    server.stop()
  }

  @Test("by the server that leads alone; the next one tells what stands, under the same id")
  func replicas() async throws {
    let receiver = try Receiver()
    let storage = "{type: sqlite, dsn: DIR/registry.db}"
    let leader = try Self.service(receiver, storage: storage)
    try await leader.start()
    await leader.service.probe(Self.host)
    leader.observer.show(.accepted(pin(2)), at: Self.host)
    for _ in 0..<3 { await leader.service.probe(Self.host) }
    #expect(await eventually { receiver.changes.contains { $0.text == "begun key-held" } })
    let follower = try Self.service(receiver, storage: storage, sharing: leader)
    follower.observer.show(.accepted(pin(2)), at: Self.host)
    try await follower.start(isLeading: false)
    // Two looks of the follower, which told nothing.
    try await Task.sleep(for: .milliseconds(2500))  // why: its looks are real seconds apart.
    #expect(receiver.changes.filter { $0.text == "begun key-held" }.count == 1)
    await leader.service.stop()
    #expect(await eventually { receiver.changes.filter { $0.text == "begun key-held" }.count == 2 })
    #expect(Set(receiver.changes.filter { $0.text == "begun key-held" }.map(\.id)).count == 1)
    #expect(!receiver.changes.contains { $0.text == "over key-held" })
    await follower.service.stop()
    await receiver.stop()
  }

  @Test("of what each server sees under an id for each: the end at one is none at the other")
  func ids() {
    func id(_ condition: Condition, _ server: String) -> String {
      ConditionChange(.begun, condition, at: 2).id(from: server)
    }
    let own = Condition(.storeAway, since: 1, message: "m")
    #expect(id(own, "a") != id(own, "b"))
    #expect(id(own, "a") == id(own, "a"))
    let leaders = Condition(.alert(.vantageSilent), subject: "oslo", since: 1, message: "m")
    #expect(id(leaders, "a") == id(leaders, "b"))
  }

  @Test("of a store that goes by another signing key, though nobody leads then")
  func notBelieved() async throws {
    let receiver = try Receiver()
    let storage = "{type: sqlite, dsn: DIR/registry.db}"
    let first = try Self.service(receiver, storage: storage)
    try await first.start()
    await first.service.probe(Self.host)
    await first.service.stop()
    let key = try SigningKey.generate(bits: 2048)
    for name in ["prv.pem", "pub.pem"] {
      try FileManager.default.removeItem(at: first.directory.file(name))
    }
    try key.write(to: first.directory.file("prv.pem"))
    try key.writePublicKey(to: first.directory.file("pub.pem"))
    let second = try Self.service(receiver, storage: storage, sharing: first)
    try await second.service.start()
    #expect(await eventually { receiver.changes.contains { $0.text == "begun other-signing-key" } })
    await second.service.stop()
    await receiver.stop()
  }

  @Test(
    "by nobody whose configuration would tell everybody",
    arguments: [
      ("webhook: \"http://198.51.100.7/\"", "clear text"), ("webhook: \"nothing\"", "no URL"),
      ("secret: 0123456789abcdef0123", "webhook"),
      ("webhook: \"https://example.com/\", secret: short", "guessed"),
    ])
  func refusedConfigurations(_ yaml: String, _ reason: String) {
    let error = #expect(throws: ConfigurationError.self) {
      try configuration("keys: [{fqdn: a.example}]\nnotify: {\(yaml)}")
    }
    #expect(error.map { "\($0)" }?.contains(reason) == true, "\(String(describing: error))")
  }

  @Test("and nobody sees its URL and secret in what the configuration comes to")
  func masked() throws {
    let read = try configuration(
      "keys: [{fqdn: a.example}]\n"
        + "notify: {webhook: \"https://example.com/T0KEN\", secret: 0123456789abcdef}")
    let effective = Setting.allCases.compactMap { read.value(of: $0, isMasked: true) }
    let text = JSONValue.array(effective).canonicalBytes
    let shown = String(decoding: text, as: UTF8.self)
    #expect(!shown.contains("T0KEN") && !shown.contains("0123456789abcdef"))
    #expect(shown.contains(Secret.mask))
  }
}
