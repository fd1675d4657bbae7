// Brings what is on the page in step with what was just made, changing only what differs: the focus, a
// selection, the scroll position and what somebody typed stay.

const handlers = ["onclick", "oninput", "onchange", "onsubmit"];

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("data-key") : null;
}

function isAlike(old, fresh) {
  return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && keyOf(old) === keyOf(fresh);
}

function patchAttributes(old, fresh) {
  // Whoever opened it wants it open.
  const kept = old.nodeName === "DETAILS" ? "open" : null;
  for (const { name } of [...old.attributes]) {
    if (name !== kept && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (name !== kept && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const name of handlers) {
    if (old[name] !== fresh[name]) old[name] = fresh[name];
  }
}

function patchNode(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  // Before the children move over to the old node: a choice has its value by them.
  const { value, checked } = fresh;
  patchAttributes(old, fresh);
  patchChildren(old, [...fresh.childNodes]);
  patchValue(old, value, checked);
}

/// A field says what the page says, unless somebody is at it.
function patchValue(old, value, checked) {
  if (!["INPUT", "SELECT", "TEXTAREA"].includes(old.nodeName) || old === document.activeElement) return;
  if (old.value !== value) old.value = value;
  if (old.checked !== checked) old.checked = checked;
}

/// Makes the children of `parent` what `fresh` says. Those with a `data-key` are told apart by it, the
/// others by their place.
export function patchChildren(parent, fresh) {
  const wanted = new Set(fresh.map(keyOf));
  const keyed = new Map();
  for (const child of [...parent.childNodes]) {
    const key = keyOf(child);
    if (key === null) continue;
    if (wanted.has(key) && !keyed.has(key)) keyed.set(key, child);
    else child.remove();
  }
  let place = parent.firstChild;
  for (const node of fresh) {
    const key = keyOf(node);
    let match = key === null ? place : keyed.get(key);
    if (!match || !isAlike(match, node)) match = null;
    if (match === null) {
      parent.insertBefore(node, place);
      continue;
    }
    if (match === place) place = place.nextSibling;
    else parent.insertBefore(match, place);
    patchNode(match, node);
  }
  while (place !== null) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}
