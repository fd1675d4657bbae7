import CanonicalJSON
import Foundation
import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

/// The clock is passed in: nothing here sets the machine's.
@Suite("A server whose clock jumps", .timeLimit(.minutes(2)))
struct ClockJumpTests {
  private static let host = "www.example.com"
  private static let file = "www.example.com.json"
  private static let day: Int64 = 86_400
  private static let storage = "{type: sqlite, dsn: 'DIR/registry.db'}"

  /// Another key shows in one probe a day, for three days.
  private func seeOnceADay(_ key: SPKIPin, _ server: ScriptedService) async {
    for _ in 0..<3 {
      server.clock.advance(Self.day)
      server.observer.show([.accepted(key)], at: Self.host)
      await server.service.probe(Self.host)
    }
  }

  private func signed(_ server: ScriptedService) throws -> Int64 {
    try #require(server.service.currentDocument(Self.file)).signed
  }

  private func started(_ storage: String = "{type: memory}") async throws -> ScriptedService {
    let server = try ScriptedService(storage: storage)
    server.observer.show(.accepted(pin(1)), at: Self.host)
    return server
  }

  @Test("20 days ahead for 6 seconds: nothing is added up over days, nothing is signed ahead")
  func aMomentAhead() async throws {
    let server = try await started()
    try await server.start()
    server.clock.setWrong(by: 20 * Self.day)
    await server.service.probe(Self.host)
    server.clock.advance(6)
    await server.service.probe(Self.host)
    server.clock.setWrong(by: 0)
    await server.service.probe(Self.host)
    #expect(try signed(server) <= server.clock.now())
    #expect(server.log.events("clock_doubted").map { $0["level"] } == ["warn"])
    #expect(server.log.events("clock_returned").count == 1)

    await seeOnceADay(pin(2), server)
    #expect(try await server.pins(in: Self.file)[Self.host] == [pin(1)])
    // Signed again every day.
    #expect(try server.clock.now() - signed(server) < Self.day)
    // Seen three times in a row it is published.
    server.observer.show(.accepted(pin(2)), at: Self.host)
    await server.service.probe(Self.host)
    #expect(try await server.pins(in: Self.file)[Self.host] == [pin(1), pin(2)])
    await server.service.stop()
  }

  @Test("400 days behind at the start: it goes on from its last statement, until the clock is kept")
  func behindAtTheStart() async throws {
    let first = try await started(Self.storage)
    try await first.start()
    let before = try signed(first)
    await first.service.stop()

    first.clock.advance(5 * 3600)
    first.clock.setWrong(by: -400 * Self.day)
    let second = try ScriptedService(storage: Self.storage, sharing: first)
    second.observer.show(.accepted(pin(1)), at: Self.host)
    try await second.start()
    #expect(second.log.events("clock_doubted").count == 1)
    second.clock.advance(Self.day + 60)
    await second.service.probe(Self.host)
    #expect(try signed(second) - before - Self.day == 60)

    second.clock.setWrong(by: 0, isSynchronized: true)
    await second.service.probe(Self.host)
    #expect(second.log.events("clock_adopted").isEmpty)
    second.clock.advance(SteadyTime.probation)
    await second.service.probe(Self.host)
    #expect(second.log.events("clock_adopted").count == 1)
    second.clock.advance(Self.day)
    await second.service.probe(Self.host)
    #expect(try signed(second) == second.clock.now())
    await second.service.stop()
  }

