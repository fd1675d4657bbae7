import { token } from "./session.js";
import { learnClock } from "./times.js";

// The administration interface of this server, as docs/openapi.yaml describes it.

/// An answer that was not what was asked for, or none.
export class ApiError extends Error {
  constructor(status, message, { hint = null, hosts = [], retryAfter = null } = {}) {
    super(message);
    this.status = status;
    this.hint = hint;
    this.hosts = hosts;
    this.retryAfter = retryAfter;
  }

  /// No answer came at all.
  get isSilence() {
    return this.status === 0;
  }
}

const base = new URL("api/v1/admin/", document.baseURI);

async function call(method, path, { query = {}, body, signal, secret = token() } = {}) {
  const url = new URL(path, base);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, value);
  }
  let answer;
  try {
    answer = await fetch(url, {
      method, signal, cache: "no-store", credentials: "omit", redirect: "error",
      headers: {
        Accept: "application/json", Authorization: `Bearer ${secret}`,
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "the server does not answer");
  }
  learnClock(answer.headers.get("Date"));
  let value = null;
  try { value = await answer.json(); } catch (error) {
    if (error.name === "AbortError") throw error;
  }
  if (answer.ok && value !== null) return value;
  const retry = Number.parseInt(answer.headers.get("Retry-After") ?? "", 10);
  throw new ApiError(answer.status, value?.error ?? `the server answered ${answer.status}`, {
    hint: value?.hint, hosts: value?.hosts, retryAfter: Number.isNaN(retry) ? null : retry,
  });
}

const part = encodeURIComponent;
const documentPath = (file) => `documents/${part(file)}`;
const endpointPath = (file, id) => `${documentPath(file)}/endpoints/${part(id)}`;
/// In a path a pin is written so that no slash ends it.
const pathPin = (pin) => pin.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
/// Without what was left empty: an empty reason is none.
const filled = (body) => Object.fromEntries(
  Object.entries(body).filter(([, value]) => value !== "" && value !== null && value !== undefined));

export const api = {
  session: (secret) => call("GET", "session", { secret }),
  overview: (signal) => call("GET", "overview", { signal }),
  documents: (signal) => call("GET", "documents", { signal }),
  document: (file, query, signal) => call("GET", documentPath(file), { query, signal }),
  history: (file, query, signal) => call("GET", `${documentPath(file)}/history`, { query, signal }),
  endpoint: (file, id, signal) => call("GET", endpointPath(file, id), { signal }),
  pending: (query, signal) => call("GET", "pending", { query, signal }),
  pendingGroups: (query, signal) => call("GET", "pending/groups", { query, signal }),
  endpoints: (query, signal) => call("GET", "endpoints", { query, signal }),
  endings: (query, signal) => call("GET", "endings", { query, signal }),
  proposals: (signal) => call("GET", "proposals", { signal }),
  denials: (signal) => call("GET", "denials", { signal }),
  tombstones: (signal) => call("GET", "tombstones", { signal }),
  keySets: (signal) => call("GET", "keysets", { signal }),
  reports: (query, signal) => call("GET", "reports/summary", { query, signal }),

  addEndpoint: (file, body) => call("POST", `${documentPath(file)}/endpoints`, { body: filled(body) }),
  changeEndpoint: (file, id, body) => call("PATCH", endpointPath(file, id), { body: filled(body) }),
  changeTerms: (file, id, body) => call("POST", `${endpointPath(file, id)}/terms`, { body: filled(body) }),
  removeEndpoint: (file, id, why) => call("DELETE", endpointPath(file, id), { query: { why } }),
  stage: (file, id, body) => call("POST", `${endpointPath(file, id)}/stage`, { body: filled(body) }),
  approve: (file, id, body) => call("POST", `${endpointPath(file, id)}/approve`, { body: filled(body) }),
  revoke: (file, id, body) => call("POST", `${endpointPath(file, id)}/revoke`, { body: filled(body) }),
  decideHeld: (body) => call("POST", "pending/decide", { body: filled(body) }),
  deny: (body) => call("POST", "denials", { body: filled(body) }),
  adoptClock: (body) => call("POST", "clock/adopt", { body }),
  confirm: (id) => call("POST", `proposals/${part(id)}/confirm`, { body: {} }),
  withdraw: (id) => call("POST", `proposals/${part(id)}/withdraw`, { body: {} }),
  allow: (pin, why) => call("DELETE", `denials/${pathPin(pin)}`, { query: { why } }),
};
