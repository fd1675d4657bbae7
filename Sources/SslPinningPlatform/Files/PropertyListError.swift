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
