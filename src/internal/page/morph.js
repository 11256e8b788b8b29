/**
 * Morphs an element into another in place. Keeps focus, scroll position, open details and unsent input.
 * @param {Element} from
 * @param {Element} to
 * @param {HTMLFormElement} [sent] the form just sent: its input is replaced
 */
export function morph(from, to, sent) {
  if (from.isEqualNode(to) || from.hasAttribute('data-script')) return
  if (from instanceof HTMLFormElement && from !== sent && isInUse(from)) return
  // `open` belongs to the reader.
  for (const { name } of [...from.attributes]) if (!to.hasAttribute(name) && name !== 'open') from.removeAttribute(name)
  for (const { name, value } of to.attributes) if (name !== 'open') from.setAttribute(name, value)
  const wanted = new Set(Array.from(to.children, ({ id }) => id))
  for (const child of [...from.children]) if (child.id && !wanted.has(child.id)) child.remove()
  let current = from.firstChild
  for (const child of [...to.childNodes]) {
    if (current?.nodeName !== child.nodeName || current.id !== child.id) {
      from.insertBefore(child, current)
      continue
    }
    if (child instanceof Element) morph(current, child, sent)
    else if (current.nodeValue !== child.nodeValue) current.nodeValue = child.nodeValue
    current = current.nextSibling
  }
  while (current) {
    const next = current.nextSibling
    current.remove()
    current = next
  }
}

function isInUse(form) {
  if (form.method !== 'post') return false
  return form.querySelector('.form-error') !== null || [...form.querySelectorAll('input, option')].some(isChanged)
}

function isChanged(control) {
  if (control instanceof HTMLOptionElement) return control.selected !== control.defaultSelected
  return control.type === 'checkbox'
    ? control.checked !== control.defaultChecked
    : control.value !== control.defaultValue
}
