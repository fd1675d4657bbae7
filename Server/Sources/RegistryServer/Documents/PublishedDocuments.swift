import HTTPServing
import RegistryCore
import SslPinningPlatform

/// What is published at this moment. Written once per change, read by every request.
///
/// A document is swapped as a whole: a reader gets the old one or the new one, and never the old
/// one after the new.
final class PublishedDocuments: Sendable {
  /// What a request for one file is answered with.
  enum Page: Sendable {
    /// The document, and its finished answers.
    case document(PublishedParts)
    /// Configured, and no endpoint of it has shown a key yet.
    case waiting(HTTPResponse)

    fileprivate var parts: PublishedParts? {
      guard case .document(let parts) = self else { return nil }
      return parts
    }
  }

  private struct Pages {
    private(set) var byFile: [String: Page]
    /// The files that wait, sorted. Kept, because strangers ask for it under the lock that every reader takes.
    private(set) var waiting: [String]

    init(_ byFile: [String: Page]) {
      self.byFile = byFile
      waiting = byFile.filter { $0.value.parts == nil }.keys.sorted()
    }

    mutating func publish(_ parts: PublishedParts, at file: String) {
      byFile[file] = .document(parts)
      var (low, high) = (0, waiting.count)
      while low < high {
        let middle = (low + high) / 2
        if waiting[middle] < file { low = middle + 1 } else { high = middle }
      }
      if low < waiting.count, waiting[low] == file { waiting.remove(at: low) }
    }
  }

  private let pages: Locked<Pages>
  private static let noKeyYet = HTTPRefusal.response(
    503, "no key of this document's endpoints has been seen yet",
    hint: "the server's log says what each probe found", headers: [("Retry-After", "10")])
  /// What each document says, and in which bytes: whoever signs compares with it.
  private let contents = Locked<[String: (content: DocumentContent, entityTag: String)]>([:])

  private let files: Locked<StaticFiles?> = Locked(nil)

  /// Has what is published from now on, and what is published already, written to files too; to those before, nothing more.
  func copy(to staticFiles: StaticFiles?) async {
    let before = files.withLock { files in
      defer { files = staticFiles }
      return files
    }
    await before?.end()
    guard let staticFiles else { return }
    pages.withLock { pages in
      // Handed over before another one can be published, which is to come after.
      for page in pages.byFile.values {
        if let parts = page.parts { staticFiles.write(parts.document) }
      }
    }
  }

  /// Waits until the numbers of all that was published are noted in `tls.dir`, without which the server can do nothing, and until
  /// it was tried to write the copies, for ``StaticFiles/patience`` at most.
  ///
  /// - Returns: the files whose copies were not tried by then.
  func finishCopies() async -> Set<String> { await files.withLock { $0 }?.finish() ?? [] }

  /// Has the copy of a document written again if it is gone.
  func restoreCopy(of file: String) {
    if let document = document(file) { files.withLock { $0 }?.restore(document) }
  }

  /// Serves these files from now on; those that are new wait for their first document.
  func serve(files names: [String]) {
    pages.withLock { pages in
      pages = Pages(
        Dictionary(
          names.map { ($0, pages.byFile[$0] ?? .waiting(Self.noKeyYet)) },
          uniquingKeysWith: { first, _ in first }))
    }
  }

  /// All files wait.
  init(files: [String]) {
    pages = Locked(
      Pages(
        Dictionary(
          files.map { ($0, Page.waiting(Self.noKeyYet)) }, uniquingKeysWith: { first, _ in first }))
    )
  }

  /// Remembers what a document says that is about to be published.
  func prepare(_ content: DocumentContent, for document: PublishedDocument) {
    contents.withLock { $0[document.file] = (content, document.entityTag) }
  }

  /// What the published document of a file says, where it was signed here.
  func content(_ file: String) -> DocumentContent? {
    guard let document = document(file) else { return nil }
    return contents.withLock { contents in
      contents[file].flatMap { $0.entityTag == document.entityTag ? $0.content : nil }
    }
  }

  /// Publishes a document in place of the one before.
  ///
  /// - Returns: whether its file is served; nothing is published where it is not, or no longer.
  @discardableResult
  func publish(_ document: PublishedDocument) -> Bool {
    guard page(document.file) != nil else { return false }
    let whole = PublishedParts.whole(of: document)
    let isServed = pages.withLock { pages in
      guard let page = pages.byFile[document.file] else { return false }
      let parts = PublishedParts(document, whole: whole, before: page.parts)
      pages.publish(parts, at: document.file)
      return true
    }
    guard isServed else { return false }
    files.withLock { $0 }?.write(document)
    return true
  }

  /// What to answer for a file; `nil` where it is not configured.
  func page(_ file: String) -> Page? { pages.withLock { $0.byFile[file] } }

  /// The published document of a file.
  func document(_ file: String) -> PublishedDocument? {
    page(file)?.parts?.document
  }

  /// The files for which nothing is published yet, sorted.
  var waitingFiles: [String] { pages.withLock(\.waiting) }

  /// Whether anything is published.
  var hasDocument: Bool { pages.withLock { $0.waiting.count < $0.byFile.count } }
}
