/// SHA-2 over bytes, by the platform's own library.
public enum Digest {
  /// SHA-256 (FIPS 180-4): 32 bytes.
  public static func sha256(_ bytes: some Collection<UInt8>) -> [UInt8] {
    PlatformDigest.sha256.hash(bytes)
  }

  /// SHA-512 (FIPS 180-4): 64 bytes.
  public static func sha512(_ bytes: some Collection<UInt8>) -> [UInt8] {
    PlatformDigest.sha512.hash(bytes)
  }

  /// Whether the platform's library can hash at all. A broken installation cannot; hashing then
  /// stops the process, so a self-test asks first.
  package static var isAvailable: Bool {
    PlatformDigest.sha256.isAvailable && PlatformDigest.sha512.isAvailable
  }
}
