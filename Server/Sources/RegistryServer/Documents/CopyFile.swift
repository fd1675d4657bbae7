import TLSTools

/// Reads what stands in the place of a copy in `publish.dir`.
///
/// Whoever may write there may have put anything there, and no signature is checked before it is parsed. So it is bounded by what
/// a document can be: a file must take no more memory than the server has, at a start least of all, which would not succeed until
/// somebody removes the file.
enum CopyFile {
  /// The most bytes that are read: four times what clients take by default.
  static let mostBytes = 4 * SigningProblem.mostBytes

  /// So many values are parsed in any case.
  private static let freeValues = 1 << 16

  /// What stands there: empty if that can be no document, `nil` if there is no file that can be read.
  static func read(_ path: String) -> [UInt8]? {
    do throws(SmallFile.Failure) {
      let bytes = try SmallFile.read(path, limit: mostBytes)
      return canBeDocument(bytes) ? bytes : []
    } catch {
      guard case .tooLarge = error else { return nil }
      return []
    }
  }

  /// Whether a file is not made of many tiny values, which take many times its size once they are parsed. A document's have
  /// more than nine bytes on average: pins and signatures are long.
  static func canBeDocument(_ bytes: [UInt8]) -> Bool {
    // A value or a name comes after each of these, and nowhere else.
    let values = bytes.count { byte in
      switch byte {
      case UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "{"): true
      default: false
      }
    }
    return values <= max(freeValues, bytes.count / 8)
  }
}
