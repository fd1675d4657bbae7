import CanonicalJSON
import Pinning
import PinningPlatform
import TLSTools

/// `sign`: a payload in, a registry document out.
enum Sign {
  private static let key = Flag.text(
    "--key", "FILE", "the private key, prv.pem: RSA of 1024 bits or more", isRequired: true)

  static let command = Command(
    "sign", "sign a registry's payload",
    argument: Argument(
      placeholder: "PAYLOAD.json|-",
      help: "an object with keys, or a document whose payload is signed anew", count: .one),
    flags: [key.description],
    notes: [
      "Prints {\"payload\": …, \"signature\": …}: RSA PKCS#1 v1.5 with SHA-512 over the payload's\n"
        + "RFC 8785 form. What clients could not use in it is told, and signed all the same."
    ],
    run: run)

  private static func run(_ invocation: Invocation) throws(CommandFailure) -> ExitStatus {
    let keyPath = try invocation.require(key)
    try InputFile.refuseSharedInput(keyPath, invocation)
    let pem = try InputFile.read(keyPath, limit: KeyArgument.maximumBytes)
    let path = invocation.arguments.first ?? InputFile.standardInput
    let bytes = try InputFile.read(path, limit: JSONLimits.standard.maximumBytes)
    let name = InputFile.name(of: path)
    let signingKey: SigningKey
    do throws(SigningKeyError) {
      signingKey = try SigningKey(pem: String(decoding: pem, as: UTF8.self))
    } catch { throw .no("\(keyPath): \(error)") }
    let document: JSONValue
    do throws(JSONError) { document = try JSONValue(parsing: bytes) } catch {
      throw .no("\(name) is not strict JSON: \(error)")
    }
    let payload = try payload(of: document, name)
    let signature: [UInt8]
    do throws(SigningKeyError) {
      signature = try signingKey.sign(JSONValue.object(payload).canonicalBytes)
    } catch { throw .no("\(keyPath): \(error)") }
    warn(about: payload, name)
    // Members beside an old payload are not copied: a statement about it would be wrong.
    try Console.write(
      .members([
        "payload": .object(payload), "signature": .string(StrictBase64.encode(signature)),
      ]))
    return .yes
  }

  private static func payload(
    of document: JSONValue, _ name: String
  ) throws(CommandFailure) -> JSONObject {
    guard let object = document.objectValue else { throw .no("\(name) is not a JSON object") }
    guard let inner = object["payload"] else { return object }
    guard object["keys"] == nil else {
      throw .no("\(name) has both payload and keys; hint: pass the one or the other")
    }
    guard let payload = inner.objectValue else {
      throw .no("the payload of \(name) is not a JSON object")
    }
    return payload
  }

  private static func warn(about payload: JSONObject, _ name: String) {
    do throws(RegistryError) {
      for problem in try Registry(format1: payload).problems {
        Console.say("warning: \(problem)")
      }
    } catch {
      Console.say("warning: clients will refuse \(name): \(error)")
    }
  }
}
