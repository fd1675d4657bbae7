import Foundation

/// An answer with a length, as the registry server gives them.
struct PlainAnswer: Equatable {
  var status: Int
  var body: [UInt8]
  /// Whether the server ends the connection behind it.
  var isLast: Bool

  /// The first answer in what was received, once all of it is there, and how many bytes it takes.
  static func first(in bytes: [UInt8]) throws(PlainFailure) -> (PlainAnswer, length: Int)? {
    guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
    let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).lowercased()
      .split(separator: "\r\n")
    let words = (lines.first ?? "").split(separator: " ")
    func field(_ name: String) -> String? {
      lines.first { $0.hasPrefix("\(name):") }?.dropFirst(name.count + 1)
        .trimmingCharacters(in: .whitespaces)
    }
    guard words.count >= 2, words[0] == "http/1.1", let status = Int(words[1]),
      let length = field("content-length").flatMap({ Int($0) })
    else { throw .malformed }
    let body = bytes[end.upperBound...]
    guard body.count >= length else { return nil }
    return (
      PlainAnswer(
        status: status, body: Array(body.prefix(length)), isLast: field("connection") == "close"),
      end.upperBound + length
    )
  }
}
