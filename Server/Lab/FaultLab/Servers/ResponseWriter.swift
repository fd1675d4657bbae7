import TLSTools

/// Writes one answer in the way its `delivery` asks for.
struct ResponseWriter {
  let stream: ByteStream
  let stop: EventSignal

  /// - Returns: false when the connection has to end after this answer.
  func send(
    _ response: HTTPResponse, to method: String, keepsAlive: Bool
  ) throws(SocketError) -> Bool {
    switch response.delivery {
    case .hangUp: return false
    case .verbatim:
      try write(response.body)
      return false
    case .torn:
      try write(response.body)
      stream.leaveQuietly()
      return false
    case .whole:
      try write(head(response, length: response.body.count, keepsAlive) + payload(response, method))
    case .drip(let size, let pause):
      try write(head(response, length: response.body.count, keepsAlive))
      try writePieces(payload(response, method), size: size, pause: pause, inChunks: false)
    case .chunked(let size, let pause):
      try write(head(response, length: nil, keepsAlive))
      guard method != "HEAD" else { break }
      try writePieces(response.body, size: size, pause: pause, inChunks: true)
      try write(Array("0\r\n\r\n".utf8))
    case .endless(let pause):
      try write(head(response, length: nil, keepsAlive))
      while !response.body.isEmpty {
        try writePieces(response.body, size: response.body.count, pause: pause, inChunks: true)
      }
    case .cutOff(let count):
      try write(
        head(response, length: response.body.count, keepsAlive)
          + response.body.prefix(max(0, count))
      )
      return false
    }
    return true
  }

  private func payload(_ response: HTTPResponse, _ method: String) -> [UInt8] {
    method == "HEAD" || Self.hasNoBody(response.status) ? [] : response.body
  }

  private func head(_ response: HTTPResponse, length: Int?, _ keepsAlive: Bool) -> [UInt8] {
    var text = "HTTP/1.1 \(response.status) \(Self.reason(response.status))\r\n"
    for field in response.headers { text += "\(field.name): \(field.value)\r\n" }
    if let length {
      if !Self.hasNoBody(response.status) { text += "Content-Length: \(length)\r\n" }
    } else {
      text += "Transfer-Encoding: chunked\r\n"
    }
    if !keepsAlive { text += "Connection: close\r\n" }
    return Array((text + "\r\n").utf8)
  }

  private func writePieces(
    _ bytes: [UInt8], size: Int, pause: Int, inChunks: Bool
  ) throws(SocketError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      guard stop.sleep(milliseconds: pause) else { throw .stopped }
      let piece = Array(rest.prefix(max(1, size)))
      try write(inChunks ? Self.chunk(piece) : piece)
      rest = rest.dropFirst(piece.count)
    }
  }

  /// A reader that takes nothing for a minute has gone away.
  private func write(_ bytes: [UInt8]) throws(SocketError) {
    try stream.write(bytes, until: .after(milliseconds: 60_000))
  }

  private static func chunk(_ piece: [UInt8]) -> [UInt8] {
    Array("\(String(piece.count, radix: 16))\r\n".utf8) + piece + [13, 10]
  }

  /// RFC 9110 sections 15.2, 15.3.5 and 15.4.5.
  private static func hasNoBody(_ status: Int) -> Bool {
    (100..<200).contains(status) || status == 204 || status == 304
  }

  private static func reason(_ status: Int) -> String {
    switch status {
    case 200: "OK"
    case 204: "No Content"
    case 301: "Moved Permanently"
    case 302: "Found"
    case 304: "Not Modified"
    case 307: "Temporary Redirect"
    case 400: "Bad Request"
    case 401: "Unauthorized"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 500: "Internal Server Error"
    case 502: "Bad Gateway"
    case 503: "Service Unavailable"
    default: "Status"
    }
  }
}
