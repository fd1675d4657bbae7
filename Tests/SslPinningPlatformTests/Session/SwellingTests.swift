import CSslPinningShims
import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import Testing

/// libcurl decodes all of a read in one go, and all requests of the process wait for it.
@Suite("An answer that swells while it is decoded") struct SwellingTests {
  /// 256 MiB of zeros.
  private static let brotli =
    "z///fwAkAOKxQHLv//n//w+ABEAcFoDu/T////8BkACIwwLQvf/n//8/ABIAcVgAuvf//P//B0ACIA4LQPf+n////wBIAMRhAeje"
    + "//P//x8ACYA4LADd+3/+//8DIAEQhwWge//P//9/ACQA4rAAdO//+f//D4AEQBwWgO79P////wGQAIjDAtC9/+f//z8AEgBxWAC6"
    + "9//8//8HQAIgDgtA9/6f////AEgAxGEB6N7/8///HwAJgDgsAN37f/7//wMgARCHBaB7/z8="

  /// What a command writes.
  private static func output(of command: String) throws -> [UInt8] {
    let process = Process()
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = ["-c", command]
    let pipe = Pipe()
    process.standardOutput = pipe
    try process.run()
    let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return Array(output)
  }

  private static let megabytes = 30

  @Test(
    "fails beyond what gzip can make of it, with a session and without one",
    arguments: [
      HTTPResponse.Delivery.whole, .chunked(pieceBytes: 32_768),
      // Of each turn a read.
      .drip(pieceBytes: 16_384, pauseMilliseconds: 50),
    ])
  func bounded(delivery: HTTPResponse.Delivery) async throws {
    let zeros = "head -c \(Self.megabytes << 20) /dev/zero | gzip -9"
    let bodies = try [
      "/br": ("br", [UInt8](#require(Data(base64Encoded: Self.brotli)))),
      "/gzip": ("gzip", Self.output(of: zeros)),
      // A thousand times, read by read.
      "/more": ("gzip", Self.output(of: "head -c 80M /dev/zero | gzip -9")),
      "/twice": ("gzip, gzip", Self.output(of: "head -c 256M /dev/zero | gzip -9 | gzip -9")),
      // Of two codings one may leave nothing.
      "/none": ("gzip, gzip", Self.output(of: "head -c 1K /dev/zero | gzip | gzip")),
    ]
    let site = try PinnedSite { request in
      guard let (coding, body) = bodies[request.path] else { return .text("hello") }
      return HTTPResponse(
        headers: [HTTPField("Content-Encoding", coding)], body: body, delivery: delivery)
    }
    let session = site.session()
    for (path, isServed) in [
      ("/br", false), ("/gzip", true), ("/more", false), ("/twice", false), ("/none", false),
      ("/", true),
    ] {
      let url = try site.url(path)
      let length = path == "/" ? 5 : Self.megabytes << 20
      let answers = [
        try? await session.data(from: url).0,
        try? await site.transport.data(for: URLRequest(url: url)).0,
      ]
      #expect(
        answers.map { $0?.count } == Array(repeating: isServed ? length : nil, count: 2), "\(path)")
    }
  }

  @Test("or that leads elsewhere with more than 1 MiB: Foundation copies all of it at each piece")
  func redirect() async throws {
    let zeros = try Self.output(of: "head -c 4M /dev/zero | gzip -9")
    let site = try PinnedSite { request in
      if request.path == "/there" { return .text("hello") }
      let body = request.path == "/small" ? [] : zeros
      return HTTPResponse(
        status: 302,
        headers: [HTTPField("Location", "/there"), HTTPField("Content-Encoding", "gzip")]
          .filter { $0.name == "Location" || !body.isEmpty }, body: body)
    }
    let session = site.session()
    #expect(try await session.data(from: site.url("/small")).0 == Data("hello".utf8))
    await #expect(throws: URLError.self) { try await session.data(from: site.url("/large")) }
  }

  @Test("ends for who reads it slowly, too, and takes nothing from another that is read so")
  func slowly() async throws {
    let swelling = try Self.output(of: "head -c 80M /dev/zero | gzip -9")
    let honest = (0..<(8 << 20)).map { UInt8(truncatingIfNeeded: $0 >> 8 ^ $0) }
    let site = try PinnedSite { request in
      request.path == "/"
        ? HTTPResponse(body: honest)
        : HTTPResponse(headers: [HTTPField("Content-Encoding", "gzip")], body: swelling)
    }
    let (honestBytes, _) = try await site.transport.bytes(for: URLRequest(url: site.url("/")))
    let (swellingBytes, _) = try await site.transport.bytes(for: URLRequest(url: site.url("/gzip")))
    var reader = honestBytes.makeAsyncIterator()
    var read = try await reader.next() ?? Data()
    let error = await #expect(throws: URLError.self) {
      for try await _ in swellingBytes { await Task.yield() }
    }
    // Not a time-out.
    #expect(error?.code == .badServerResponse)
    while let chunk = try await reader.next() { read += chunk }
    #expect(Array(read) == honest)
  }

