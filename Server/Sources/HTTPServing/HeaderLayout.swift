import CMicroHTTPD
import Foundation

/// Follows the bytes of a request's head, which libmicrohttpd 0.9 leaves where they came in.
///
///     G E T _ / p a t h _ H T T P / 1 . 1 _ _ H o s t _   x _ _ _ _
///
/// It writes NULs (`_`) over what it has read: the spaces of the first line, each colon, CR and LF.
/// Names and values are pointers into the same bytes. So what it does not tell can be seen: between
/// the end of one value and the beginning of the next name stand the two bytes of a CRLF and nothing
/// else, unless a line ended with a bare LF, was folded, or had a NUL in it.
///
/// Hazard: one shape looks like a CRLF, a NUL right before a bare LF. It is read as the end of the
/// line, which it is to libmicrohttpd as well.
struct HeaderLayout {
  private let start: UnsafeRawPointer
  private var cursor: UnsafeRawPointer
  private let end: UnsafeRawPointer

  /// Whether the library is one that keeps its lines so. Later ones refuse these shapes themselves
  /// where they are told to be strict.
  static let isKnown = (90_000...90_076).contains(pp_mhd_version())

  /// The layout of a head; `nil` where the first line is already not as it must be: one space
  /// between its parts, CRLF behind it.
  ///
  /// - Parameters:
  ///   - targetLength: of the target as it came in, up to a NUL.
  ///   - size: of the whole head, with the empty line at its end.
  init?(
    method: UnsafePointer<CChar>, target: UnsafePointer<CChar>, targetLength: Int,
    version: UnsafePointer<CChar>, size: Int
  ) {
    guard target == method + strlen(method) + 1, version == target + targetLength + 1,
      strlen(version) == 8, version[9] == 0, size >= version + 12 - method
    else { return nil }
    start = UnsafeRawPointer(version + 10)
    cursor = start
    end = UnsafeRawPointer(method) + size
  }

  /// Whether the next line stands where it must.
  mutating func take(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool {
    guard let nameStart = name.baseAddress, let valueStart = value.baseAddress,
      nameStart == cursor, valueStart > nameStart + name.count,
      valueStart + value.count + 4 <= end
    else { return false }
    let lineEnd = valueStart + value.count
    cursor = lineEnd + 2
    return lineEnd.load(as: UInt8.self) == 0 && (lineEnd + 1).load(as: UInt8.self) == 0
  }

  /// Whether nothing is left but the empty line.
  var isAtEnd: Bool {
    cursor + 2 == end && cursor.load(as: UInt8.self) == 0
      && (cursor + 1).load(as: UInt8.self) == 0
  }

  /// All lines, each as its name, a NUL, blanks, its value and two NULs.
  var block: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: start, count: cursor - start)
  }
}
