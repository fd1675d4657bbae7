import Testing

@testable import RegistryServer

@Suite("Requests that are too long", .timeLimit(.minutes(2))) struct HTTPHeadLimitTests {
  static let requests: [HostileRequest] = [
    .target("a target at the limit", "/ok?" + repeated("a", 4092), 200),
    .target("a target beyond the limit", "/ok?" + repeated("a", 4093), 414),
    .target("a path beyond the limit", "/" + repeated("a", 4096), 414),
    .target("a target of 10 KB", "/" + repeated("a", 10_000), 414),
    .target("a target of 64 KB", "/" + repeated("a", 65_536), 414),
    .target("escapes beyond the limit", "/" + repeated("%61", 1400), 414),
    .lines("64 lines", repeated("X: y\r\n", 62) + "Connection: close\r\n", 200),
    .lines("65 lines", repeated("X: y\r\n", 63) + "Connection: close\r\n", 431),
    .lines("1000 lines", repeated("X: y\r\n", 1000), 431),
    .lines("10000 lines without values", repeated("X:\r\n", 10_000), 431),
    .lines("a line of 4 KB", "X: \(repeated("y", 4096))\r\nConnection: close\r\n", 200),
    .lines("a line of 20 KB", "X: \(repeated("y", 20_000))\r\n", 431),
    .lines("a name of 20 KB", "\(repeated("X", 20_000)): y\r\n", 431),
    .lines("20 KB without a colon", "\(repeated("X", 20_000))\r\n", 431),
    .lines("blanks of 20 KB", "X: \(repeated(" ", 20_000))y\r\n", 431),
    .lines("20 lines of 1 KB", repeated("X: \(repeated("y", 1000))\r\n", 20), 431),
    .lines("cookies beyond libmicrohttpd's memory", "Cookie: \(repeated("a;", 3000))\r\n", .closed),
    .lines(
      "a cookie of equals signs", "Cookie: \(repeated("=", 3000))\r\nConnection: close\r\n", 200),
    HostileRequest("a method of 20 KB", "\(repeated("G", 20_000)) /ok HTTP/1.1\r\n\r\n", 414),
    HostileRequest("64 KB without a line end", repeated("a", 65_536), 414),
    HostileRequest("64 KB of NULs", repeated("\0", 65_536), 414),
    HostileRequest(
      "1000 empty lines, then a request",
      repeated("\r\n", 1000) + "GET /ok HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 200),
  ]

  @Test("a head is bounded", arguments: requests)
  func bounded(_ request: HostileRequest) async throws { try await request.verify() }
}
