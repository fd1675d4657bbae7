import CanonicalJSON
import Pinning

/// `GET /api/v1/{file}/changes?since=TOKEN`: what changed since a token, or a wait until something does.
///
///     { "changed": true, "token": "0.1779192131", "document": { … } }
///     { "changed": false, "token": "0.1779192131" }
///
/// - Without `since`, or with a token that nobody gave out: the document in force, at once.
/// - With the token in force: the answer waits for the next document, and says after a while that there
///   was none. Fetch since a token, apply, keep the token, ask again.
/// - The document is the one at `/api/v1/{file}`, with the same signatures over the same canonical bytes.
struct ChangesPage: Sendable {
  let documents: PublishedDocuments

  /// The file of a path such as `a.json/changes`.
  static func file(of path: Substring) -> String? {
    path.hasSuffix("/changes") ? String(path.dropLast("/changes".count)) : nil
  }

  /// Answers for a file that is configured.
  func answer(_ file: String, since: String?) -> HTTPAnswer {
    let documents = documents
    if documents.document(file).map({ Self.token($0) != since }) ?? false {
      return .now(Self.response(documents.document(file), since: since))
    }
    return .later {
      await documents.feed.wait(for: file) {
        documents.document(file).map { Self.token($0) != since } ?? false
      }
      return Self.response(documents.document(file), since: since)
    }
  }

  /// Tells one document of a file from every other. Not secret, and of no use but here.
  static func token(_ document: PublishedDocument) -> String {
    document.number.map { "\($0.epoch).\($0.version)" } ?? "\(document.signed)"
  }

  private static func response(_ document: PublishedDocument?, since: String?) -> HTTPResponse {
    var members = JSONObject()
    if let document {
      let token = token(document)
      members["token"] = .string(token)
      members["changed"] = .bool(token != since)
      if token != since, let json = try? JSONValue(parsing: document.bytes) {
        members["document"] = json
      }
    } else {
      members["changed"] = .bool(false)
    }
    return HTTPResponse(
      status: 200, headers: JSONHeaders.uncached,
      body: JSONValue.object(members).canonicalBytes + [0x0a])
  }
}
