import CSslPinningOpenSSL

/// What a new certificate says; signing it makes a `Certificate`.
///
/// - Serial numbers are 127 random bits, positive and never zero (RFC 5280 section 4.1.2.2).
/// - Every certificate carries subjectKeyIdentifier and authorityKeyIdentifier, so that path
///   building never has to guess between keys of the same name.
/// - basicConstraints and keyUsage are critical (RFC 5280 sections 4.2.1.9 and 4.2.1.3).
struct CertificateTemplate {
  enum Role {
    case authority(pathLength: Int?)
    case server(names: [SubjectName])
  }

  var commonName: String?
  var role: Role
  var validity: Validity

  /// Signs the certificate for `subject`'s public half.
  ///
  /// - Parameter issuer: the certificate of the signing key; nil makes a self-signed one.
  func sign(
    subject: PrivateKey, issuer: Certificate?, by signer: PrivateKey
  ) throws(CertificateError) -> Certificate {
    OpenSSLErrors.clear()
    guard validity.notBefore <= validity.notAfter else { throw unusableValidity }
    guard let x509 = X509_new() else { throw failure("allocating a certificate") }
    defer { X509_free(x509) }
    guard X509_set_version(x509, 2) == 1, X509_set_pubkey(x509, subject.handle.pointer) == 1
    else { throw failure("preparing a certificate") }
    try setSerial(x509)
    try setValidity(x509)
    try setSubject(x509)
    let parent = try issuer?.parsed()
    guard
      X509_set_issuer_name(x509, X509_get_subject_name(parent?.pointer ?? x509)) == 1
    else { throw failure("naming the issuer") }
    for (nid, value) in extensions {
      try add(nid, value, to: x509, issuedBy: parent?.pointer ?? x509)
    }
    guard X509_sign(x509, signer.handle.pointer, EVP_sha256()) > 0 else {
      throw failure("signing a certificate")
    }
    return try Certificate(copying: x509)
  }

  private var extensions: [(Int32, String)] {
    switch role {
    case .authority(let pathLength):
      let limit = pathLength.map { ",pathlen:\($0)" } ?? ""
      return [
        (NID_basic_constraints, "critical,CA:TRUE\(limit)"),
        (NID_key_usage, "critical,keyCertSign,cRLSign"),
        (NID_subject_key_identifier, "hash"),
        (NID_authority_key_identifier, "keyid:always"),
      ]
    case .server(let names):
      // RFC 5280 section 4.2.1.6: critical when the subject is empty.
      let critical = commonName == nil ? "critical," : ""
      return [
        (NID_basic_constraints, "critical,CA:FALSE"),
        (NID_key_usage, "critical,digitalSignature"),
        (NID_ext_key_usage, "serverAuth"),
        (NID_subject_key_identifier, "hash"),
        (NID_authority_key_identifier, "keyid:always"),
        (NID_subject_alt_name, critical + names.map(\.extensionValue).joined(separator: ",")),
      ]
    }
  }

  private func add(
    _ nid: Int32, _ value: String, to x509: OpaquePointer, issuedBy issuer: OpaquePointer
  ) throws(CertificateError) {
    var context = X509V3_CTX()
    X509V3_set_ctx(&context, issuer, x509, nil, nil, 0)
    guard let made = X509V3_EXT_conf_nid(nil, &context, nid, value) else {
      throw failure("adding an extension")
    }
    defer { X509_EXTENSION_free(made) }
    guard X509_add_ext(x509, made, -1) == 1 else { throw failure("adding an extension") }
  }

  private func setSerial(_ x509: OpaquePointer) throws(CertificateError) {
    guard let number = BN_new() else { throw failure("making a serial number") }
    defer { BN_free(number) }
    guard BN_rand(number, 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1,
      BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x509)) != nil
    else { throw failure("making a serial number") }
  }

  private func setValidity(_ x509: OpaquePointer) throws(CertificateError) {
    guard ASN1_TIME_set(X509_getm_notBefore(x509), Int(validity.notBefore)) != nil,
      ASN1_TIME_set(X509_getm_notAfter(x509), Int(validity.notAfter)) != nil
    else {
      OpenSSLErrors.clear()
      throw unusableValidity
    }
  }

  private func setSubject(_ x509: OpaquePointer) throws(CertificateError) {
    guard let commonName else { return }
    let text = Array(commonName.utf8)
    let added = X509_NAME_add_entry_by_txt(
      X509_get_subject_name(x509), "CN", MBSTRING_UTF8, text, Int32(text.count), -1, 0)
    guard added == 1 else { throw failure("naming the subject") }
  }

  private var unusableValidity: CertificateError {
    .validity(notBefore: validity.notBefore, notAfter: validity.notAfter)
  }

  private func failure(_ operation: String) -> CertificateError {
    .openSSL(operation: operation, reason: OpenSSLErrors.drain())
  }
}
