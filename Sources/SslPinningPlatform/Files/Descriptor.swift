#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#endif

/// An open file's number, closed when its holder lets go.
struct Descriptor: ~Copyable {
  let number: Int32

  init(_ number: Int32) { self.number = number }

  deinit {
    if isOpen { _ = close(number) }
  }

  var isOpen: Bool { number >= 0 }

  /// Whether it has places to read from: no pipe, socket or terminal. (A directory has some, and fails to be read.)
  ///
  /// Not by `fstat`: Apple has apps give a reason for it, because it tells times.
  var hasPlaces: Bool { lseek(number, 0, SEEK_CUR) >= 0 }

  /// Up to `limit` bytes from where the file stands; none at its end, `nil` and `errno` on failure.
  borrowing func bytes(limit: Int) -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: limit)
    let count = retrying { read(number, &buffer, limit) }
    return count < 0 ? nil : Array(buffer.prefix(count))
  }

  /// Writes all bytes; false and `errno` on failure.
  borrowing func append(_ bytes: [UInt8]) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = retrying { rest.withUnsafeBytes { write(number, $0.baseAddress, $0.count) } }
      guard count >= 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }
}

/// A system call's answer, asked again as long as signals interrupt it.
func retrying<Number: SignedInteger>(_ call: () -> Number) -> Number {
  while true {
    let answer = call()
    if answer != -1 || errno != EINTR { return answer }
  }
}
