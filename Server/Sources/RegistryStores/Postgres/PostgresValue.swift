/// A parameter of a statement, in PostgreSQL's binary form.
enum PostgresValue {
  case integer(Int64)
  case text(String)
  case bytes([UInt8])
  case arrayOfBytes([[UInt8]])

  /// Its type's number in `pg_type`.
  var type: UInt32 {
    switch self {
    case .integer: 20
    case .text: 25
    case .bytes: 17
    case .arrayOfBytes: 1001
    }
  }

  var encoded: [UInt8] {
    var out: [UInt8] = []
    switch self {
    case .integer(let number): out.append(bigEndian: number)
    case .text(let text): out += text.utf8
    case .bytes(let bytes): out = bytes
    case .arrayOfBytes(let items):
      // Dimensions, no nulls, the items' type; then length and first index, and each item.
      for number in [items.isEmpty ? 0 : 1, 0, 17] as [Int32] { out.append(bigEndian: number) }
      guard !items.isEmpty else { break }
      for number in [Int32(clamping: items.count), 1] { out.append(bigEndian: number) }
      for item in items {
        out.append(bigEndian: Int32(clamping: item.count))
        out += item
      }
    }
    return out
  }
}

/// A row of a result, column by column; `nil` for NULL.
struct PostgresRow {
  let columns: [[UInt8]?]

  func integer(_ column: Int) -> Int64? {
    guard columns.indices.contains(column), let bytes = columns[column], bytes.count <= 8 else {
      return nil
    }
    // Sign-extended: int4 and bool come shorter.
    let start: Int64 = bytes.first.map { $0 & 0x80 != 0 && bytes.count > 1 ? -1 : 0 } ?? 0
    return bytes.reduce(start) { $0 << 8 | Int64($1) }
  }

  func bytes(_ column: Int) -> [UInt8] {
    columns.indices.contains(column) ? columns[column] ?? [] : []
  }

  func text(_ column: Int) -> String { String(decoding: bytes(column), as: UTF8.self) }
}
