import Foundation
import PolicyFormats

/// The files of a tree of sources in which pins may stand.
///
/// - No link is followed: what it leads to inside of the tree is found there, and what is outside is somebody else's.
/// - Folders that a build or a package manager fills, and those of tests, are passed over; a caller can name them.
/// - Bounded in files, bytes and depth. What was not read for that, or could not be, is told.
struct SourceTree {
  /// What was read and has anything to do with pins.
  private(set) var files: [SourceFile] = []
  /// Folders that were passed over.
  private(set) var passedOver: [String] = []
  /// What should have been read, each with the reason why it was not.
  private(set) var unread: [(path: String, reason: String)] = []

  private let limits: Limits
  private var count = 0
  private var bytes = 0

  /// The most that is read.
  struct Limits {
    var files = 200_000
    var bytes = 1 << 30
    var depth = 64
  }

  private static let generated: Set = [
    ".git", ".hg", ".svn", ".build", ".swiftpm", ".gradle", ".idea", ".cache", ".venv", "venv",
    ".dart_tool", "__pycache__", "node_modules", "Pods", "Carthage", "DerivedData", "vendor",
    "Vendor", "third_party", "ThirdParty",
  ]
  private static let tests: Set = [
    "test", "tests", "spec", "specs", "__tests__", "fixtures", "Fixtures",
  ]
  /// What stands in a folder `build` that no person has written.
  private static let outputs: Set = [
    "generated", "intermediates", "outputs", "tmp", "classes", "libs", "reports", "CMakeFiles",
    "Build", "Products",
  ]

  /// Reads a folder, or one file.
  ///
  /// - Throws: ``CommandFailure/couldNotFindOut(_:)`` if nothing can be read under this name.
  init(_ path: String, limits: Limits = Limits()) throws(CommandFailure) {
    self.limits = limits
    var status = stat()
    guard stat(path, &status) == 0 else {
      throw .couldNotFindOut("cannot read \(path): \(Terminal.reason(errno))")
    }
    var name = path
    while name.count > 1, name.hasSuffix("/") { name.removeLast() }
    if status.st_mode & S_IFMT == S_IFDIR {
      guard let entries = Self.entries(of: path) else {
        throw .couldNotFindOut("cannot read \(path): \(Terminal.reason(EACCES))")
      }
      visit(entries, in: path, called: name == "." ? "" : name, depth: 0)
    } else {
      read(path, called: name, size: Int(status.st_size))
    }
  }

  /// Names in the order of their bytes, so that every run says the same.
  private static func entries(of folder: String) -> [String]? {
    (try? FileManager.default.contentsOfDirectory(atPath: folder))?
      .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  private mutating func visit(_ entries: [String], in folder: String, called: String, depth: Int) {
    for name in entries {
      guard count < limits.files else {
        // Once is enough.
        if count == limits.files { unread.append((called, "more than \(limits.files) files")) }
        count = limits.files + 1
        return
      }
      let path = folder + "/" + name
      let shown = (called.isEmpty ? name : called == "/" ? "/" + name : called + "/" + name)
        .onOneLine
      var status = stat()
      guard lstat(path, &status) == 0 else {
        unread.append((shown, Terminal.reason(errno)))
        continue
      }
      switch status.st_mode & S_IFMT {
      case S_IFDIR:
        let inner = Self.entries(of: path)
        if Self.isPassedOver(name, inner ?? [], beside: entries) {
          passedOver.append(shown)
        } else if depth >= limits.depth {
          unread.append((shown, "more than \(limits.depth) folders deep"))
        } else if let inner {
          visit(inner, in: path, called: shown, depth: depth + 1)
        } else {
          unread.append((shown, "the folder cannot be read"))
        }
      case S_IFREG:
        count += 1
        read(path, called: shown, size: Int(status.st_size))
      default: break
      }
    }
  }

  private static func isPassedOver(
    _ name: String, _ inner: [String], beside entries: [String]
  ) -> Bool {
    if generated.contains(name) || tests.contains(name) { return true }
    if name.hasSuffix("Tests") || name.hasSuffix("Test") || name.hasSuffix(".framework")
      || name.hasSuffix(".xcframework")
    {
      return true
    }
    return name == "build"
      && (inner.contains(where: outputs.contains)
        || entries.contains { $0.hasPrefix("build.gradle") })
  }

  private mutating func read(_ path: String, called shown: String, size: Int) {
    guard SourceFile.kind(ofFileAt: path) != nil else { return }
    guard size <= PinPolicy.maximumBytes else {
      unread.append((shown, "more than \(PinPolicy.maximumBytes) bytes"))
      return
    }
    guard bytes + size <= limits.bytes else {
      unread.append((shown, "more than \(limits.bytes) bytes in all"))
      return
    }
    do throws(CommandFailure) {
      let contents = try InputFile.read(path, limit: PinPolicy.maximumBytes)
      bytes += contents.count
      if let file = SourceFile(path: shown, bytes: contents), file.mayPin { files.append(file) }
    } catch { unread.append((shown, error.message)) }
  }
}

extension String {
  /// A name of a file as one line can have it.
  fileprivate var onOneLine: String { printable.replacingOccurrences(of: "\n", with: "\\n") }
}
