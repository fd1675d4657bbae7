import Foundation
import SslPinningPlatform

/// A service manager's socket, as sd_notify(3) has it: keeps what it is told.
public final class NotifySocket: Sendable {
  /// What `NOTIFY_SOCKET` has to be: a path, or `@` and a name in the abstract namespace.
  public let name: String
  private let descriptor: Int32
  private let heard = Locked<[String]>([])

  /// Listens at this name.
  public init(_ name: String) throws {
    self.name = name
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = name.hasPrefix("@") ? [0] + Array(name.utf8.dropFirst()) : Array(name.utf8) + [0]
    let room = MemoryLayout.size(ofValue: address.sun_path)
    guard bytes.count <= room else { throw POSIXError(.ENAMETOOLONG) }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let length = socklen_t(MemoryLayout<sockaddr_un>.size - room + bytes.count)
    let code = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
    }
    guard code == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
  }

  deinit { close(descriptor) }

  /// All messages so far.
  public var messages: [String] {
    heard.withLock { heard in
      var buffer = [UInt8](repeating: 0, count: 4096)
      while case let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT)),
        count > 0
      {
        heard.append(String(decoding: buffer.prefix(count), as: UTF8.self))
      }
      return heard
    }
  }

  /// The assignments of all messages so far, such as `READY=1`.
  public var lines: [String] { messages.flatMap { $0.split(separator: "\n").map(String.init) } }
}
