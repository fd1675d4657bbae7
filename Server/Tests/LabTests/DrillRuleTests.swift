import FaultLab
import Foundation
import SslPinning
import SslPinningPlatform
import TLSTools
import Testing

@testable import ssl_pinning_lab

@Suite("The drill's own rules")
struct DrillRuleTests {
  private let attacker: LocalHTTPServer
  private let url: URL

  init() throws {
    attacker = try LocalHTTPServer { _ in .text("gotcha") }
    url = try #require(URL(string: "http://127.0.0.1:\(attacker.port)/account"))
  }

  /// A dial that gets through to the attacker.
  private var through: Dialer { .unpinned(.system, at: 0) }

  /// A dial that ends like this and sends nothing.
  private func scripted(_ answer: Dialer.Answer) -> Dialer {
    Dialer(name: "scripted") { _ in answer }
  }

  private let pinFailure = Dialer.Answer.refused(rule: "leaf-pin", "not pinned")

  private func attack(
    control: Dialer, pinned: [Dialer], _ refusal: AttackTrial.Refusal = .before("leaf-pin")
  ) async -> (RowResult.End, Score) {
    let row = Row.attack("attack") { [attacker, url] in
      AttackOutcome(
        "shown",
        try await AttackTrial(url, attacker: attacker, control: control, pinned: pinned, refusal))
    }
    let result = await RowResult.run(row)
    return (result.end, Score([result]))
  }

  private func change(
    _ body: @escaping @Sendable (ChangeLog, URL) async throws -> Void
  ) async -> (RowResult.End, Score) {
    let row = Row.change("change") { [url] log in
      try await body(log, url)
      return ChangeOutcome("shown", log)
    }
    let result = await RowResult.run(row)
    return (result.end, Score([result]))
  }

  @Test("An attack that is refused by the rule in question passes")
  func refusedAttack() async {
    let (end, score) = await attack(control: through, pinned: [scripted(pinFailure)])
    #expect(end == .held)
    #expect(score.isPassed)
    #expect(score.line == "drill: 0 changes, 0 lock-outs; 1 attacks, 0 accepted")
  }

  @Test("An attack row fails whose control never reaches the attacker")
  func noControl() async {
    for control in [scripted(.served("gotcha")), scripted(pinFailure)] {
      let (end, score) = await attack(control: control, pinned: [scripted(pinFailure)])
      #expect(end == .incomplete)
      #expect(!score.isPassed)
      #expect(score.line.contains("1 rows proved nothing"))
    }
  }

  @Test("An attack row fails that dials nothing with pins")
  func noPinnedDial() async {
    #expect(await attack(control: through, pinned: []).0 == .incomplete)
  }

  @Test("An attack that gets through is counted, whether by a body or by a byte")
  func acceptedAttack() async {
    let leak = Dialer(name: "leak") { [through, pinFailure] url in
      _ = await through.dial(url)
      return pinFailure
    }
    for dialer in [through, scripted(.served("gotcha")), leak] {
      let (end, score) = await attack(
        control: through, pinned: [scripted(pinFailure), dialer])
      #expect(end == .accepted)
      #expect(score.accepted == 1)
      #expect(!score.isPassed)
    }
  }

  @Test("A refusal by another rule, or by no verdict, proves nothing")
  func otherReason() async {
    for answer in [
      Dialer.Answer.failed("timed out"), .refused(rule: "chain", "expired"),
    ] {
      let (end, score) = await attack(control: through, pinned: [scripted(answer)])
      #expect(end == .incomplete)
      #expect(!score.isPassed)
    }
  }

  @Test("A refusal proves nothing where the attacker was never dialled")
  func notDialled() async {
    let end = await attack(
      control: through, pinned: [scripted(pinFailure)], .inHandshake("leaf-pin")
    ).0
    #expect(end == .incomplete)
  }

  @Test("A change after which everybody is served passes")
  func served() async {
    let (end, score) = await change { [through] log, url in
      log.changed()
      await log.get(url, [through], expecting: "gotcha")
    }
    #expect(end == .held)
    #expect(score.isPassed)
  }

  @Test("A lock-out is counted, whether by a refusal, a failure or another body")
  func lockedOut() async {
    for answer in [pinFailure, .failed("timed out"), .served("of another server")] {
      let (end, score) = await change { [dialer = scripted(answer)] log, url in
        log.changed()
        await log.get(url, [dialer], expecting: "gotcha")
      }
      #expect(end == .lockedOut)
      #expect(score.lockOuts == 1)
      #expect(!score.isPassed)
    }
  }

  @Test("A change row fails that makes no request, or none after its change")
  func noAssertion() async {
    #expect(await change { log, _ in log.changed() }.0 == .incomplete)
    let before = await change { [through] log, url in
      await log.get(url, [through], expecting: "gotcha")
      log.changed()
    }
    #expect(before.0 == .incomplete)
    let never = await change { [through] log, url in
      await log.get(url, [through], expecting: "gotcha")
    }
    #expect(never.0 == .incomplete)
  }

