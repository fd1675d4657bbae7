import CanonicalJSON
import Foundation
import Pinning
import PinningPlatform
import TLSTools

/// Writes and signs format-1 documents.
///
///     { "payload": { "keys": [ … ] }, "signature": "<base64>" }
///
/// - The signature is RSA PKCS#1 v1.5 with SHA-512 over the RFC 8785 form of the payload, and the
///   document is published in that form too, so that what is signed is what stands in it.
/// - Nothing but the five known members goes into an entry: clients in the field re-encode the
///   members they know before they check the signature.
public struct DocumentSigner: Sendable {
  /// How long after its signing a published pin expires, in seconds: 90 days.
  ///
  /// The expiry is when a client stops believing a pin that nobody has renewed. Documents are signed
  /// again daily, so a client that refreshes never comes near it; one that cannot, because this
  /// server is down or unreachable, keeps its pins for three months. All published keys get the same
  /// expiry, an old key in its grace time too: half of a fleet may still use it, and a refreshing
  /// client loses it with the document that leaves it out.
  public static let horizon: Int64 = 90 * 86_400

  /// How long a signed document is published before it is signed again unchanged, in seconds: a day.
  public static let renewal: Int64 = 86_400

  private let key: SigningKey

  /// A signer with this key.
  public init(key: SigningKey) { self.key = key }

  /// Reads `prv.pem` in a directory, and checks that a `pub.pem` beside it is its public half:
  /// clients that were given another one would refuse every document.
  ///
  /// - Throws: ``DocumentSignerError``.
  public init(directory: String) throws(DocumentSignerError) {
    let directory = URL(filePath: directory, directoryHint: .isDirectory)
    let privateFile = directory.appending(path: "prv.pem")
    let path = privateFile.path(percentEncoded: false)
    let key: SigningKey
    do throws(SigningKeyError) { key = try SigningKey(file: privateFile) } catch {
      throw .signingKey(path: path, error)
    }
    try Self.check(directory.appending(path: "pub.pem"), against: key)
    self.init(key: key)
  }

  /// The key that clients need, in PEM.
  public var publicKeyPEM: String { key.publicKeyPEM }

  private static func check(
    _ file: URL, against key: SigningKey
  ) throws(DocumentSignerError) {
    let path = file.path(percentEncoded: false)
    guard FileManager.default.fileExists(atPath: path) else { return }
    let published: VerificationKey
    do throws(VerificationKeyError) {
      published = try VerificationKey(bytes: (try? SmallFile.read(path, limit: 1 << 20)) ?? [])
    } catch { throw .publicKey(path: path, error) }
    // By a signature rather than by bytes: one key has several encodings.
    let probe = [UInt8]("does pub.pem belong to prv.pem?".utf8)
    let signature: [UInt8]
    do throws(SigningKeyError) { signature = try key.sign(probe) } catch {
      throw .signingKey(path: path, error)
    }
    guard published.isValid(signature: signature, over: probe) else {
      throw .differentPublicKey(path: path)
    }
  }

  /// Signs a document of these entries.
  ///
  /// - Returns: `nil` where there is not one entry: an empty registry is never published.
  /// - Throws: ``SigningKeyError`` where the key cannot sign.
  func sign(
    _ entries: [DocumentEntry], file: String, at now: Int64
  ) throws(SigningKeyError) -> PublishedDocument? {
    guard !entries.isEmpty else { return nil }
    let keys = entries.map { $0.json(expires: now + Self.horizon) }
    let payload = JSONValue.object(JSONObject([("keys", .array(keys))]))
    let signature = try key.sign(payload.canonicalBytes)
    let document = JSONObject([
      ("payload", payload), ("signature", .string(StrictBase64.encode(signature))),
    ])
    return PublishedDocument(
      file: file, bytes: JSONValue.object(document).canonicalBytes, entries: entries, signed: now)
  }
}

/// Why nothing can be signed.
public enum DocumentSignerError: Error, Equatable, Sendable {
  /// The signing key at this path cannot be used.
  case signingKey(path: String, SigningKeyError)
  /// The public key at this path cannot be read.
  case publicKey(path: String, VerificationKeyError)
  /// The public key at this path belongs to another private key.
  case differentPublicKey(path: String)
}

extension DocumentSignerError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .signingKey(_, .unreadable(let path, let reason)):
      "cannot read \(path): \(reason); hint: ssl-pinning keys generate makes one"
    case .signingKey(let path, let error): "\(path): \(error)"
    case .publicKey(let path, let error): "\(path): \(error)"
    case .differentPublicKey(let path):
      "\(path) is not the public half of prv.pem; hint: clients need the one that is"
    }
  }
}
