// A stub of Apple's CoreFoundation: the used part, declared by hand from Apple's public
// documentation. Only ever type-checked, never run, linked or shipped. Its classes are no
// subclasses of NSObject, as in the SDK; there each is bridged with a class of Foundation, which
// stands in Foundation's stub as another name for it.

public typealias CFTypeRef = AnyObject
public typealias CFIndex = Int

open class _CFObject: Hashable {
  init() {}
  public static func == (left: _CFObject, right: _CFObject) -> Bool { fatalError() }
  public func hash(into hasher: inout Hasher) {}
}
public final class CFAllocator: _CFObject {}
public final class CFString: _CFObject {}
public final class CFData: _CFObject {}
public final class CFDate: _CFObject {}
public final class CFArray: _CFObject {}
public final class CFDictionary: _CFObject {}

public final class CFError: _CFObject, Error, @unchecked Sendable {}
public func CFErrorGetCode(_ err: CFError!) -> CFIndex { fatalError() }
public func CFErrorCopyDescription(_ err: CFError!) -> CFString! { fatalError() }

public struct CGFloat: Hashable, Sendable {}
public struct CGRect: Sendable {
  public static let zero = CGRect()
}
