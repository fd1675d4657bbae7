import Foundation

/// A `sockaddr` of either family.
struct SocketAddress {
  private var storage = sockaddr_storage()
  private var length: socklen_t

  var family: Int32 { Int32(storage.ss_family) }

  /// Takes an address as the resolver or the kernel gave it.
  init?(_ address: UnsafePointer<sockaddr>, length: socklen_t) {
    guard Int(length) <= MemoryLayout<sockaddr_storage>.size else { return nil }
    self.length = length
    withUnsafeMutableBytes(of: &storage) {
      $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: Int(length)))
    }
  }

  init(_ endpoint: Endpoint) throws(SocketError) {
    var v4 = sockaddr_in()
    var v6 = sockaddr_in6()
    if inet_pton(AF_INET, endpoint.address, &v4.sin_addr) == 1 {
      v4.sin_family = sa_family_t(AF_INET)
      v4.sin_port = endpoint.port.bigEndian
      length = socklen_t(MemoryLayout<sockaddr_in>.size)
      withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: v4, as: sockaddr_in.self) }
    } else if inet_pton(AF_INET6, endpoint.address, &v6.sin6_addr) == 1 {
      v6.sin6_family = sa_family_t(AF_INET6)
      v6.sin6_port = endpoint.port.bigEndian
      length = socklen_t(MemoryLayout<sockaddr_in6>.size)
      withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: v6, as: sockaddr_in6.self) }
    } else {
      throw .notAnAddress(endpoint.address)
    }
  }

  /// The address and port as text; nil for a family that is neither IPv4 nor IPv6.
  var endpoint: Endpoint? {
    withUnsafeBytes(of: storage) { bytes in
      var text = [CChar](repeating: 0, count: 64)
      switch family {
      case AF_INET:
        var address = bytes.load(as: sockaddr_in.self)
        inet_ntop(AF_INET, &address.sin_addr, &text, socklen_t(text.count))
        return Endpoint(address: Self.string(text), port: UInt16(bigEndian: address.sin_port))
      case AF_INET6:
        var address = bytes.load(as: sockaddr_in6.self)
        inet_ntop(AF_INET6, &address.sin6_addr, &text, socklen_t(text.count))
        return Endpoint(address: Self.string(text), port: UInt16(bigEndian: address.sin6_port))
      default: return nil
      }
    }
  }

  /// Hands the address to a system call.
  func withSockaddr<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
    withUnsafePointer(to: storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
    }
  }

  private static func string(_ text: [CChar]) -> String {
    String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