  @Test("An unannounced change may refuse while it heals, and not beyond its bound")
  func healing() async {
    let inTime = await change { [through, pinFailure] log, url in
      log.changed()
      let counter = Counter()
      let late = Dialer(name: "late") { url in
        await counter.next() < 3 ? pinFailure : await through.dial(url)
      }
      try await log.healing(url, [late], expecting: "gotcha", within: 600) {}
    }
    #expect(inTime.0 == .held)
    // Once in second 0, and once in second 4.
    let (seconds, answers) = (Locked(0.0), Counter())
    let row = Row.change("counted") { [url, through, pinFailure] log in
      log.changed()
      let late = Dialer(name: "late") { url in
        let number = await answers.next()
        seconds.withLock { $0 = 4 }
        return number < 3 ? pinFailure : await through.dial(url)
      }
      try await log.healing(
        url, [late], expecting: "gotcha", within: 600, clock: { seconds.withLock { $0 } }
      ) {}
      return ChangeOutcome("shown", log)
    }
    let counted = await RowResult.run(row)
    #expect(counted.text.contains("refused 2 in 2 s"), "\(counted.text)")
    let never = await change { [pinFailure, dialer = scripted(pinFailure)] log, url in
      log.changed()
      try await log.healing(url, [dialer], expecting: "gotcha", within: 0) {}
      _ = pinFailure
    }
    #expect(never.0 == .lockedOut)
  }

  @Test("Seconds with a refusal are counted once, and printed")
  func refusedSeconds() async {
    let counter = Counter()
    // Both apps are refused in the first of three seconds, and one of them in the second.
    let late = Dialer(name: "late") { [through, pinFailure] url in
      await counter.next() <= 3 ? pinFailure : await through.dial(url)
    }
    let row = Row.change("change") { [url] log in
      log.changed()
      for _ in 0..<3 {
        for _ in 0..<2 { _ = await log.attempt(url, late, expecting: "gotcha") }
        log.nextSecond()
      }
      log.healed(after: 2, bound: 70)
      let outcome = ChangeOutcome("shown", log)
      #expect(outcome.refused == 3 && outcome.refusedSeconds == 2)
      return outcome
    }
    let result = await RowResult.run(row)
    #expect(result.end == .held)
    #expect(result.line.contains("6 requests, refused 3 in 2 s"), "\(result.line)")
  }

  @Test(
    "A client that cannot be made is a lock-out, and a document that is believed lets somebody in")
  func withoutRequests() async {
    #expect(await change { _, _ in throw SslPinningError.badSignature() }.0 == .lockedOut)
    let row = Row.attack("attack") { throw Breach("believed") }
    #expect(await RowResult.run(row).end == .accepted)
    let broken = await change { [pinFailure, dialer = scripted(pinFailure)] log, url in
      await log.get(url, [dialer], expecting: "gotcha")
      throw Inconclusive("\(pinFailure)")
    }
    #expect(broken.0 == .lockedOut)
  }

  @Test("A row that hangs fails")
  func hanging() async {
    let (gate, opener) = AsyncStream<Void>.makeStream()
    let row = Row.change("change") { _ in
      for await _ in gate {}
      throw SslPinningError.badSignature()
    }
    #expect(await RowResult.run(row, limit: 0.01).end == .incomplete)
    opener.finish()
  }

  @Test("A row that throws fails, and so does a drill without rows")
  func nothing() async {
    #expect(await change { _, _ in throw Inconclusive("no stage") }.0 == .incomplete)
    #expect(!Score([]).isPassed)
    #expect(await !Drill(rows: []).run { _ in })
  }

  @Test("Lines come in the table's order, the count last, and the rows need not end in that order")
  func order() async {
    let gate = Counter()
    let rows = (0..<6).map { number in
      Row.change("row \(number)") { _ in
        while number == 0, await gate.value < 5 { await Task.yield() }
        _ = await gate.next()
        throw Inconclusive("ended")
      }
    }
    let lines = Collected()
    let isPassed = await Drill(rows: rows).run { lines.append($0) }
    #expect(!isPassed)
    for (number, line) in lines.all.dropLast().enumerated() {
      #expect(line.hasPrefix("✘ change  row \(number):"))
    }
    #expect(
      lines.all.last?.hasSuffix("drill: 6 changes, 0 lock-outs; 0 attacks, 0 accepted") == true)
  }
}

private actor Counter {
  private(set) var value = 0

  func next() -> Int {
    value += 1
    return value
  }
}

/// Lines of one thread.
private final class Collected {
  private(set) var all: [String] = []

  func append(_ line: String) { all.append(line) }
}
