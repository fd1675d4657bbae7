#if os(Linux)
  import CSslPinningShims
  import Foundation

  extension BodyFeed {
    /// The loop's side: fills `bytes` with the next of the body and says with how many; 0 is its end,
    /// `PP_FEED_LATER` and `PP_FEED_FAILED`.
    func fill(_ bytes: UnsafeMutableRawPointer, capacity: Int) -> Int {
      switch next() {
      case .later: return Int(PP_FEED_LATER)
      case .end: return 0
      case .broken: return Int(PP_FEED_FAILED)
      case .bytes(let chunk):
        let count = min(capacity, chunk.count)
        chunk.withUnsafeBytes {
          if let from = $0.baseAddress { bytes.copyMemory(from: from, byteCount: count) }
        }
        took(count)
        return count
      }
    }
  }
#endif
