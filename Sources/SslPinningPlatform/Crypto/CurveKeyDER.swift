import SslPinningRules

/// A P-256 or Ed25519 public key, read strictly from DER.
///
/// - One key has one SubjectPublicKeyInfo and so one key id: the algorithm's bytes are fixed
///   (RFC 5480 §2.1.1 with a named curve, RFC 8410 §4), the point is uncompressed, and the length
///   follows from both. Explicit parameters, compressed points and bytes behind are refused.
/// - Whether the point lies on the curve is the platform's to say.
struct CurveKeyDER {
  let algorithm: SignatureAlgorithm
  /// The SubjectPublicKeyInfo.
  let spki: [UInt8]
  /// 0x04, x and y (P-256), or the 32 bytes of RFC 8032 §5.1.2 (Ed25519).
  let key: [UInt8]

  /// - Returns: `nil` where `der` is a key of another type, or such a key in another spelling.
  init?(_ der: [UInt8]) {
    for (algorithm, frame, count) in Self.frames
    where der.count == frame.count + count && der.starts(with: frame) {
      let key = Array(der.dropFirst(frame.count))
      guard algorithm == .edDSA || key.first == 0x04 else { return nil }
      (self.algorithm, self.spki, self.key) = (algorithm, der, key)
      return
    }
    return nil
  }

  /// All that stands before the key itself, and how many bytes the key has.
  private static let frames: [(SignatureAlgorithm, [UInt8], Int)] = [
    (
      .es256,
      [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08,
        0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
      ], 65
    ),
    (
      .edDSA,
      [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00], 32
    ),
  ]
}
