import CMicroHTTPD
import Foundation

/// Answers the requests that libmicrohttpd 0.9.75 answers with two heads.
///
/// It looks at `Content-Length` and the cookies of a whole head before any handler is asked. What it
/// refuses then, it refuses twice over on the same connection, one head behind the other. It does
/// tell its log first, on the connection's thread: here the refusal is sent in its place and the
/// socket is shut down, so that what it writes goes nowhere. Over TLS the connection just ends.
enum FaultyHeadGuard {
  static let logged: MHD_LogCallback = { context, _, _ in
    guard let context else { return }
    let daemon = Unmanaged<HTTPDaemon.Context>.fromOpaque(context).takeUnretainedValue()
    let current = pthread_self()
    let faulty = daemon.site.deadlines.withOpen { connections in
      // A head is complete and its handler was not asked: there is one such connection at most.
      connections.first {
        pthread_equal($0.thread, current) != 0 && $0.phase == .header
          && pp_mhd_header_size($0.pointer) > 0
      }
    }
    // It is this thread's, so nobody closes it meanwhile.
    guard let faulty else { return }
    faulty.phase = .answering
    daemon.site.answered(faulty, HTTPRefusal.badHeader.status)
    if !daemon.isTLS {
      _ = answer.withUnsafeBytes {
        send(
          faulty.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
      }
    }
    shutdown(faulty.descriptor, Int32(SHUT_RDWR))
  }

  private static let answer: [UInt8] = {
    let refusal = HTTPRefusal.badHeader
    var lines = ["HTTP/1.1 400 Bad Request", "Connection: close"]
    lines += refusal.headers.map { "\($0.name): \($0.value)" }
    lines += ["Content-Length: \(refusal.body.count)", "", ""]
    return Array(lines.joined(separator: "\r\n").utf8) + refusal.body
  }()
}
