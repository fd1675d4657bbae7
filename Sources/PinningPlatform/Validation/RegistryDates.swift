import Pinning

/// When the dates of a registry's own server must hold: whoever is kept from the registry is kept from
/// the cure.
///
/// - At the device's clock or at the time floor, as everywhere (``Pinning/TrustTime``).
/// - A client that believes a statement also takes a chain that begins later than both, at its own
///   beginning. Otherwise a device whose clock is far behind would lose its registry for good on the day
///   on which the registry's certificate is renewed: nothing newer could ever reach it. What that gives
///   away is the date alone, and the document is signed: path, name and all other dates are judged as
///   ever, at that moment.
/// - A client that believes nothing yet has the clock alone. It is told that its clock is the likely cause.
enum RegistryDates {
  /// The moment to judge at after those that everybody is judged at (Unix seconds): the beginning of a
  /// chain that begins later than both times.
  ///
  /// - Parameter presented: the certificates in DER, leaf first.
  static func lastMoment(for presented: [[UInt8]], at time: TrustTime?) -> Int64? {
    guard let time, time.floor != nil, let leaf = presented.first,
      let beginning = SubjectPublicKeyInfo.notBefore(inCertificate: leaf), beginning > time.later
    else { return nil }
    return beginning
  }
}
