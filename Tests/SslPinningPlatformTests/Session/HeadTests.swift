import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import Testing

/// In processes of their own: where Foundation hears such heads, it ends the process.
@Suite("The head of an answer on a pinned URLSession")
struct HeadTests {
  /// How a task ends that is answered with these bytes: its body, or the code of its error.
  private static func end(
    _ method: String, _ text: String, _ delivery: HTTPResponse.Delivery = .verbatim
  ) async throws -> String {
    let site = try PinnedSite { _ in HTTPResponse(body: Array(text.utf8), delivery: delivery) }
    var request = URLRequest(url: try site.url())
    request.httpMethod = method
    do {
      return String(decoding: try await site.session().data(for: request).0, as: UTF8.self)
    } catch let error as URLError {
      return "\(error.code.rawValue)"
    }
  }

  @Test("that is cut fails the task, whether anybody said that the connection would end")
  func cut() async {
    await #expect(processExitsWith: .success) {
      for delivery in [HTTPResponse.Delivery.torn, .verbatim] {
        for (method, text) in [
          ("GET", "HTTP/1.1 200 OK\r\n"), ("GET", "HTTP/1.1 200 OK\r\nX-A: b\r\n"),
          ("HEAD", "HTTP/1.1 200 OK\r\nX-A: b\r\n"), ("GET", "HTTP/1.1 204 No Content\r\n"),
          ("GET", "HTTP/1.1 103 Early Hints\r\n\r\n"),
          ("GET", "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n"),
        ] {
          let end = try await Self.end(method, text, delivery)
          guard end == "\(NSURLErrorBadServerResponse)" else {
            print(method, text, delivery, end)
            exit(3)
          }
        }
      }
    }
  }

  @Test(
    "leads nowhere by a location without a scheme whose host is none: that would end the process")
  func oddLocation() async {
    await #expect(processExitsWith: .success) {
      for location in [
        "//[::1]/", "//a%2fb/x", "\t//a%20b/", "//%00/", "//a:b@[::1]/", "\r\n //a%2fb/",
        "/\r\n /a%2fb/",
      ] {
        for status in [301, 302, 307] {
          let text =
            "HTTP/1.1 \(status) Found\r\nLocation: \(location)\r\nContent-Length: 2\r\n\r\nok"
          let end = try await Self.end("GET", text)
          // The location is refused, or none.
          guard end == "ok" || end.isEmpty || end.hasPrefix("-") else {
            print(location, status, end)
            exit(3)
          }
        }
      }
    }
  }

  @Test(
    "begins with a status line that has one meaning: libcurl reads 200 in some of which Foundation reads 302",
    arguments: [
      ("HTTP/1.1 200 OK", true), ("HTTP/1.1 200 ", true),
      ("HTTP/1.0 200 302 Found", true), ("HTTP/2 200 OK", true), ("HTTP/1.1\t200 302 Found", false),
      ("HTTP/2\t200 302 Found", false), ("HTTP/2200 302 Found", false),
      ("HTTP/2\u{b}200 302 Found", false), ("HTTP/3\t404 307 Found", false),
      ("HTTP/2200 200 OK", false), ("HTTP/1.10 200 OK", false), ("HTTP/1. 200 OK", false),
      ("HTTP/1.1  200 OK", false), ("HTTP/1.1 200\t302", false), ("HTTP/1.1 2000 OK", false),
    ])
  func statusLine(_ line: String, isOne: Bool) async throws {
    let end = try await Self.end("GET", "\(line)\r\nX: //a\r\nContent-Length: 2\r\n\r\nok")
    #expect((end == "ok") == isOne, "\(end)")
  }

  @Test("cannot hide a location that would end the process behind such a status line")
  func oddStatus() async {
    await #expect(processExitsWith: .success) {
      for line in [
        "HTTP/2\t200 302 F", "HTTP/2\t404 307 F", "HTTP/2\u{b}200 302 F", "HTTP/2200 302 F",
        "HTTP/.1 302 F", "HTTP/... 302 F", "HTTP/2404 307 F", "HTTP/1.1.1 302 F", "HTTP/2. 302 F",
      ] {
        let text = "\(line)\r\nLocation: //%00/\r\nContent-Length: 2\r\n\r\nok"
        guard try await Self.end("GET", text).hasPrefix("-") else { exit(3) }
      }
    }
  }

  @Test(
    "may have 500 lines and 64 KiB: more would keep all sessions of the process",
    .timeLimit(.minutes(1)))
  func bounded() async throws {
    func end(_ lines: Int, _ length: Int) async throws -> String {
      let field = "X-A: " + String(repeating: "b", count: length - 7) + "\r\n"
      return try await Self.end(
        "GET",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + String(repeating: field, count: lines)
          + "\r\nok")
    }
    #expect(try await end(490, 10) == "ok")
    #expect(try await end(60, 1000) == "ok")
    #expect(try await end(510, 10) != "ok")
    #expect(try await end(70, 1000) != "ok")
  }

  @Test("sets 50 cookies at most: Foundation writes all that it has for each")
  func cookies() async throws {
    func end(_ lines: [String]) async throws -> String {
      try await Self.end(
        "GET",
        (["HTTP/1.1 200 OK", "Content-Length: 2"] + lines + ["", "ok"]).joined(separator: "\r\n"))
    }
    func list(_ count: Int, _ separator: String) -> String {
      "Set-cookie: " + (0..<count).map { "a\($0)=b" }.joined(separator: separator)
    }
    #expect(try await end((0..<50).map { "Set-Cookie: a\($0)=b; HttpOnly" }) == "ok")
    #expect(try await end([list(50, ",")]) == "ok")
    #expect(try await end((0..<51).map { "Set-Cookie: a\($0)=b" }) != "ok")
    #expect(try await end([list(51, ",")]) != "ok")
    let dates = (0..<50).map { "Set-Cookie: a\($0)=b; Expires=Thu, 01 Jan 2037 00:00:00 GMT" }
    #expect(try await end(dates) == "ok")
    let value = (0..<60).map { "\"a\($0)\":0" }.joined(separator: ",")
    #expect(try await end(["Set-Cookie: prefs={" + value]) == "ok")
    #expect(try await end([list(40, ","), "\tx=y," + list(20, " , ").dropFirst(12)]) != "ok")
    #expect(try await end(["X-A: " + String(repeating: ",", count: 300)]) == "ok")
  }

  @Test("names no length that Foundation cannot count: that would end the process")
  func lengths() async {
    await #expect(processExitsWith: .success) {
      for (index, (length, isServed)) in [
        ("5", true), ("0005", true), ("9223372036854775807", false),
        ("\t 09223372036854775806", false), ("1000000000000000", false), ("5 \t", true),
        ("+9223372036854775807", false), ("+0009223372036854775807", false), ("+5", false),
        ("-1", false), ("0x5", false), ("5, 5", false), ("", false),
        ("\r\n 9223372036854775807", false),
        ("5\r\nX-A: b\r\n Content-Length: 9223372036854775807", true),
        ("5\r\nX-A: b\r\n c:d", true), ("5\r\nX-A : b", true), ("5\r\nX-A: b\rc", true),
      ].enumerated() {
        let end = try await Self.end(
          "GET", "HTTP/1.1 200 OK\r\ncontent-LENGTH: \(length)\r\n\r\nwhole")
        guard (end == "whole") == isServed else {
          exit(Int32(10 + index))
        }
      }
    }
  }

  @Test(
    "has no field that is none, and no cookie beyond ASCII: Foundation ends the process, or takes seconds"
  )
  func unreadable() async {
    await #expect(processExitsWith: .success) {
      let lines = [
        "Set-Cookie: a\u{315}=", "Set-Cookie: 👨‍👩‍👧=b", "X-A: b\r\n Set-Cookie: a\u{301}\u{301}=b",
        "Set-Cookie: a=b\r\n ; c\u{301}\u{301}=d", "a\u{315}\u{300}: b", "a\u{315}: b\r\n c",
        "\u{b}Set-Cookie: a\u{315}=", "Set-Cookie\u{c}: a\u{315}=", ":Set-Cookie: a\u{315}=",
        "X-A: b\r\n \u{b}Set-Cookie: a\u{315}=", "X-A: b,\rSet-Cookie: a\u{315}=",
        "HTTP/a\u{315}: b",
        "Content-Disposition: attachment; filename="
          + String(repeating: "a\u{315}\u{300}", count: 4000),
      ]
      for line in lines {
        let head = "HTTP/1.1 200 \u{fc}\r\nContent-Length: 2\r\nX-B: \u{fc}\r\n\(line)\r\n\r\nok"
        let site = try PinnedSite { _ in HTTPResponse(body: Array(head.utf8), delivery: .verbatim) }
        for isSession in [true, false] {
          let (body, response) =
            isSession
            ? try await site.session().data(from: site.url())
            : try await site.transport.data(for: URLRequest(url: site.url()))
          let fields = (response as? HTTPURLResponse)?.allHeaderFields ?? [:]
          let names = fields.keys.compactMap { $0 as? String }
          guard body == Data("ok".utf8), names.contains("X-B"),
            !names.contains("Content-Disposition"),
            names.allSatisfy({ $0.utf8.allSatisfy { $0 < 0x80 } })
          else { exit(isSession ? 3 : 4) }
        }
      }
    }
  }

  @Test("is whole without its trailers, and all there is of them stays away")
  func trailers() async {
    await #expect(processExitsWith: .success) {
      let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n"
      for trailers in ["A: b\r\n", "A: b\r\n folded\r\nB: c\r\n"] {
        guard try await Self.end("GET", head + trailers + "\r\n") == "whole" else { exit(3) }
      }
      // libcurl takes no line without a colon for a trailer, in some versions: that fails the task, and no more.
      let end = try await Self.end("GET", head + "HTTP/1.1 200 OK\r\n\r\n")
      guard ["whole", "\(NSURLErrorUnknown)"].contains(end) else { exit(4) }
    }
  }

  @Test("fails the task if its trailers have no end: libcurl keeps them all")
  func endlessTrailers() async {
    await #expect(processExitsWith: .success) {
      let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n"
      let trailer = "A: " + String(repeating: "b", count: 1000) + "\r\n"
      for (count, isWhole) in [(200, true), (300, false)] {
        let trailers = String(repeating: trailer, count: count) + "\r\n"
        let end = try? await Self.end("GET", head + trailers)
        guard (end == "whole") == isWhole else { exit(3) }
      }
    }
  }

  @Test("comes behind as many early ones as there are")
  func early() async throws {
    let text =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
      + "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole"
    #expect(try await Self.end("GET", text) == "whole")
  }
}
