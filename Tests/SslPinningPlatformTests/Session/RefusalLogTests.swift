import Foundation
import SslPinningPlatform
import SslPinningRules
import Testing

@Suite("Texts that lead back to their refusals")
struct RefusalLogTests {
  private static func refusal(_ host: String, leaf: UInt8 = 1) throws -> PinEvaluation {
    let pin = try #require(SPKIPin(digest: [UInt8](repeating: leaf, count: 32)))
    return PinEvaluation(
      host: host, outcome: .mismatch(.leaf), decision: .refuse, presented: [pin])
  }

  private static func error(_ text: String) -> NSError {
    NSError(domain: NSURLErrorDomain, code: -1, userInfo: [NSLocalizedDescriptionKey: text])
  }

  /// Far ahead, so that no other test has given these moments out.
  private static let moment: Int64 = 4_102_444_800_000_042

  @Test("are the verdict's own, and end with a moment; there is no token in them")
  func text() throws {
    let log = RefusalLog(clock: { Self.moment })
    let text = log.note(try Self.refusal("a.example"))
    let verdict = "refused a.example: the server's key is not pinned"
    #expect(text.hasPrefix("\(verdict) (2100-01-01T00:00:0"))
    #expect(text.hasSuffix("Z)"))
    #expect(text.utf8.count == verdict.utf8.count + " (2100-01-01T00:00:00.000042Z)".utf8.count)
  }

  @Test("are never the same: of refusals in one microsecond each leads to its own")
  func unique() throws {
    let logs = (0..<3).map { _ in RefusalLog(clock: { Self.moment }) }
    var noted: [(log: Int, text: String, refusal: PinEvaluation)] = []
    for leaf in UInt8(0)..<100 {
      let refusal = try Self.refusal("a.example", leaf: leaf)
      let log = Int(leaf) % 3
      noted.append((log, logs[log].note(refusal), refusal))
    }
    #expect(Set(noted.map(\.text)).count == 100)
    for (log, text, refusal) in noted {
      for index in logs.indices {
        #expect(
          logs[index].refusal(for: Self.error(text)) == (index == log ? refusal : nil))
      }
    }
  }

  @Test("are found below other errors, of Foundation's kind and of Swift's")
  func underlying() throws {
    let log = RefusalLog(clock: { Self.moment })
    let refusal = try Self.refusal("a.example")
    let text = log.note(refusal)
    for cause: any Error in [
      Self.error(text), URLError(.unknown, userInfo: [NSLocalizedDescriptionKey: text]),
    ] {
      let error = NSError(domain: "above", code: 1, userInfo: [NSUnderlyingErrorKey: cause])
      #expect(log.refusal(for: error) == refusal)
    }
  }

  @Test("stay apart under a clock that goes back")
  func backwards() throws {
    let now = Locked<Int64>(Self.moment)
    let log = RefusalLog(clock: { now.withLock { $0 } })
    let first = log.note(try Self.refusal("a.example", leaf: 1))
    now.withLock { $0 = 0 }
    let second = log.note(try Self.refusal("a.example", leaf: 2))
    #expect(first != second)
    #expect(log.refusal(for: Self.error(first))?.presented != nil)
    #expect(
      log.refusal(for: Self.error(first)) != log.refusal(for: Self.error(second)))
  }

  @Test(
    "fit into what the transport carries, cut between characters, and are found all the same",
    arguments: ["a", "é", "€", "👩‍👩‍👧‍👦", "\u{301}"])
  func long(character: String) throws {
    let log = RefusalLog()
    for count in [1, 100, 400, 440, 441, 442, 443, 500, 5000] {
      let refusal = try Self.refusal(String(repeating: character, count: count))
      let text = log.note(refusal)
      #expect(text.utf8.count <= RefusalLog.longestText)
      #expect(text.hasSuffix("Z)"))
      #expect(log.refusal(for: Self.error(text)) == refusal)
    }
  }

  @Test("keep the first of their pins: a list can have tens of thousands for one host")
  func manyPins() throws {
    let log = RefusalLog()
    let pins = (0..<1000).map { number in
      SPKIPin(
        computed: [UInt8(number >> 8), UInt8(number & 255)] + [UInt8](repeating: 0, count: 30))
    }
    for count in [64, 65, 1000] {
      let refusal = PinEvaluation(
        host: "a.example", outcome: .mismatch(.leaf), decision: .refuse, presented: [pins[7]],
        expectedLeaf: pins.prefix(count).map { Pin($0) })
      let found = log.refusal(for: Self.error(log.note(refusal)))
      #expect(found?.expectedLeaf == Array(refusal.expectedLeaf.prefix(64)))
      #expect(found?.presented == refusal.presented && found?.outcome == refusal.outcome)
    }
  }

  @Test("are found below other errors, and nothing else is taken for one")
  func others() throws {
    let log = RefusalLog()
    let refusal = try Self.refusal("a.example")
    let text = log.note(refusal)
    let outer = NSError(
      domain: "app", code: 1, userInfo: [NSUnderlyingErrorKey: Self.error(text)])
    #expect(log.refusal(for: outer) == refusal)
    for other in ["", String(text.dropLast()), "x" + text, refusal.description, "a time-out"] {
      #expect(log.refusal(for: Self.error(other)) == nil)
    }
  }

  @Test(
    "of hosts that cannot be read are found though nothing was noted",
    arguments: [
      ("https://127.1/", NSURLErrorBadURL, true), ("https://localhost/", NSURLErrorBadURL, false),
      ("https://127.1/", NSURLErrorCannotFindHost, false),
      ("file:///127.1", NSURLErrorBadURL, false),
    ])
  func unreadable(url: String, code: Int, isRefusal: Bool) throws {
    let error = NSError(
      domain: NSURLErrorDomain, code: code,
      userInfo: [NSURLErrorFailingURLErrorKey: try #require(URL(string: url))])
    let refusal = RefusalLog().refusal(for: error)
    #expect(refusal?.rule == (isRefusal ? "unreadable-host" : nil))
    #expect(refusal?.host == (isRefusal ? "127.1" : nil))
  }

  @Test("are forgotten, the oldest first, and none of the newest 1 024")
  func forgotten() throws {
    let log = RefusalLog()
    let refusal = try Self.refusal("a.example")
    let texts = (0..<5000).map { _ in log.note(refusal) }
    #expect(log.refusal(for: Self.error(texts[0])) == nil)
    for text in texts.suffix(1024) { #expect(log.refusal(for: Self.error(text)) == refusal) }
  }
}
