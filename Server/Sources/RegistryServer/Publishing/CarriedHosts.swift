import CanonicalJSON
import SslPinningRules

/// The hosts of the last published document that the next one would leave out without saying so.
///
/// The first statement of an epoch lists them once more: clients let go at once of what no statement of
/// the epoch vouches for, and a slip in a file must lock nobody out on the day on which keys change. With
/// the second statement they have vanished, and keep their pins as usual.
struct CarriedHosts {
  /// Entries for the payload, without keys that are denied now.
  private(set) var entries: [JSONValue] = []
  /// Hosts whose keys are all denied: listed without any, so that they are refused and not unlisted.
  private(set) var settings: [HostSettings] = []

  /// - Parameters:
  ///   - published: the last document.
  ///   - content: what the next one says.
  ///   - expires: of the entries' pins, in Unix seconds.
  init(from published: [UInt8], beside content: DocumentContent, expires: Int64) {
    let keys =
      (try? JSONValue(parsing: published))?.objectValue?["payload"]?.objectValue?["keys"]?
      .arrayValue ?? []
    let spokenFor = Set(content.entries.map(\.pattern)).union(content.removed)
    let denied = Set(content.denied.map { JSONValue.string($0.base64) })
    var left: [HostPattern] = []
    var listed: Set<HostPattern> = []
    for key in keys {
      guard var entry = key.objectValue, let pin = entry["key"],
        let pattern = (entry["domainName"]?.stringValue).flatMap({ try? HostPattern($0) }),
        !spokenFor.contains(pattern)
      else { continue }
      if !left.contains(pattern) { left.append(pattern) }
      guard !denied.contains(pin) else { continue }
      entry["expire"] = JSONNumber(exactly: expires).map(JSONValue.number)
      entries.append(.object(entry))
      listed.insert(pattern)
    }
    settings = left.filter { !listed.contains($0) }.map { HostSettings($0) }
  }
}
