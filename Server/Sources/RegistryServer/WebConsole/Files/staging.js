import { api } from "./api.js";
import { ask, field, line } from "./dialogs.js";
import { element } from "./elements.js";
import { recognise } from "./key-text.js";
import { notify } from "./notices.js";

/// Asks for a key to publish ahead of its use: a pin, a public key, a certificate request or a certificate.
export function stageKey(file, id, refresh) {
  const told = element("p", { class: "told", role: "status" });
  const text = element("textarea", {
    name: "text", rows: 7, required: true, spellcheck: "false", autocomplete: "off", class: "mono",
    placeholder: "-----BEGIN PUBLIC KEY-----",
  });
  const tell = () => {
    const found = recognise(text.value);
    told.textContent = found.fault ?? found.told;
    told.className = found.fault ? "told bad" : "told";
  };
  const read = async (files) => {
    const [chosen] = files;
    if (!chosen) return;
    if (chosen.size > 65536) {
      told.textContent = "The file is too large for a key or a certificate.";
      return;
    }
    text.value = asText(new Uint8Array(await chosen.arrayBuffer()));
    tell();
    text.focus();
  };
  text.oninput = tell;
  const picker = element("input", { type: "file", accept: ".pem,.crt,.cer,.csr,.key,.pub,.der", onchange: () => read(picker.files) });
  const dialog = ask({
    title: "Stage a key",
    text: element("p", null, "It is published for ", element("strong", null, id),
      " before the server uses it, so that no app notices the change."),
    fields: [
      field("Pin, or PEM of a public key, certificate request or certificate", text,
        "Paste it, or drop a file here. Never a private key."),
      field("Or choose a file", picker),
      told,
      line("Note", "note", { maxlength: 500, hint: "For the history, such as the reason or a ticket." }),
    ],
    verb: "Stage",
    async act({ text: pasted, note }) {
      const found = recognise(pasted);
      if (found.fault) throw Object.assign(new Error(found.fault), { field: "text" });
      return api.stage(file, id, { [found.kind]: found.value, note });
    },
    done: ({ pin }) => { notify(`The key ${pin} is staged and published.`); refresh(); },
  });
  dialog.ondragover = (event) => { event.preventDefault(); dialog.classList.add("dropping"); };
  dialog.ondragleave = () => dialog.classList.remove("dropping");
  dialog.ondrop = (event) => {
    event.preventDefault();
    dialog.classList.remove("dropping");
    read(event.dataTransfer.files);
  };
}

/// A file as text; a DER file, which begins with a SEQUENCE, as the certificate that it most likely is.
function asText(bytes) {
  if (bytes[0] !== 0x30) return new TextDecoder().decode(bytes);
  const base64 = btoa(String.fromCharCode(...bytes));
  return `-----BEGIN CERTIFICATE-----\n${base64.replace(/(.{64})/g, "$1\n")}\n-----END CERTIFICATE-----\n`;
}
