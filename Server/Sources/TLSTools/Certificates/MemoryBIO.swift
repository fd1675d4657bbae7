import CSslPinningOpenSSL

/// A memory buffer for OpenSSL's PEM readers and writers.
final class MemoryBIO {
  let pointer: OpaquePointer

  /// An empty buffer to write into.
  init() throws(CertificateError) {
    guard let bio = BIO_new(BIO_s_mem()) else {
      throw .openSSL(operation: "allocating a buffer", reason: OpenSSLErrors.drain())
    }
    pointer = bio
  }

  /// A buffer that holds a copy of `bytes`.
  convenience init(_ bytes: [UInt8]) throws(CertificateError) {
    try self.init()
    guard let count = Int32(exactly: bytes.count) else {
      throw .malformed(what: "PEM text", reason: "longer than 2 GiB")
    }
    if count > 0, BIO_write(pointer, bytes, count) != count {
      throw .openSSL(operation: "filling a buffer", reason: OpenSSLErrors.drain())
    }
  }

  deinit { BIO_free(pointer) }

  /// What was written so far.
  var bytes: [UInt8] {
    var start: UnsafeMutablePointer<CChar>?
    let count = BIO_ctrl(pointer, BIO_CTRL_INFO, 0, &start)
    guard count > 0, let start else { return [] }
    return UnsafeRawBufferPointer(start: start, count: count).map { $0 }
  }

  var text: String { String(decoding: bytes, as: UTF8.self) }
}
