import Foundation
import TestSupport
import Testing

@testable import RegistryServer

/// A request that no well-meaning client sends, and what it gets.
struct HostileRequest: Sendable, CustomTestStringConvertible {
  enum Outcome: Sendable, Equatable, ExpressibleByIntegerLiteral {
    /// One answer with this status, and the end of the connection.
    case status(Int)
    /// The same from libmicrohttpd, which writes the head of some of its refusals twice: the second one is
    /// where the answer's body should be, and then the connection ends (ADR 16).
    case twice(Int)
    /// The end of the connection, without an answer.
    case closed

    init(integerLiteral status: Int) { self = .status(status) }
  }

  let name: String
  let bytes: [UInt8]
  let outcome: Outcome

  /// - Parameter request: each character is one byte, up to U+00FF.
  init(_ name: String, _ request: String, _ outcome: Outcome) {
    self.name = name
    bytes = request.unicodeScalars.map { UInt8($0.value) }
    self.outcome = outcome
  }

  /// A GET with further header lines, each with its end.
  static func lines(_ name: String, _ lines: String, _ outcome: Outcome) -> HostileRequest {
    HostileRequest(name, "GET /ok HTTP/1.1\r\nHost: x\r\n\(lines)\r\n", outcome)
  }

  /// A GET with this target.
  static func target(_ name: String, _ target: String, _ outcome: Outcome) -> HostileRequest {
    HostileRequest(name, "GET \(target) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", outcome)
  }

  /// A POST with these header lines, and what follows them.
  static func post(
    _ name: String, _ lines: String, _ body: String, _ outcome: Outcome
  ) -> HostileRequest {
    HostileRequest(name, "POST /body HTTP/1.1\r\nHost: x\r\n\(lines)\r\n\(body)", outcome)
  }

  var testDescription: String { name }

  /// What would be answered if the connection went on.
  private static let next = Array("GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".utf8)

  /// Sends the request with another one behind it; then the server must still serve everybody else.
  func verify(_ bytes: [UInt8]? = nil) async throws {
    let server = try HTTPBench.start()
    let connection = try RawConnection(server.address)
    connection.send(bytes ?? self.bytes)
    connection.send(Self.next)
    let answer = try #require(try await connection.readToEnd(), "the connection does not end")
    let heads = answer.components(separatedBy: "HTTP/1.").dropFirst().map { $0.dropFirst(2) }
    switch outcome {
    case .closed: #expect(answer.isEmpty, "\(answer)")
    case .status(let status):
      #expect(heads.map { Int($0.prefix(3)) } == [status], "\(answer)")
      if status != 200 { #expect(answer.contains("Connection: close\r\n"), "\(answer)") }
    case .twice(let status):
      #expect(heads.map { Int($0.prefix(3)) } == [status, status], "\(answer)")
      let parts = answer.components(separatedBy: "\r\n\r\n")
      #expect(parts[0].contains("Connection: close\r\n"), "\(answer)")
      #expect(parts[1].hasPrefix("HTTP/1.1 "), "\(answer)")
    }
    let good = try await RawConnection.ask(
      server.address, "GET /ok HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    #expect(good.hasPrefix("HTTP/1.1 200 ") && good.hasSuffix("ok"))
    #expect(server.bodyBytes == 0)
    await server.stop()
  }
}
