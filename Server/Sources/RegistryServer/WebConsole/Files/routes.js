// Addresses of the pages, behind the "#": /endpoint/{file}/{id}?page=2

/// The parts and the settings of an address.
export function readRoute(hash) {
  const [path, query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  let parts = [];
  try { parts = path.split("/").filter((piece) => piece !== "").map(decodeURIComponent); } catch { /* a broken escape is no page */ }
  return { name: parts[0] ?? "overview", parts: parts.slice(1), settings: new URLSearchParams(query) };
}

/// An address; settings that are empty are left out.
export function address(parts, settings = {}) {
  const query = new URLSearchParams(
    Object.entries(settings).filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== 0));
  const path = "#/" + parts.map(encodeURIComponent).join("/");
  return query.size === 0 ? path : `${path}?${query}`;
}

export const documentAddress = (file, settings) => address(["document", file], settings);
export const endpointAddress = (file, id) => address(["endpoint", file, id]);
export const historyAddress = (file) => address(["history", file]);
