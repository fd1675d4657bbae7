import PolicyFormats
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// What a server is to show next, as a file has it.
struct NextIdentity: Sendable {
  private let pin: SPKIPin
  /// The leaf first; empty if nobody has signed the key yet.
  private let chain: [Certificate]

  /// - Throws: ``CommandFailure`` as ``PinFile`` does, and for a file of several servers' keys: the one that was not
  ///   looked at may be the next.
  init(inFile path: String) throws(CommandFailure) {
    let keys = try PinFile.pins(inFile: path)
    let behind = keys.dropFirst()
    // The first may be an authority all the same: a self-signed certificate of a server often says that it is one.
    let own = keys.prefix(1) + behind.filter { $0.role != .ca }
    let leaves = own.compactMap(\.certificate)
    guard let first = own.first, own.allSatisfy({ $0.pin == first.pin }), Set(leaves).count < 2
    else {
      throw .no(
        "\(path) holds several servers' keys or certificates; hint: the next one alone, its intermediates behind it"
      )
    }
    guard !own.contains(where: { $0.role == .unknown }) else {
      throw .no("\(path): the certificate cannot be read, and no server can show it")
    }
    pin = first.pin
    chain =
      leaves.isEmpty
      ? [] : leaves.prefix(1) + behind.filter { $0.role == .ca }.compactMap(\.certificate)
  }

  /// What clients will make of it.
  ///
  /// - Parameter shown: the chains that the server shows now. Their intermediates are tried if the file has none; the
  ///   next ones may be others.
  func successor(
    of host: HostName, behind shown: [[Certificate]], judgedBy validator: ChainValidator,
    at now: Int64
  ) -> SeenEndpoint.Successor {
    guard let leaf = chain.first else { return .key(pin, unjudged: nil) }
    // Nobody shows it before it begins.
    let begins = max(now, leaf.validity?.notBefore ?? now)
    func key(_ chain: [Certificate], by validator: ChainValidator) -> SeenEndpoint.Key {
      validator.key("next", of: chain, host: host, at: begins)
    }
    guard chain.count == 1 else {
      return .certificate(key(chain, by: validator), begins: begins)
    }
    var told: Set<Certificate> = [leaf]
    let intermediates = shown.flatMap { $0.dropFirst() }.filter { told.insert($0).inserted }
    let whole = key(chain + intermediates, by: validator)
    // No intermediate helps one that signed itself.
    guard let complaint = whole.complaint, !leaf.isSigned(by: leaf) else {
      return .certificate(whole, begins: begins)
    }
    // As its own anchor it has the faults that no path mends: its dates, its names, its key.
    if let anchor = try? ChainValidator(anchors: [leaf]) {
      let alone = key(chain, by: anchor)
      if alone.complaint != nil { return .certificate(alone, begins: begins) }
    }
    return .key(pin, unjudged: complaint)
  }
}
