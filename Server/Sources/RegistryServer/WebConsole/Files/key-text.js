// Tells what somebody pasted: a pin, or a PEM block that holds a public key.

const kinds = {
  "PUBLIC KEY": ["key", "a public key"], "RSA PUBLIC KEY": ["key", "a public key"],
  "CERTIFICATE REQUEST": ["csr", "a certificate request"], "NEW CERTIFICATE REQUEST": ["csr", "a certificate request"],
  CERTIFICATE: ["certificate", "a certificate"],
};

/// What a text is: `kind` and `value` for the interface and `told` for people, or a `fault`.
export function recognise(text) {
  const trimmed = text.trim();
  if (trimmed === "") return { told: "", fault: null, kind: null, value: "" };
  if (/PRIVATE KEY-----/.test(trimmed)) {
    return { fault: "This is a private key: it must not leave its machine. Use its public half, from openssl pkey -pubout." };
  }
  if (/^[A-Za-z0-9+/]{43}=$/.test(trimmed)) return { kind: "pin", value: trimmed, told: "This is a pin." };
  const blocks = [...trimmed.matchAll(/-----BEGIN ([A-Z0-9 ]+)-----[\s\S]*?-----END \1-----/g)];
  const known = blocks.find(([, label]) => label in kinds);
  if (!known) {
    return { fault: "This is neither a pin nor the PEM of a public key, a certificate request or a certificate." };
  }
  const [kind, name] = kinds[known[1]];
  const more = blocks.length > 1 ? `, the first of ${blocks.length} blocks` : "";
  return { kind, value: `${known[0]}\n`, told: `This is ${name}${more}.` };
}
