// A stub of Darwin: the used calls, as Swift sees them on Apple's systems. Only ever type-checked.

public typealias mode_t = UInt16
public typealias off_t = Int64

public var errno: Int32 {
  get { fatalError() }
  set {}
}
public var EINTR: Int32 { fatalError() }
public var ENOENT: Int32 { fatalError() }
public var ENOTDIR: Int32 { fatalError() }
public var EEXIST: Int32 { fatalError() }
public var O_RDONLY: Int32 { fatalError() }
public var O_WRONLY: Int32 { fatalError() }
public var O_RDWR: Int32 { fatalError() }
public var O_CREAT: Int32 { fatalError() }
public var O_TRUNC: Int32 { fatalError() }
public var O_CLOEXEC: Int32 { fatalError() }
public var O_NOFOLLOW: Int32 { fatalError() }
public var O_NONBLOCK: Int32 { fatalError() }
public var SEEK_CUR: Int32 { fatalError() }
public var LOCK_EX: Int32 { fatalError() }
public var LOCK_NB: Int32 { fatalError() }
public var EWOULDBLOCK: Int32 { fatalError() }

public func open(_ path: UnsafePointer<CChar>, _ flags: Int32) -> Int32 { fatalError() }
public func open(_ path: UnsafePointer<CChar>, _ flags: Int32, _ mode: mode_t) -> Int32 {
  fatalError()
}
public func close(_ descriptor: Int32) -> Int32 { fatalError() }
public func read(_ descriptor: Int32, _ bytes: UnsafeMutableRawPointer!, _ count: Int) -> Int {
  fatalError()
}
public func write(_ descriptor: Int32, _ bytes: UnsafeRawPointer!, _ count: Int) -> Int {
  fatalError()
}
public func lseek(_ descriptor: Int32, _ offset: off_t, _ whence: Int32) -> off_t { fatalError() }
public func fsync(_ descriptor: Int32) -> Int32 { fatalError() }
public func flock(_ descriptor: Int32, _ operation: Int32) -> Int32 { fatalError() }
public typealias useconds_t = UInt32
public func usleep(_ microseconds: useconds_t) -> Int32 { fatalError() }
public func rename(_ from: UnsafePointer<CChar>!, _ to: UnsafePointer<CChar>!) -> Int32 {
  fatalError()
}
public func mkdir(_ path: UnsafePointer<CChar>!, _ mode: mode_t) -> Int32 { fatalError() }
public func strerror(_ number: Int32) -> UnsafeMutablePointer<CChar>! { fatalError() }
public struct clockid_t: Sendable {}
public var CLOCK_MONOTONIC_RAW: clockid_t { fatalError() }
public func clock_gettime_nsec_np(_ clock: clockid_t) -> UInt64 { fatalError() }
