#if os(Linux)
  import Foundation
  import FoundationNetworking

  /// Makes `HTTPURLResponse`s of heads as they came.
  ///
  /// - Foundation takes longer to make one than libcurl takes for the whole request, and a server's
  ///   heads mostly repeat to the byte. A response is immutable, so the newest one of a URL is handed
  ///   out again as long as its head repeats.
  /// - Only of small heads, which most are: what hundreds of URLs keep is bounded by it.
  final class ResponseInterner: Sendable {
    private struct Newest {
      var head: [UInt8]
      var response: HTTPURLResponse
    }

    /// The largest head that is kept, in bytes.
    private static let largest = 8 * 1024

    private let newest = Locked<Newest?>(nil)

    /// The response with this very head, where the newest one had it.
    func response(repeating head: [UInt8]) -> HTTPURLResponse? {
      newest.withLock { $0?.head == head ? $0?.response : nil }
    }

    static func areEqual(_ a: [UInt8], _ b: UnsafeRawBufferPointer) -> Bool {
      guard a.count == b.count, let second = b.baseAddress else { return false }
      return a.withUnsafeBytes { bytes in
        bytes.baseAddress.map { memcmp($0, second, bytes.count) == 0 } ?? false
      }
    }

    func response(head: [UInt8], url: URL) -> HTTPURLResponse? {
      guard let response = ResponseHead(head).response(for: url) else { return nil }
      if head.count <= Self.largest {
        newest.withLock { $0 = Newest(head: head, response: response) }
      }
      return response
    }
  }

  /// A response's head, read: status line and fields (RFC 9112 section 4 and 5).
  struct ResponseHead {
    var status = 0
    var version = ""
    /// The most bytes of lines beyond ASCII that are read.
    private static let mostOddBytes = 8 * 1024
    /// Fields of the same name united with a comma (RFC 9110 section 5.3), and the lines of a folded one with a space (RFC 9112
    /// section 5.2).
    var fields: [String: String] = [:]

    init(_ bytes: [UInt8]) {
      var names: [String: String] = [:]
      var isFirst = true
      var oddBytes = 0
      // What a line that begins with a blank goes on with; not with a field that was left out.
      var last: String?
      for line in bytes.split(separator: UInt8(ascii: "\n")) {
        let line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
        if isFirst {
          let words = line.split(separator: UInt8(ascii: " "), maxSplits: 2)
          version = words.first.map { String(decoding: $0, as: UTF8.self) } ?? ""
          status = words.count > 1 ? Int(String(decoding: words[1], as: UTF8.self)) ?? 0 : 0
          isFirst = false
          continue
        }
        let folded = line.first.map(Self.isBlank) == true ? last : nil
        last = nil
        // As on a session: a name of a file in characters that combine costs Foundation a time that grows with the square.
        if line.contains(where: { $0 >= 0x80 }) {
          oddBytes += line.count
          guard oddBytes <= Self.mostOddBytes else { continue }
        }
        if let folded {
          let space = fields[folded]?.isEmpty == true ? "" : " "
          fields[folded, default: ""] += space + String(decoding: Self.trimmed(line), as: UTF8.self)
          last = folded
          continue
        }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")),
          HeaderRule.isToken(line[..<colon])
        else { continue }
        let name = String(decoding: line[..<colon], as: UTF8.self)
        let value = String(
          decoding: Self.trimmed(line[line.index(after: colon)...]), as: UTF8.self)
        let key = name.lowercased()
        let known = names[key] ?? name
        names[key] = known
        fields[known] = fields[known].map { $0 + ", " + value } ?? value
        last = known
      }
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    private static func trimmed(_ value: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
      var value = value.drop(while: isBlank)
      while let last = value.last, isBlank(last) { value.removeLast() }
      return value
    }

    func response(for url: URL) -> HTTPURLResponse? {
      HTTPURLResponse(url: url, statusCode: status, httpVersion: version, headerFields: fields)
    }
  }
#endif
