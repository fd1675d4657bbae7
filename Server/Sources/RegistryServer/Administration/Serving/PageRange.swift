import CanonicalJSON

/// A part of a long list.
struct PageRange: Sendable, Equatable {
  let offset: Int
  let limit: Int

  /// The part of a list and how long the list is: `{offset, limit, total, items}`.
  func page<Element>(
    of list: [Element], _ show: (Element) -> JSONValue
  ) -> JSONObject {
    [
      "offset": .count(offset), "limit": .count(limit), "total": .count(list.count),
      "items": .array(list.dropFirst(offset).prefix(limit).map(show)),
    ]
  }
}
