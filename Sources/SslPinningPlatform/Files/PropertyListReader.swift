import Foundation
import SslPinningRules

/// Reads property lists, XML and binary, into plain values.
///
/// - Strict about types: a boolean is one only where the file says `<true/>` or `<false/>`.
///   Foundation's bridging takes the number 1 for true, on every platform.
/// - The old text format is refused: it has no booleans, and nearly every text is one.
/// - Bounded in size and depth.
///
/// Where a dictionary of an XML file has one key twice, Foundation keeps one of the two values
/// without a word: nothing here can tell.
public enum PropertyListReader {
  /// The most bytes that a file may have: 4 MiB. Info.plists have some KiB.
  public static let maximumBytes = 4 << 20
  /// The most levels of dictionaries and arrays.
  public static let maximumDepth = 64

  /// Reads a file.
  ///
  /// - Parameter url: a file URL.
  /// - Throws: ``PropertyListError``.
  public static func read(_ url: URL) throws(PropertyListError) -> PropertyListValue {
    let bytes: [UInt8]
    do throws(BoundedFile.Failure) { bytes = try BoundedFile.read(url, limit: maximumBytes) } catch
    {
      switch error {
      case .unreadable(let reason): throw .unreadableFile(path: url.path, reason: reason)
      case .tooLarge(let limit): throw .tooLarge(limit: limit)
      }
    }
    return try value(of: bytes)
  }

  /// Reads a file's bytes.
  ///
  /// - Throws: ``PropertyListError``.
  public static func value(of bytes: [UInt8]) throws(PropertyListError) -> PropertyListValue {
    guard bytes.count <= maximumBytes else { throw .tooLarge(limit: maximumBytes) }
    var format = PropertyListSerialization.PropertyListFormat.xml
    let root: Any
    do {
      root = try PropertyListSerialization.propertyList(
        from: Data(bytes), options: [], format: &format)
    } catch {
      let reason = (error as NSError).userInfo["NSDebugDescription"] as? String
      throw .malformed(reason: reason ?? error.localizedDescription)
    }
    guard format == .xml || format == .binary else { throw .oldStyle }
    return try plain(root, depth: 0)
  }

  /// The plain form of a dictionary that Foundation has read already, such as
  /// `Bundle.infoDictionary`.
  ///
  /// - Throws: ``PropertyListError``.
  public static func value(
    of dictionary: [String: Any]
  ) throws(PropertyListError) -> PropertyListValue {
    try plain(dictionary, depth: 0)
  }

  private static func plain(
    _ value: Any, depth: Int
  ) throws(PropertyListError) -> PropertyListValue {
    guard depth < maximumDepth else { throw .tooDeep(limit: maximumDepth) }
    switch value {
    case let text as String: return .string(text)
    case let number as NSNumber: return plain(number)
    case let bytes as Data: return .data([UInt8](bytes))
    case let date as Date: return .date(date.timeIntervalSince1970)
    case let list as [Any]:
      var values: [PropertyListValue] = []
      for element in list { values.append(try plain(element, depth: depth + 1)) }
      return .array(values)
    case let members as [String: Any]:
      var values: [String: PropertyListValue] = [:]
      for (key, member) in members { values[key] = try plain(member, depth: depth + 1) }
      return .dictionary(values)
    default: throw .unknownType("\(type(of: value))")
    }
  }

  /// Foundation boxes booleans as numbers of the encoding `c` (or `B`, C's own), and reads no other
  /// number of a property list as that.
  private static func plain(_ number: NSNumber) -> PropertyListValue {
    switch number.objCType[0] {
    case CChar(bitPattern: UInt8(ascii: "c")), CChar(bitPattern: UInt8(ascii: "B")):
      .boolean(number.boolValue)
    case CChar(bitPattern: UInt8(ascii: "d")), CChar(bitPattern: UInt8(ascii: "f")):
      .real(number.doubleValue)
    case CChar(bitPattern: UInt8(ascii: "Q")):
      Int64(exactly: number.uint64Value).map { .integer($0) } ?? .real(number.doubleValue)
    default: .integer(number.int64Value)
    }
  }
}

/// Why a file gave no property list.
public enum PropertyListError: Error, Hashable, Sendable {
  /// The file cannot be read; the system's reason.
  case unreadableFile(path: String, reason: String)
  /// The file has more bytes than this.
  case tooLarge(limit: Int)
  /// Neither XML nor binary, or broken; the system's reason.
  case malformed(reason: String)
  /// OpenStep's old text format, which has no booleans and takes nearly any text.
  case oldStyle
  /// A value of a type that no property list has.
  case unknownType(String)
  /// More levels of dictionaries and arrays than this.
  case tooDeep(limit: Int)
}

extension PropertyListError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unreadableFile(let path, let reason): "\(path) cannot be read: \(reason)"
    case .tooLarge(let limit): "more than \(limit) bytes"
    case .malformed(let reason): "not a property list: \(reason)"
    case .oldStyle:
      "neither an XML nor a binary property list; hint: plutil -convert xml1"
    case .unknownType(let name): "\(name) is no type of a property list"
    case .tooDeep(let limit): "more than \(limit) levels of dictionaries and arrays"
    }
  }
}