  /// 63 MiB of zeros, of which libcurl would keep all while the reader is behind.
  private static let brotliOfOneRead =
    "y///PwAkAOKxQHLv//j//weABEAcFoDu/R////8AkACIwwLQvf/j//8fABIAcVgAuvd//P//A0ACIA4LQPf+j///fwBIAMRhAeje//H/"
    + "/w8ACYA4LADd+7/8/38DIAEQhwWge/8G"

  @Test("comes to who does not read it by no more than some 8 MiB, and whole in the end")
  func behind() async throws {
    // Thirty times as small.
    let line =
      "seq -f '%.0f a line of text with some repetition in it, again and again and again' 400000"
    let text = try Self.output(of: line)
    let body = try Self.output(of: "\(line) | gzip -9")
    let site = try PinnedSite { _ in
      HTTPResponse(headers: [HTTPField("Content-Encoding", "gzip")], body: body)
    }
    let (chunks, _) = try await site.transport.bytes(for: URLRequest(url: site.url("/")))
    var (count, largest) = (0, 0)
    for try await chunk in chunks {
      count += chunk.count
      largest = max(largest, chunk.count)
      await Task.yield()
    }
    #expect(count == text.count)
    #expect(largest < 16 << 20)
  }

  @Test("ends for who reads it as it comes, though one read is all of it")
  func streamed() async throws {
    let body = try [UInt8](#require(Data(base64Encoded: Self.brotliOfOneRead)))
    let site = try PinnedSite { _ in
      HTTPResponse(headers: [HTTPField("Content-Encoding", "br")], body: body)
    }
    let (chunks, _) = try await site.transport.bytes(for: URLRequest(url: site.url("/")))
    let error = await #expect(throws: URLError.self) { for try await _ in chunks {} }
    #expect(error?.code == .badServerResponse)
  }

  /// Of HTTP/2 a hundred may come in one read.
  @Test(
    "ends beyond 1 MiB, if others of its turn have 64 MiB already, and one that does not swell goes on"
  )
  func turn() {
    let received: pp_info_function = { easy, _, value in
      UnsafeMutableRawPointer(value)?.storeBytes(
        of: easy.map { Int64(Int(bitPattern: $0)) } ?? 0, as: Int64.self)
      return .init(rawValue: 0)
    }
    /// Enters megabytes of an answer of which so many bytes were received.
    func ends(_ answer: inout pp_swelling, _ megabytes: Int, of bytes: Int) -> Bool {
      pp_body_ends(&answer, megabytes << 20, UnsafeMutableRawPointer(bitPattern: bytes), received)
    }
    var answers = Array(repeating: pp_swelling(), count: 6)
    pp_turn_begin()
    #expect((0..<4).allSatisfy { !ends(&answers[$0], 16, of: 102) })
    #expect(ends(&answers[4], 2, of: 102))
    #expect(!ends(&answers[5], 2, of: 1 << 20))
    pp_turn_end()
    #expect(!ends(&answers[0], 2, of: 102), "what libcurl kept may not be lost")
    pp_turn_begin()
    #expect(!ends(&answers[1], 2, of: 102), "each turn has its own")
    pp_turn_end()
  }
}
