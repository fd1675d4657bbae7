import Foundation

/// Reads the small files that an app ships: property lists, certificates.
///
/// - Bounded: an endless or mistaken file ends in an error, not in the system's memory.
enum BoundedFile {
  /// Why a file was not read.
  enum Failure: Error {
    /// The system's reason.
    case unreadable(String)
    case tooLarge(limit: Int)
  }

  /// The bytes of a file.
  ///
  /// - Parameter url: a file URL; nothing is ever fetched.
  static func read(_ url: URL, limit: Int) throws(Failure) -> [UInt8] {
    guard url.isFileURL else { throw .unreadable("not a file URL") }
    let data: Data?
    do {
      let file = try FileHandle(forReadingFrom: url)
      defer { try? file.close() }
      // One byte more than allowed tells a file that is too large from one that just fits.
      data = try file.read(upToCount: limit + 1)
    } catch { throw .unreadable(error.localizedDescription) }
    guard let data, data.count <= limit else {
      if data == nil { return [] }
      throw .tooLarge(limit: limit)
    }
    return [UInt8](data)
  }
}
