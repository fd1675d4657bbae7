import Foundation
import Testing

@testable import CanonicalJSON

@Suite("Limits")
struct LimitTests {
  @Test("a hundred thousand opening brackets are refused at the first beyond the limit")
  func openBrackets() {
    let arrays = [UInt8](repeating: UInt8(ascii: "["), count: 100_000)
    let objects = Array(String(repeating: #"{"a":"#, count: 100_000).utf8)
    let mixed = Array(String(repeating: #"[{"a":"#, count: 100_000).utf8)
    for limit in [0, 1, 2, 128, JSONLimits.greatestDepth] {
      let limits = JSONLimits(maximumDepth: limit)
      #expect(throws: JSONError.nestingTooDeep(limit: limit, offset: limit)) {
        try canonicalize(arrays, limits: limits)
      }
      #expect(throws: JSONError.nestingTooDeep(limit: limit, offset: 5 * limit)) {
        try JSONValue(parsing: objects, limits: limits)
      }
      #expect(
        throws: JSONError.nestingTooDeep(limit: limit, offset: limit / 2 * 6 + limit % 2)
      ) { try canonicalize(mixed, limits: limits) }
    }
  }

  @Test("depth counts what is open at once, not how many there are")
  func depth() throws {
    let limits = JSONLimits(maximumDepth: 2)
    #expect(throws: Never.self) { try canonicalize(Array("[[],[],{},[1]]".utf8), limits: limits) }
    #expect(throws: JSONError.nestingTooDeep(limit: 2, offset: 5)) {
      try canonicalize(Array("[[],[[]]]".utf8), limits: limits)
    }
    #expect(try canonicalize(Array("7".utf8), limits: JSONLimits(maximumDepth: 0)) == [0x37])
  }

  @Test("the standard depth is 128: the last level is accepted, the next refused")
  func standardDepth() {
    #expect(throws: Never.self) { try canonicalize(nested(128)) }
    #expect(throws: JSONError.nestingTooDeep(limit: 128, offset: 128)) {
      try canonicalize(nested(129))
    }
  }

  @Test("a document may have exactly as many bytes as the limit says")
  func size() {
    let document = Array("[1,2,3]".utf8)
    #expect(throws: Never.self) { try canonicalize(document, limits: JSONLimits(maximumBytes: 7)) }
    #expect(throws: JSONError.tooLarge(limit: 6, offset: 6)) {
      try canonicalize(document, limits: JSONLimits(maximumBytes: 6))
    }
    #expect(throws: JSONError.tooLarge(limit: 0, offset: 0)) {
      try JSONValue(parsing: document, limits: JSONLimits(maximumBytes: -1))
    }
  }

  @Test("limits nobody can keep are brought to the nearest that can be kept")
  func bounds() {
    let limits = JSONLimits(maximumDepth: .max, maximumBytes: .max)
    #expect(limits.maximumDepth == JSONLimits.greatestDepth)
    #expect(limits.maximumBytes == JSONLimits.greatestBytes)
    #expect(JSONLimits(maximumDepth: -1).maximumDepth == 0)
  }

  @Test("the greatest depth is fit for the 512 KiB stack of a second thread")
  func greatestDepth() async throws {
    let depth = JSONLimits.greatestDepth
    let objects = Array(
      (String(repeating: #"{"b":"#, count: depth - 1) + "[]"
        + String(repeating: #","a":0}"#, count: depth - 1)).utf8)
    let isFine = await withCheckedContinuation { continuation in
      let thread = Thread {
        let limits = JSONLimits(maximumDepth: depth)
        let document = nested(depth)
        let first = try? JSONValue(parsing: document, limits: limits)
        let second = try? JSONValue(parsing: document, limits: limits)
        let third = try? JSONValue(parsing: objects, limits: limits)
        let written = try? canonicalize(objects, limits: limits)
        let areSame = first == second && Set([first, second, third]).count == 2
        continuation.resume(
          returning: areSame && first?.canonicalBytes == document
            && third?.canonicalBytes == written)
      }
      // Unoptimized code takes up to four times as much stack for each level.
      thread.stackSize = (_isDebugAssertConfiguration() ? 2048 : 512) * 1024
      thread.start()
    }
    #expect(isFine)
  }

  @Test("objects of a hundred thousand members, hostile in each way, are read")
  func largeObjects() throws {
    let count = 100_000
    let ascending = (0..<count).map { "\($0 + count)" }
    let expected = canonicalObject(ascending)
    for names in [ascending, ascending.reversed(), interleaved(ascending)] {
      #expect(try canonicalize(object(names)) == expected)
    }
    let last = object(interleaved(ascending) + [ascending[0]])
    let error = #expect(throws: JSONError.self) { try canonicalize(last) }
    #expect(error == .duplicateMember(name: ascending[0], offset: last.count - 12))
    // Long names that differ only at their end.
    let prefix = String(repeating: "p", count: 1_000)
    let long = (0..<1_000).map { "\(prefix)\($0 + 1_000)" }
    #expect(try canonicalize(object(long.reversed())) == canonicalObject(long))
  }

  @Test("a number of a million digits is read and rounded")
  func longNumber() throws {
    let digits = String(repeating: "3", count: 1_000_000)
    #expect(try canonicalize(Array("0.\(digits)".utf8)) == Array("0.3333333333333333".utf8))
    #expect(throws: JSONError.numberOverflow(offset: 0)) { try canonicalize(Array(digits.utf8)) }
    #expect(try canonicalize(Array("\(digits)e-999999".utf8)) == Array("3.3333333333333335".utf8))
    #expect(try canonicalize(Array("1e-\(digits)".utf8)) == [UInt8(ascii: "0")])
    #expect(throws: JSONError.numberOverflow(offset: 0)) {
      try canonicalize(Array("1e\(digits)".utf8))
    }
    #expect(try canonicalize(Array("0e\(digits)".utf8)) == [UInt8(ascii: "0")])
  }

  private func nested(_ depth: Int) -> [UInt8] {
    [UInt8](repeating: UInt8(ascii: "["), count: depth)
      + [UInt8](repeating: UInt8(ascii: "]"), count: depth)
  }

  private func object(_ names: [String]) -> [UInt8] {
    Array(("{" + names.map { "\"\($0)\":1" }.joined(separator: ",") + " }").utf8)
  }

  private func canonicalObject(_ names: [String]) -> [UInt8] {
    Array(("{" + names.map { "\"\($0)\":1" }.joined(separator: ",") + "}").utf8)
  }

  /// From both ends in turn.
  private func interleaved(_ names: [String]) -> [String] {
    zip(names, names.reversed()).prefix(names.count / 2).flatMap { [$1, $0] }
  }
}