  @Test(
    "400 days ahead from the first start on: once the clock is kept, all is as if it had not been")
  func aheadFromTheFirst() async throws {
    let before = try await started()
    before.clock.setWrong(by: 400 * Self.day)
    let server = try ScriptedService(sharing: before)
    server.observer.show(.accepted(pin(1)), at: Self.host)
    try await server.start()
    #expect(server.log.events("clock_doubted").isEmpty)
    // Two keys, so that one can retire.
    server.observer.show(.accepted(pin(2)), at: Self.host)
    await server.service.probe(Self.host)
    #expect(try signed(server) > server.clock.now() - 3600)
    // A candidate that was seen twice by that clock.
    server.observer.show([.accepted(pin(3)), .accepted(pin(3))], at: Self.host)
    await server.service.probe(Self.host)

    server.clock.setWrong(by: 0, isSynchronized: true)
    await server.service.probe(Self.host)
    server.clock.advance(SteadyTime.probation)
    await server.service.probe(Self.host)
    let right = try signed(server)
    #expect(right <= server.clock.now() && right > server.clock.now() - 3600)
    #expect(try await server.pins(in: Self.file)[Self.host] == [pin(1), pin(2)])

    await seeOnceADay(pin(3), server)
    #expect(try await server.pins(in: Self.file)[Self.host] == [pin(1), pin(2)])
    // The old key leaves after its grace time, counted from now.
    for _ in 0..<(7 * 24 + 1) {
      server.clock.advance(3600)
      await server.service.probe(Self.host)
    }
    #expect(try await server.pins(in: Self.file)[Self.host] == [pin(2)])
    #expect(try server.clock.now() - signed(server) < Self.day)
    await server.service.stop()
  }

  @Test("a person is told everywhere, and says that the clock is right")
  func person() async throws {
    let service = try await AdministeredService.running()
    let clock = service.scripted.clock
    let true0 = clock.now()
    clock.setWrong(by: 2 * Self.day)
    let overview = try await service.call("GET", "/overview")
    #expect(overview["clock", "believed"] == false)
    #expect(overview["clock", "wall"]?.integerValue == true0 + 2 * Self.day)
    #expect(overview["time"]?.integerValue == true0)
    #expect(overview["alerts", "0", "kind"] == "clock" && overview["alerts", "0", "file"] == "")
    let metrics = String(decoding: try await service.scripted.get("/metrics").body, as: UTF8.self)
    #expect(metrics.contains("ssl_pinning_clock_believed 0\n"))
    #expect(metrics.contains("ssl_pinning_clock_offset_seconds 172800\n"))
    #expect(metrics.contains(#"ssl_pinning_alerts{kind="clock"} 1"#))
    let ready = try await service.scripted.get("/readyz")
    #expect(ready.status == 200)
    #expect(String(decoding: ready.body, as: UTF8.self).contains(#""reasons":["clock"]"#))

    #expect(try await service.call("POST", "/clock/adopt", "{}").status == 400)
    #expect(try await service.call("POST", "/clock/adopt", #"{"why":""}"#).status == 400)
    let answer = try await service.call("POST", "/clock/adopt", #"{"why":"by my watch"}"#)
    #expect(answer.status == 200)
    #expect(answer["time"]?.integerValue == true0 + 2 * Self.day)
    #expect(answer["before"]?.integerValue == true0)
    let told = service.scripted.log.events("clock_vouched_for")
    #expect(told.map { $0["who"] } == ["alice"] && told.map { $0["why"] } == ["by my watch"])
    #expect(try await service.call("POST", "/clock/adopt", #"{"why":"x"}"#).status == 409)
    #expect(try await service.call("GET", "/overview")["alertsTotal"]?.integerValue == 0)
    await service.scripted.service.probe(Self.host)
    #expect(
      service.scripted.service.currentDocument(Self.file)?.signed == true0 + 2 * Self.day)
    await service.stop()
  }

  @Test("while the clock is doubted a token counts by either time, and an old one by neither")
  func tokens() async throws {
    let service = try await AdministeredService.running()
    let clock = service.scripted.clock
    let before = clock.now()
    let (own, old) = (
      try service.token(issued: before, ttl: 3600),
      try service.token(issued: before - 7200, ttl: 60)
    )
    clock.setWrong(by: 20 * Self.day)
    let made = try service.token(issued: clock.now(), ttl: 60)
    for (token, status) in [(own, 200), (made, 200), (old, 401)] {
      let answer = try await service.call(
        "GET", "/session", headers: ["Authorization": "Bearer \(token)"])
      #expect(answer.status == status)
    }
    // By a clock that is believed there is one time.
    clock.setWrong(by: 0)
    let answer = try await service.call(
      "GET", "/session", headers: ["Authorization": "Bearer \(made)"])
    #expect(answer.status == 401)
    await service.stop()
  }
}
