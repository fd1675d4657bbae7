import SslPinningRules
import Testing

@Suite("PEM")
struct PEMBlockTests {
  private func blocks(_ text: String) throws -> [PEMBlock] {
    try PEMBlock.blocks(in: [UInt8](text.utf8))
  }

  static let certificate = PEMBlock(label: "CERTIFICATE", bytes: [UInt8](1...200))
  static let key = PEMBlock(label: "PUBLIC KEY", bytes: [1, 2, 3])

  @Test("reads back what it writes, in lines of 64 characters")
  func roundTrip() throws {
    for count in [1, 47, 48, 49, 96, 1000] {
      let block = PEMBlock(label: "X", bytes: [UInt8](repeating: 9, count: count))
      #expect(try blocks(block.text) == [block])
      #expect(block.text.split(separator: "\n").allSatisfy { $0.utf8.count <= 64 })
    }
  }

  @Test(
    "reads blocks among text, whatever ends the lines",
    arguments: ["\n", "\r\n", "\r", "\n\n", " \t\n  "])
  func lineEnds(end: String) throws {
    let text = "subject: a\n\(Self.certificate.text)between: b\n\(Self.key.text)behind"
    let spelled = text.replacing("\n", with: end)
    #expect(try blocks(spelled) == [Self.certificate, Self.key])
  }

  @Test("finds no block in what has none", arguments: ["", "\n", "hello", "-----", "BEGIN X"])
  func none(text: String) throws { #expect(try blocks(text).isEmpty) }

  @Test(
    "refuses damaged files",
    arguments: [
      ("-----BEGIN A-----\nAAAA\n", .unterminated(label: "A")),
      ("-----BEGIN A-----", .unterminated(label: "A")),
      (
        "-----BEGIN A-----\nAAAA\n-----BEGIN A-----\nAAAA\n-----END A-----",
        .unterminated(label: "A")
      ),
      ("-----BEGIN A-----\nAAAA\n-----END B-----", .unterminated(label: "A")),
      ("-----END A-----\n", .endWithoutBegin(label: "A")),
      ("-----BEGIN A-----\n-----END A-----", .notBase64(label: "A")),
      ("-----BEGIN A-----\nAAA\n-----END A-----", .notBase64(label: "A")),
      ("-----BEGIN A-----\nAB==\n-----END A-----", .notBase64(label: "A")),
      ("-----BEGIN A-----\nAA==\nAAAA\n-----END A-----", .notBase64(label: "A")),
      ("-----BEGIN A-----\n(AAA)\n-----END A-----", .notBase64(label: "A")),
      ("-----BEGIN A-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END A-----", .encrypted),
    ] as [(String, PEMError)])
  func damaged(text: String, error: PEMError) {
    #expect(throws: error) { try blocks(text) }
    #expect(throws: error) { try blocks(Self.key.text + text) }
    #expect(!error.description.isEmpty)
  }

  @Test("no truncation passes for a shorter file")
  func truncated() throws {
    let text = [UInt8]((Self.certificate.text + Self.key.text).utf8)
    let first = Self.certificate.text.utf8.count
    for end in text.indices {
      let read = try? PEMBlock.blocks(in: Array(text[..<end]))
      // Whole blocks are read, with or without their last line break; cut in a word of the next
      // block's first line, the file holds text behind them.
      #expect(
        read == nil || read == [] || read == [Self.certificate]
          || read == [Self.certificate, Self.key])
      if (30..<(first - 1)).contains(end) { #expect(read == nil, "cut at \(end)") }
    }
  }
}
