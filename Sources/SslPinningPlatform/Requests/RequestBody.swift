import Foundation

/// A request's body that is not the `URLRequest`'s own.
enum RequestBody: Sendable {
  case data(Data)
  /// Gives its chunks, one after the other, to a function that returns once the chunk was taken, and
  /// false where nobody wants another.
  case chunks(@Sendable (_ put: (Data) async -> Bool) async throws -> Void)

  /// The chunks of a sequence, each asked for once the last was taken.
  static func sequence<Chunks: AsyncSequence & Sendable>(_ chunks: Chunks) -> RequestBody
  where Chunks.Element == Data {
    .chunks { put in
      for try await chunk in chunks {
        guard await put(chunk) else { return }
      }
    }
  }
}
