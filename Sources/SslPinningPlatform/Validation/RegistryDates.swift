import SslPinningRules

/// When the dates of a registry's own server must hold: whoever is kept from the registry is kept from
/// the cure.
///
/// - At the device's clock or at the time floor, as everywhere (``SslPinningRules/TrustTime``).
/// - A client that believes a statement also takes a chain that begins later than its clock or the floor, at
///   its own beginning. Otherwise a device whose clock is far behind, or ahead by more than a certificate
///   lives, would lose its registry for good on the day on which the registry's certificate is renewed, or
///   the floor is ahead by accident or theft: nothing newer could ever reach it. What that gives away is the
///   date alone, and the document is signed: path, name and all other dates are judged as ever, at that moment.
/// - A client that believes nothing yet has the clock alone. It is told that its clock is the likely cause.
enum RegistryDates {
  /// The moment to judge at after those that everybody is judged at (Unix seconds): the beginning of a
  /// chain, which is that of its newest certificate.
  ///
  /// - Parameter presented: the certificates in DER, leaf first.
  static func lastMoment(for presented: [[UInt8]], at time: TrustTime?) -> Int64? {
    let beginnings = presented.compactMap(SubjectPublicKeyInfo.notBefore(inCertificate:))
    guard let time, time.believesStatement, let beginning = beginnings.max(),
      beginning > min(time.clock, time.floor ?? time.clock)
    else { return nil }
    return beginning
  }
}
